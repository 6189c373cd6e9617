package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// run starts every part and waits: for ctx, for a part that fails, for init or leave. Then it ends in order.
func (m *machine) run(ctx context.Context) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	var parts sync.WaitGroup
	part := func(f func(context.Context) error) {
		parts.Go(func() {
			if err := f(life); err != nil && life.Err() == nil {
				end(err)
			}
		})
	}
	part(m.core.Run)
	part(m.awake.Run)
	part(m.watchSleep)
	part(m.watchDisk)
	if m.wire != nil {
		m.wire.start(part, m)
		part(m.takeLeave)
	}
	part(func(ctx context.Context) error {
		m.awaitOwnLead(ctx)
		close(m.ready)
		if m.cfg.Embedded {
			return nil
		}
		return m.socket.serve(ctx)
	})
	m.log.Info("node runs", "node", m.identity.Name, "id", m.identity.NodeID, "cluster", m.identity.Cluster.Name, "version", m.cfg.Version)

	var result error
	select {
	case <-ctx.Done():
		m.endLife()
		if !errors.Is(context.Cause(ctx), errKill) {
			m.giveBack(life)
		}
	case <-life.Done():
		result = context.Cause(life)
	case <-m.restart:
		m.endLife()
		result = errRestart // tasks go on under the guard
	case <-m.departed:
		m.endLife()
	case <-m.stopped:
		m.endLife()
		m.giveBack(life)
	}
	end(context.Canceled)
	parts.Wait()
	return result
}

// ownLeadTimeout is how long the first client of a machine that is alone in its cluster waits until it leads.
const ownLeadTimeout = 3 * time.Second

// awaitOwnLead lets a sole voter win its election and work before clients are answered: a person who has just typed init should
// not read "no leader". A machine that needs others answers at once.
func (m *machine) awaitOwnLead(ctx context.Context) {
	if len(m.core.Servers()) != 1 || !m.core.HasCopy() {
		return
	}
	ctx, cancel := transport.WithTimeout(ctx, m.clock, ownLeadTimeout)
	defer cancel()
	for ctx.Err() == nil {
		changed := m.core.Changed()
		ready := false
		m.core.Read(func(s *fsm.State) {
			n := s.Node(m.identity.NodeID)
			ready = n != nil && n.Incarnation == m.incarnation && s.Cluster.ID == m.identity.Cluster.ID
		})
		if ready {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// giveBack hands leadership over, stops what runs and has it reported, so that it goes on elsewhere at once (R7, R16).
func (m *machine) giveBack(ctx context.Context) {
	hand, cancel := transport.WithTimeout(ctx, m.clock, orderlyTimeout)
	if err := m.core.HandOver(hand); err != nil {
		m.log.Debug("leadership not handed over", "error", err)
	}
	cancel()
	stop, cancel := transport.WithTimeout(ctx, m.clock, task.DefaultStopGrace.Duration()+orderlyTimeout)
	defer cancel()
	if err := m.core.Worker().Shutdown(stop, task.DefaultStopGrace); err != nil {
		m.log.Warn("not all work was given back", "error", err)
	}
}
