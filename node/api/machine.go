package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"lanjobs/task"
	"lanjobs/transport"
)

// initCluster answers POST /v1/init: a this-machine-only node becomes the first member of a cluster.
func (a *API) initCluster(ctx context.Context, q *request) (*reply, error) {
	var b transport.InitBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	if !plainName(b.Cluster) {
		return nil, invalid("the cluster name "+shown(b.Cluster)+" is not allowed", fmt.Sprintf("a-z, 0-9 and -, at most %d characters, as in home", task.MaxNameLength))
	}
	if err := listenAddress(b.Listen); err != nil {
		return nil, err
	}
	view, err := a.cfg.Machine.Init(ctx, b, q.by)
	if err != nil {
		return nil, err
	}
	return jsonReply(http.StatusCreated, view)
}

func plainName(s string) bool {
	plain := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
	return s != "" && len(s) <= task.MaxNameLength && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 && s[0] != '-' && s[len(s)-1] != '-'
}

// listenAddress checks ADDR:PORT; nothing means the node's own setting.
func listenAddress(s string) error {
	if s == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 1 || n > 65535 {
		return invalid("listen "+shown(s)+" is not ADDR:PORT", "as in 0.0.0.0:7420")
	}
	return nil
}

// leave answers POST /v1/leave: this machine leaves its cluster.
func (a *API) leave(ctx context.Context, q *request) (*reply, error) {
	var b transport.LeaveBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	if err := a.cfg.Machine.Leave(ctx, b, q.by); err != nil {
		return nil, err
	}
	return ok(struct{}{})
}
