package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"lanjobs/node/api"
	"lanjobs/task"
)

// errRestart: the node must be built anew on the same data folder: it has become a member of a cluster, or goes on in another history.
var errRestart = errors.New("restart")

// Node is a running node. It may be built anew while it lives; running tasks do not notice, since the guard has them.
type Node struct {
	cfg Config

	mu   sync.Mutex
	live *machine
	run  sync.WaitGroup
	// failed is why the last recovery did not come about; used by Run alone.
	failed error
	stop   context.CancelCauseFunc // of Run; nil before
}

// errKill ends a node without waiting for anything: what it runs is killed.
var errKill = errors.New("told to stop at once")

// Open builds and starts a node. When it returns the node's socket answers, unless it is embedded; Run then keeps it going. The
// error is a *task.Problem where a person can do something about it.
func Open(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, task.NewProblem(task.ErrInvalid, err.Error(), "")
	}
	m, err := openMachine(ctx, cfg)
	if err != nil {
		if _, said := errors.AsType[*task.Problem](err); said {
			return nil, err
		}
		return nil, diskProblem(cfg.DataDir, err)
	}
	return &Node{cfg: cfg, live: m}, nil
}

// Run keeps the node going until ctx ends, Stop is called or a part of it fails. When told to end it hands leadership over and
// gives its work back (R7).
func (n *Node) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	n.mu.Lock()
	n.stop = stop
	n.run.Add(1)
	n.mu.Unlock()
	defer n.run.Done()
	for {
		m := n.current()
		err := m.run(ctx)
		err = errors.Join(err, m.close())
		if m.left.Load() && err == nil {
			return setAside(n.cfg.DataDir)
		}
		if !errors.Is(err, errRestart) {
			return err
		}
		if err := n.changeOver(m); err != nil {
			return err
		}
		if m, err = openMachine(ctx, n.cfg); err != nil {
			return err
		}
		if n.failed != nil {
			m.trouble.note(aboutHistory, fmt.Sprintf("The recovery did not come about, and nothing was changed: %v", n.failed))
			n.failed = nil
		}
		n.mu.Lock()
		n.live = m
		n.mu.Unlock()
	}
}

// changeOver does between two lives what needs all of the data folder: begin a history, or go over to one.
func (n *Node) changeOver(m *machine) error {
	if over := m.over.Load(); over != nil {
		return goOver(n.cfg, over)
	}
	if r := m.recovery.Load(); r != nil {
		if err := beginRecovery(n.cfg, r); err != nil { // it goes on as it was
			n.cfg.Log.Error("the recovery failed; nothing was changed", "error", err)
			n.failed = err
		}
	}
	return nil
}

func (n *Node) current() *machine {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.live
}

// API answers the requests of this machine's owner, for a process that has the node inside itself.
func (n *Node) API() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := n.current()
		select {
		case <-m.ready:
		case <-r.Context().Done():
		}
		m.api.ServeHTTP(w, r.WithContext(api.WithBy(r.Context(), owner())))
	})
}

// Stop ends Run in order and waits for it. Once ctx has ended nothing is waited for: what the node runs is killed.
func (n *Node) Stop(ctx context.Context) error {
	n.mu.Lock()
	stop := n.stop
	n.mu.Unlock()
	if stop == nil {
		n.current().endLife()
		return n.current().close()
	}
	if ctx.Err() != nil {
		n.current().runner.KillAll()
		stop(errKill)
	} else {
		stop(context.Canceled)
	}
	done := make(chan struct{})
	go func() { n.run.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		n.current().runner.KillAll()
		<-done
		return context.Cause(ctx)
	}
}
