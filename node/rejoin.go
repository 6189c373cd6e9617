package node

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// How long a node that lost its log looks for a leader that takes it as a new member.
const (
	rejoinTimeout = 20 * time.Second
	rejoinRetry   = time.Second
)

// openMachine builds a machine. One that has lost its memory of the cluster comes back as a new member first: what it once
// acknowledged is with the others, and under its old id it could vote against it (I5, I15).
func openMachine(ctx context.Context, cfg Config) (*machine, error) {
	m, err := buildMachine(ctx, cfg)
	if over, is := asOver(err); is {
		if err := goOver(cfg, over); err != nil {
			return nil, err
		}
		m, err = buildMachine(ctx, cfg)
	}
	lost, ok := errors.AsType[*AmnesiaError](err)
	if !ok {
		return m, err
	}
	aside, again := rejoin(ctx, cfg, lost)
	if again != nil {
		return nil, explainLoss(cfg, lost, again)
	}
	cfg.Log.Error("this node's log of the cluster was lost: it comes back as a new member, and gets it from the others", "why", lost.Error(), "kept", aside)
	m, err = buildMachine(ctx, cfg)
	if err == nil {
		m.trouble.note(aboutStore, fmt.Sprintf("This machine's log of the cluster was lost (%s) and comes from the others anew; what was left of it is in %s.", lost.Reason, aside))
	}
	return m, err
}

var errNobodyElse = errors.New("it is the only machine of its cluster")

// explainLoss tells a person what to do about a store that this node must not go on with.
func explainLoss(cfg Config, lost *AmnesiaError, again error) error {
	hint := "If there is a backup: lanjobs backup restore FILE --replace. Without one, lanjobs leave --force puts the data aside, to begin anew."
	if !errors.Is(again, errNobodyElse) {
		hint = fmt.Sprintf("The other members have everything, but it could not rejoin by itself (%v). Start it again when they are up, or: lanjobs join MACHINE --replace", again)
	}
	return task.NewProblem(task.ErrConflict, lost.Error(), hint)
}

// rejoin has the leader admit this machine under a new id in the place of its old one, by which it still proves who it is, and
// sets the lost log aside. Settings, book and whatever runs stay: the leases of the old id are not kept at registration.
func rejoin(ctx context.Context, cfg Config, lost *AmnesiaError) (aside string, err error) {
	clock := cfg.Clock
	if clock == nil {
		clock = runner.SystemClock()
	}
	ctx, cancel := transport.WithTimeout(ctx, clock, rejoinTimeout)
	defer cancel()
	store, err := openLocalStore(cfg.DataDir)
	if err != nil {
		return "", err
	}
	defer store.Close()
	old, err := transport.LoadIdentity(cfg.DataDir)
	if err != nil {
		return "", err
	}
	settings, err := store.Settings()
	if err != nil {
		return "", err
	}
	book, err := transport.OpenBook(bookStore{store}, clock, cfg.Log)
	if err != nil {
		return "", err
	}
	if !old.Member() || len(book.IDs()) == 0 {
		return "", errNobodyElse
	}
	listen, err := listenAddr(cfg, settings)
	if err != nil {
		return "", err
	}
	next, err := transport.NewIdentity(old.Name)
	if err != nil {
		return "", err
	}
	q := &transport.RejoinRequest{Addrs: announced(listen), Why: string(lost.Reason),
		Info: task.NodeInfo{ID: next.NodeID, Name: old.Name, OS: runtime.GOOS, Arch: runtime.GOARCH, Version: cfg.Version, Level: Level, Voter: !settings.Worker, Slots: cfg.Slots}}
	if q.CSR, err = next.CSR(); err != nil {
		return "", err
	}
	reply, err := askRejoin(ctx, old, book, clock, q)
	if err != nil {
		return "", err
	}
	if err := next.Adopt(reply.Cluster, reply.Cert); err != nil {
		return "", err
	}
	// The identity first: a new one with the old log is amnesia again, the old one without any log would count as new.
	if err := next.Save(cfg.DataDir); err != nil {
		return "", err
	}
	return SetAside(cfg.DataDir)
}

// askRejoin calls the leader, as the old node, until it answers or ctx ends.
func askRejoin(ctx context.Context, old *transport.Identity, book *transport.Book, clock task.Clock, q *transport.RejoinRequest) (*transport.JoinReply, error) {
	trust, err := transport.NewTrust(old, clock, nil)
	if err != nil {
		return nil, err
	}
	dialer := transport.NewDialer(transport.DialerConfig{Trust: trust, Book: book, Net: transport.DialTCP, Clock: clock})
	nobody := transport.HandlerFunc(func(context.Context, task.NodeID, transport.Method, []byte) (any, error) {
		return nil, task.NewProblem(task.ErrNoLeader, "this node does not lead", "")
	})
	caller := transport.NewClient(transport.ClientConfig{Self: old.NodeID, Local: nobody, Dial: dialer.To(transport.ALPNRPC)})
	defer caller.Close()
	c := &control{self: old.NodeID, caller: caller, clock: clock, known: func() task.NodeID { return "" }, members: book.IDs}
	for {
		reply, err := do[transport.JoinReply](c, ctx, transport.MethodRejoin, q)
		if err == nil || !errors.Is(err, task.ErrNoLeader) {
			return reply, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-clock.After(rejoinRetry):
		}
	}
}

// rejoinHere admits a member that lost its log under a new id, on the leader, and lets the old id go. from is proven; nobody
// can speak for another node.
func (m *machine) rejoinHere(ctx context.Context, from task.NodeID, q *transport.RejoinRequest) (*transport.JoinReply, error) {
	name, worker, err := "", false, error(nil)
	m.core.Read(func(s *fsm.State) {
		n := s.Node(from)
		switch {
		case n == nil || n.Gone != "":
			err = task.NewProblem(task.ErrNotAllowed, "only a member can come back as a new one", "Join anew: lanjobs join MACHINE --replace")
		case s.Node(q.Info.ID) != nil:
			err = task.NewProblem(task.ErrConflict, fmt.Sprintf("node %s is known already", q.Info.ID), "")
		default:
			name, worker = n.Info.Name, n.WorkerOnly
		}
	})
	if err != nil {
		return nil, err
	}
	key, err := transport.CSRKeyHash(q.CSR)
	if err != nil {
		return nil, err
	}
	// In this order: cut in the middle, the machine can ask again.
	for _, c := range []fsm.Command{
		&fsm.AdmitNode{Node: q.Info.ID, Name: name, Worker: worker, Key: key},
		&fsm.SetNode{Node: from, Action: fsm.NodeLeave, By: "node " + name, Reason: "its log was lost (" + q.Why + "); it goes on as " + string(q.Info.ID)},
	} {
		if err := m.core.commit(ctx, c); err != nil {
			return nil, err
		}
	}
	return m.welcome(q.CSR, q.Info, q.Addrs)
}
