package cli

import (
	"context"
	"fmt"
	"strings"

	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/transport"
)

// foundView is a member that answered on the local network, for programs.
type foundView struct {
	Cluster string `json:"cluster"`
	CA      string `json:"ca"` // beginning of the authority's fingerprint
	Node    string `json:"node"`
	Version string `json:"version"`
	Address string `json:"address"`
}

// peer is the member to join: the one that was named, or one that is found on the local network.
func (c *call) peer(ctx context.Context, cfg node.Config, token string) (string, error) {
	if len(c.args) > 0 {
		return peerAddress(c.path, c.args[0])
	}
	c.say("Looking for clusters on the local network …")
	found, err := c.nodes.find(ctx, cfg)
	if err != nil {
		return "", err
	}
	if token != "" { // it says which cluster is meant
		t, err := transport.ParseJoinToken(token)
		if err != nil {
			return "", err
		}
		for _, f := range found {
			if t.Announced(f.Announcement) {
				c.say("Found %s at %s.", f.Node, f.Addr)
				return f.Addr, nil
			}
		}
		return "", &exitError{code: exitUnreachable, cause: task.ErrNoLeader, hint: nameOne(),
			detail: fmt.Sprintf("no member of this token's cluster answers on the local network (%s of others).", count(len(found), "member"))}
	}
	return c.choose(found)
}

// nameOne is what to do where nobody answers.
func nameOne() string {
	return "Name a member: lanjobs join MACHINE. It may be in another network, or a firewall keeps UDP " + defaultPort + " out."
}

// choose asks whether to join the one cluster that was found, or says what to type.
func (c *call) choose(found []transport.Found) (string, error) {
	if len(found) == 0 {
		return "", &exitError{code: exitUnreachable, detail: "no cluster answers on the local network.", hint: nameOne() + " To start one here: lanjobs init", cause: task.ErrNoLeader}
	}
	one := found[0].CA == found[len(found)-1].CA // they are sorted
	if !one || !c.opt.yes && !c.inTTY {
		if err := c.showFound(found); err != nil {
			return "", err
		}
		return "", usage(c.path, "say which one, for example: lanjobs join %s", found[0].Addr)
	}
	if !c.opt.yes && !c.machine() {
		if err := c.showFound(found); err != nil {
			return "", err
		}
	}
	if err := c.confirm(fmt.Sprintf("Join %q by %s (%s)?", found[0].Cluster, found[0].Node, found[0].Addr)); err != nil {
		return "", err
	}
	return found[0].Addr, nil
}

func (c *call) showFound(found []transport.Found) error {
	a := answer{table: table{head: []string{"CLUSTER", "CA", "MEMBER", "ADDRESS", "VERSION"}}}
	views := make([]foundView, len(found))
	for i, f := range found {
		views[i] = foundView{Cluster: f.Cluster, CA: grouped(f.CA), Node: f.Node, Version: f.Version, Address: f.Addr}
		a.names = append(a.names, f.Addr)
		a.table.rows = append(a.table.rows, cells(f.Cluster, grouped(f.CA), f.Node, f.Addr, f.Version))
	}
	a.value, a.items = list("ClusterList", 0, views), anys(views)
	return c.show(a)
}

// grouped writes the beginning of a fingerprint as init shows it: 3F9A-7C21.
func grouped(hex string) string {
	if len(hex) < 8 {
		return strings.ToUpper(hex)
	}
	return strings.ToUpper(hex[:4] + "-" + hex[4:8])
}
