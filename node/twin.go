package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// Two machines under one id would both hold its leases and vote twice. A data folder that was copied is mostly noticed by what it says
// of its machine and place (transport.LoadIdentity); this is for the rest: copies of whole machines and of containers.

// twinTimeout bounds the questions before a start: machines that sleep do not answer.
const twinTimeout = time.Second

// onlyOne refuses to go on if another machine runs under this node's id. It is asked before Raft starts and before the node
// registers, which would free the leases of the other one. Only who proves to have this node's key counts as a copy: a member
// may still believe to hear what this node was a moment ago.
func (m *machine) onlyOne(ctx context.Context) error {
	if m.wire == nil {
		return nil
	}
	ctx, cancel := transport.WithTimeout(ctx, m.clock, twinTimeout)
	defer cancel()
	var (
		asked sync.WaitGroup
		mu    sync.Mutex
		found string
	)
	for _, id := range m.wire.book.IDs() {
		if id == m.identity.NodeID {
			continue
		}
		asked.Go(func() {
			var reply transport.TwinReply
			if m.caller.Call(ctx, id, transport.MethodTwin, &transport.TwinRequest{}, &reply) != nil {
				return
			}
			for _, addr := range reply.Addrs {
				if m.isOwn(addr) {
					continue
				}
				if twin, ok := m.askTwin(ctx, addr); ok && !twin.Out {
					mu.Lock()
					found = addr
					mu.Unlock()
				}
			}
		})
	}
	asked.Wait()
	if found == "" {
		return nil
	}
	return m.copyProblem(found)
}

// copyProblem says what happened and what to type, on the machine that came later.
func (m *machine) copyProblem(addr string) *task.Problem {
	return task.NewProblem(task.ErrConflict,
		fmt.Sprintf("Another machine runs as this node %q already, at %s: one of the two data folders is a copy of the other. This one, %s, came later and takes no part.", m.identity.Name, addr, m.cfg.DataDir),
		"To make a node of its own of it: lanjobs join MACHINE --replace. If the other one is the copy, do that there, then start this one again.")
}

// askTwin calls the machine at an address; true if it proves to be this very node.
func (m *machine) askTwin(ctx context.Context, addr string) (transport.TwinReply, bool) {
	client := transport.NewClient(transport.ClientConfig{Dial: func(ctx context.Context, _ task.NodeID) (net.Conn, error) {
		return m.wire.dialer.DialAddr(ctx, addr, transport.ALPNRPC)
	}})
	defer client.Close()
	var reply transport.TwinReply
	err := client.Call(ctx, m.identity.NodeID, transport.MethodTwin, &transport.TwinRequest{Addrs: m.ownAddrs()}, &reply)
	return reply, err == nil && reply.Same
}

// twinHere answers MethodTwin.
func (m *machine) twinHere(_ context.Context, from task.NodeID, q *transport.TwinRequest) (*transport.TwinReply, error) {
	if from != m.identity.NodeID {
		reply := &transport.TwinReply{}
		if m.wire != nil && m.wire.gossip.Alive(from) {
			reply.Addrs = m.wire.book.Lookup(from)
		}
		return reply, nil
	}
	out := m.trouble.problem() != nil
	if !out {
		m.tellCopy(strings.Join(q.Addrs, ", "))
	}
	return &transport.TwinReply{Same: true, Out: out}, nil
}

// tellCopy tells the owner of this machine, which was there first, of a copy.
func (m *machine) tellCopy(addr string) {
	text := fmt.Sprintf("A copy of this machine's data folder was started at %s and refused. Make a node of its own of it, there: lanjobs join MACHINE --replace", addr)
	if m.trouble.note(aboutCopy, text) {
		m.log.Error(text)
	}
}

// watchCopies looks for a copy that this node met only later: both ran while they could not hear each other. The one whose
// session is the later stops.
func (m *machine) watchCopies(ctx context.Context) {
	copies := m.wire.gossip.Copies(m.identity.NodeID)
	own := m.wire.gossip.Session()
	if len(copies) < 2 || m.trouble.problem() != nil {
		return
	}
	for _, c := range copies {
		if c.Session == own || m.isOwn(c.Addr) {
			continue
		}
		if own.Less(c.Session) {
			m.tellCopy(c.Addr)
			continue
		}
		ask, cancel := transport.WithTimeout(ctx, m.clock, twinTimeout)
		twin, ok := m.askTwin(ask, c.Addr)
		cancel()
		if ok && !twin.Out {
			m.putOut(m.copyProblem(c.Addr))
			return
		}
	}
}

// admitStream may refuse a Raft stream of a node that proved who it is: one that was removed, and a copy of an earlier one.
func (m *machine) admitStream(id task.NodeID, s transport.Session) error {
	if m.removed(id) {
		return transport.ErrRemoved
	}
	if m.wire != nil {
		if copies := m.wire.gossip.Copies(id); len(copies) > 1 && s != copies[0].Session {
			return transport.ErrCopied
		}
	}
	return nil
}

// ownAddrs is where this machine can be reached, before gossip has chosen.
func (m *machine) ownAddrs() []string {
	addr, err := m.listenAddr()
	if err != nil {
		return nil
	}
	return announced(addr)
}

// isOwn tells whether an address is one of this machine's and its port the cluster port of this node.
func (m *machine) isOwn(text string) bool {
	addr, err := netip.ParseAddrPort(text)
	listen, err2 := m.listenAddr()
	if err != nil || err2 != nil || addr.Port() != listen.Port() {
		return false
	}
	if !listen.Addr().IsUnspecified() {
		return addr.Addr() == listen.Addr()
	}
	table, err := transport.SystemInterfaces()
	return err == nil && slices.ContainsFunc(table, func(i transport.Interface) bool { return i.Has(addr.Addr()) })
}
