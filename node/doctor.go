package node

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/node/api"
	"lanjobs/node/doctor"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// How long the checks may take, and how many datagrams measure the loss of a way.
const (
	peerTimeout = 15 * time.Second
	echoes      = 20
)

var _ api.Doctor = peers{}

// CheckHere checks this machine without a node.
func CheckHere(ctx context.Context, cfg Config) *task.DoctorView {
	return &task.DoctorView{Name: cfg.Name, Findings: doctor.Judge(doctor.Look(ctx, whereOf(cfg)))}
}

// FixHere mends what can be mended on this machine without harm; port is the cluster's.
func FixHere(ctx context.Context, cfg Config, goos string, port int, found []task.Finding) []string {
	return doctor.Fix(ctx, doctor.System{}, goos, whereOf(cfg), port, found)
}

func whereOf(cfg Config) doctor.Where {
	clock := cfg.Clock
	if clock == nil {
		clock = runner.SystemClock()
	}
	return doctor.Where{DataDir: cfg.DataDir, Socket: transport.SocketPath(cfg.DataDir), Program: cfg.Exe, Version: cfg.Version, Clock: clock, Host: doctor.System{}}
}

// Doctor checks this machine and its way to the others.
func (p peers) Doctor(ctx context.Context) *task.DoctorView {
	m := p.m
	f := doctor.Look(ctx, whereOf(m.cfg))
	f.Node = p.nodeFacts()
	if m.wire != nil {
		asked := p.askedMembers(ctx)
		m.addAsked(f.Node, asked)
		f.Node.Peers = p.lookAtPeers(ctx, asked)
		for i := range f.Node.Voters { // a call knows it before gossip does
			v := &f.Node.Voters[i]
			v.Answers = v.Answers && !slices.ContainsFunc(f.Node.Peers, func(p doctor.Peer) bool { return p.Name == v.Name && p.Err != nil })
		}
	}
	return &task.DoctorView{Node: m.identity.NodeID, Name: m.identity.Name, Findings: doctor.Judge(f)}
}

// nodeFacts is what this node knows without asking anybody.
func (p peers) nodeFacts() *doctor.Node {
	m := p.m
	n := &doctor.Node{Name: m.identity.Name, Member: m.identity.Member(), Voter: !m.settings.Worker, Leads: m.core.Leads(), Limits: m.info().Limits,
		Laptop: m.info().Laptop, Awake: m.awake.State(), Service: m.cfg.Service, First: os.Getpid() == 1, Port: int(m.listenPort()), Leader: m.core.LeaderID() != ""}
	hosts := map[task.NodeID]string{}
	m.core.Read(func(s *fsm.State) {
		for _, node := range s.Nodes() {
			if node.Gone == "" {
				n.Members++
				hosts[node.Info.ID] = node.Info.Host
			}
		}
	})
	for _, s := range m.core.Servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		id := task.NodeID(s.ID)
		answers := id == m.identity.NodeID || m.wire != nil && m.wire.away(id, m.clock.Awake()) == 0
		n.Seat = n.Seat || id == m.identity.NodeID
		n.Voters = append(n.Voters, doctor.Voter{Name: m.nameOf(id), Host: hosts[id], Answers: answers})
	}
	if m.wire != nil {
		n.Addrs = withInterfaces(m.wire.gossip.Addrs())
	}
	return n
}

// withInterfaces gives addresses their interfaces.
func withInterfaces(addrs []string) (out []doctor.Addr) {
	table, err := transport.SystemInterfaces()
	for _, text := range addrs {
		a := doctor.Addr{Addr: text}
		if at, bad := netip.ParseAddrPort(text); err == nil && bad == nil {
			if at.Addr().IsLoopback() {
				a.Interface = "loopback"
			} else if i := slices.IndexFunc(table, func(i transport.Interface) bool { return i.Has(at.Addr()) }); i >= 0 {
				a.Interface = table[i].Name
			}
		}
		out = append(out, a)
	}
	return out
}

// lookAtPeers asks every other member at the same time. asked are those that this machine does not know by itself.
func (p peers) lookAtPeers(ctx context.Context, asked []task.NodeView) []doctor.Peer {
	m := p.m
	versions := map[task.NodeID]string{}
	m.core.Read(func(s *fsm.State) {
		for _, n := range s.Nodes() {
			versions[n.Info.ID] = n.Info.Version
		}
	})
	var ids []task.NodeID
	for _, member := range p.Members() {
		if member.ID != m.identity.NodeID {
			ids = append(ids, member.ID)
		}
	}
	for _, v := range asked {
		if versions[v.ID] = v.Version; v.ID != m.identity.NodeID && !slices.Contains(ids, v.ID) {
			ids = append(ids, v.ID)
		}
	}
	out := make([]doctor.Peer, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			out[i] = m.lookAtPeer(ctx, id)
			if out[i].Version == "" {
				out[i].Version = versions[id]
			}
		})
	}
	all.Wait()
	return out
}

func (m *machine) lookAtPeer(ctx context.Context, id task.NodeID) doctor.Peer {
	ctx, cancel := transport.WithTimeout(ctx, m.clock, peerTimeout)
	defer cancel()
	peer := doctor.Peer{Name: m.nameOf(id), Away: m.wire.away(id, m.clock.Awake())}
	if info, ok := m.wire.book.Peer(id); ok {
		peer.Version = info.Version
	}
	var warm transport.PingReply // it may have to connect, which would count for the clock
	if peer.Err = m.caller.Call(ctx, id, transport.MethodPing, &transport.PingRequest{}, &warm); peer.Err != nil {
		peer.Down = errors.Is(peer.Err, syscall.ECONNREFUSED)
		return peer
	}
	peer.Ahead, peer.HasClock = m.clockAhead(ctx, id)
	var back transport.ProbeReply
	if m.caller.Call(ctx, id, transport.MethodProbe, &transport.ProbeRequest{}, &back) == nil {
		peer.Probed, peer.BackSent, peer.BackGot = true, back.Sent, back.Got
		for _, a := range back.TCP {
			if a.Err == "" {
				peer.Reached++
			} else {
				peer.Failed = append(peer.Failed, doctor.Failed{Addr: a.Addr, Why: a.Err})
			}
		}
	}
	peer.Sent, peer.Got = m.wire.gossip.Echo(ctx, id, echoes)
	return peer
}

// probeHere answers MethodProbe: it calls a member back, at every address that this one has of it.
func (m *machine) probeHere(ctx context.Context, from task.NodeID, _ *transport.ProbeRequest) (*transport.ProbeReply, error) {
	r := &transport.ProbeReply{}
	if m.wire == nil {
		return r, nil
	}
	for _, a := range m.wire.dialer.Probe(ctx, from) {
		p := transport.ProbedAddr{Addr: a.Addr}
		if a.Err != nil {
			p.Err = plainNetError(a.Err)
		}
		r.TCP = append(r.TCP, p)
	}
	r.Sent, r.Got = m.wire.gossip.Echo(ctx, from, echoes)
	return r, nil
}

// plainNetError leaves out what a person has read already: the address.
func plainNetError(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err.Error()
	}
	return err.Error()
}
