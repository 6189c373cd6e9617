package node

import (
	"context"
	"sync/atomic"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/api"
	"lanjobs/task"
)

// standing is api.Ledger: the applied state, and since when there is no leader.
type standing struct {
	clock   task.Clock
	read    func(func(*fsm.State))
	now     func() api.Standing // but for the silence
	started time.Duration       // Awake(): before it nothing was heard here
	heard   atomic.Int64        // Awake() when a leader was known last
}

// Read gives the applied state.
func (s *standing) Read(f func(*fsm.State)) { s.read(f) }

// Standing is what this member knows of the leadership.
func (s *standing) Standing() api.Standing {
	now, st := s.clock.Awake(), s.now()
	if st.Leader != "" {
		s.heard.Store(int64(now))
	} else {
		st.Silence = now - max(s.started, time.Duration(s.heard.Load()))
	}
	return st
}

// watch looks now and then: else a leader that is lost would have been heard of last when somebody here last asked anything, and a
// copy of seconds ago would be shown as one of hours ago.
func (s *standing) watch(ctx context.Context) error {
	for {
		s.Standing()
		select {
		case <-ctx.Done():
			return nil
		case <-s.clock.After(wakeCheck):
		}
	}
}
