package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// Leave takes this machine out of its cluster. If it cannot, the machine works on as before.
func (p peers) Leave(ctx context.Context, b transport.LeaveBody, by string) (err error) {
	m := p.m
	defer func() {
		if err != nil {
			m.core.Stay()
		}
	}()
	if m.wire == nil { // this machine only: a join takes it over, unless that would lose work
		live := 0
		m.core.Read(func(s *fsm.State) { live = s.Live() })
		if live > 0 && !b.Force {
			return task.NewProblem(task.ErrConflict, "this machine has "+ownJobs(live), "Wait for them, cancel them, or put them aside: --force")
		}
		m.giveBack(ctx)
		m.left.Store(true)
		m.after(answerFirst, m.departed)
		return nil
	}
	if err := m.core.PrepareLeave(ctx); err != nil && !b.Force {
		return err
	}
	m.giveBack(ctx)
	if err := p.announceLeave(ctx, by); err != nil && !b.Force {
		return err
	}
	m.left.Store(true)
	m.after(answerFirst, m.departed)
	return nil
}

func ownJobs(n int) string {
	if n == 1 {
		return "1 unfinished job of its own"
	}
	return fmt.Sprintf("%d unfinished jobs of its own", n)
}

// announceLeave has the leader record it; handing over leadership came first, so that it is another node.
func (p peers) announceLeave(ctx context.Context, by string) error {
	m := p.m
	if m.trouble.problem() != nil {
		return nil // it takes no part already
	}
	others := 0
	for _, s := range m.core.Servers() {
		if s.ID != raft.ServerID(m.identity.NodeID) {
			others++
		}
	}
	if others == 0 && m.core.Leads() {
		return nil // the last one out
	}
	var last error
	for range leaveTries {
		_, last = do[transport.Ack](m.core.control, ctx, transport.MethodLeave, &transport.LeaveRequest{By: by})
		if m.core.control.putOut(last) {
			return nil // an earlier try was served; its answer went down with the connection
		}
		if !errors.Is(last, task.ErrNoLeader) {
			return last
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.clock.After(time.Second):
		}
	}
	return last
}

const (
	leaveTries = 15
	// answerFirst lets the answer to init or leave reach its client before the socket goes.
	answerFirst = 200 * time.Millisecond
)

// after closes a channel a little later.
func (m *machine) after(d time.Duration, c chan struct{}) {
	m.once.Do(func() {
		go func() {
			<-m.clock.After(d)
			close(c)
		}()
	})
}
