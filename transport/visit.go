package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lanjobs/task"
)

// joinTimeout bounds the answer to a question, which a commit of the cluster may come before.
const joinTimeout = 30 * time.Second

// visit is how one who has no certificate of a cluster yet asks one of its members: to join, to log in, to wait with a code. Token,
// identity and what the machine says of itself are not used.
type visit struct {
	JoinConfig
	host, addr string // of the peer
}

// visit reads whom to ask.
func (cfg JoinConfig) visit() (*visit, error) {
	host, addr, err := PeerAddr(cfg.Peer)
	if err != nil {
		return nil, err
	}
	return &visit{JoinConfig: cfg, host: host, addr: addr}, nil
}

// askByToken asks a node whose certificate was signed by the authority that the token names, until somebody leads.
func (v *visit) askByToken(ctx context.Context, token JoinToken, path string, request, reply any) error {
	return v.untilLed(ctx, func() error {
		return v.ask(ctx, func(chain []*x509.Certificate) error { return pinned(chain, token, v.host) }, path, request, reply)
	})
}

// ask sends a request over a proven connection of its own and reads the answer to it into reply. The error is leaderless if that is
// the answer.
func (v *visit) ask(ctx context.Context, prove func(chain []*x509.Certificate) error, path string, request, reply any) error {
	conn, err := v.reach(ctx, prove)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := WithTimeout(ctx, v.Clock, joinTimeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	// Not the address: one with a zone is no part of a URL, and the connection is there already.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://member"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	once := &http.Transport{
		// http to net/http: the connection has its TLS, and there is only this one.
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true,
	}
	resp, err := once.RoundTrip(req)
	if err != nil {
		return v.unanswered(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p := ReadProblem(resp)
		if errors.Is(p, task.ErrNoLeader) {
			return leaderless{p}
		}
		return p
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxJoinBytes))
	if err != nil {
		return v.unanswered(ctx, err)
	}
	if err := json.Unmarshal(text, reply); err != nil {
		return notLanjobs(v.addr, "the answer is no JSON")
	}
	return nil
}

// reach connects and has the other side prove that it belongs to a cluster that prove accepts. Nothing is sent before.
func (v *visit) reach(ctx context.Context, prove func(chain []*x509.Certificate) error) (net.Conn, error) {
	ctx, cancel := WithTimeout(ctx, v.Clock, HandshakeTimeout)
	defer cancel()
	raw, err := v.Net(ctx, v.addr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, v.unreached(ctx, err)
	}
	free := boundConn(ctx, raw)
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpnHTTP1}, Time: v.Clock.Wall,
		// Neither names nor dates are verified, see Trust; VerifyConnection verifies who it is.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return prove(s.PeerCertificates)
		},
	})
	err = conn.Handshake()
	if !free() {
		err = context.Cause(ctx)
	}
	if err == nil {
		return conn, nil
	}
	_ = raw.Close()
	if p, ok := errors.AsType[*task.Problem](err); ok {
		return nil, p
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil, v.unreached(ctx, err)
	}
	return nil, notLanjobs(v.addr, plainReason(err))
}

// unanswered: the request is out, what became of it is not known. Joining again with the same identity is harmless.
func (v *visit) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return task.NewProblem(task.ErrNoLeader, fmt.Sprintf("no answer from %s (%s).", v.addr, plainReason(err)), "Run the same command again")
}

func (v *visit) unreached(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	_, port, _ := net.SplitHostPort(v.addr)
	peer, parseErr := netip.ParseAddrPort(v.addr)
	routed := parseErr == nil && v.HasRoute != nil && v.HasRoute(peer)
	return unreachedText(runtime.GOOS, v.host, port, err, routed)
}

// unreachedText is UX 1.5 word for word.
func unreachedText(goos, host, port string, err error, routed bool) *task.Problem {
	what := fmt.Sprintf("cannot reach %s (%s)", net.JoinHostPort(host, port), plainReason(err))
	if goos == "darwin" && routed && errors.Is(err, syscall.EHOSTUNREACH) {
		return task.NewProblem(task.ErrNoLeader, what+", although this Mac has a route to it. macOS may be blocking lanjobs:",
			"System Settings > Privacy & Security > Local Network. A system service is exempt: sudo lanjobs service install")
	}
	return task.NewProblem(task.ErrNoLeader, fmt.Sprintf("%s. A firewall must let in TCP and UDP %s.", what, port),
		fmt.Sprintf("If \"lanjobs status\" on %s says \"this machine only\", run \"lanjobs init\" there first.", host))
}

// PeerAddr reads HOST[:PORT] as a person types it: a name or an address, IPv6 with or without brackets. The port is DefaultPort if
// none is given. The error is a *task.Problem.
func PeerAddr(peer string) (host, addr string, err error) {
	host, port := peer, strconv.Itoa(DefaultPort)
	if h, p, err := net.SplitHostPort(peer); err == nil { // first: a zone may hold whatever follows it
		host, port = h, p
	} else if ip, err := netip.ParseAddr(strings.Trim(peer, "[]")); err == nil {
		host = ip.String() // also IPv6 without a port, with or without brackets
	}
	n, err := strconv.ParseUint(port, 10, 16)
	_, noIP := netip.ParseAddr(host)
	if host == "" || strings.ContainsAny(host, "/ @") || strings.Contains(host, ":") && noIP != nil || err != nil || n == 0 {
		return "", "", task.NewProblem(task.ErrInvalid, fmt.Sprintf("%q is no machine: write HOST or HOST:PORT.", peer), "")
	}
	return host, net.JoinHostPort(host, port), nil
}
