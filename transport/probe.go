package transport

import (
	"context"
	"net"
	"sync"

	"github.com/hashicorp/memberlist"

	"lanjobs/task"
)

// Probe tries each address that the book has of a node by itself, and gives what came of it in the book's order; Err is nil where that
// very node answered. It is for people: what needs a connection takes Dial.
func (d *Dialer) Probe(ctx context.Context, id task.NodeID) []AddrError {
	addrs := d.Book.Lookup(id)
	out := make([]AddrError, len(addrs))
	var all sync.WaitGroup
	for i, addr := range addrs {
		all.Go(func() {
			conn, err := d.dialOne(ctx, addr, id, ALPNRPC)
			if err == nil {
				_ = conn.Close()
			}
			out[i] = AddrError{addr, err}
		})
	}
	all.Wait()
	return out
}

// Echo sends n datagrams to a node, one after the other, and counts those that it answers within a second. sent is 0 while gossip
// does not hear of the node.
func (g *Gossip) Echo(ctx context.Context, id task.NodeID, n int) (sent, got int) {
	g.mu.Lock()
	list := g.echoes
	g.mu.Unlock()
	if list == nil {
		return 0, 0
	}
	var to *memberlist.Node
	for _, m := range list.Members() {
		if peer, _, ok := parseGossipName(m.Name); ok && peer == id {
			to = m
		}
	}
	if to == nil {
		return 0, 0
	}
	for ; sent < n && ctx.Err() == nil; sent++ {
		if _, err := list.Ping(to.Name, &net.UDPAddr{IP: to.Addr, Port: int(to.Port)}); err == nil {
			got++
		}
	}
	return sent, got
}
