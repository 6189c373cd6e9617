package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/node/api"
	"lanjobs/task"
	"lanjobs/transport/memnet"
)

// TestACopyIsAsOldAsTheLeadersSilence: nobody asks this machine anything for a quarter of an hour, then the leader dies: what is shown
// ten seconds later is ten seconds old.
func TestACopyIsAsOldAsTheLeadersSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, leader := memnet.NewClock(), task.NodeID("a")
		s := &standing{clock: clock, started: clock.Awake(), now: func() api.Standing { return api.Standing{Leader: leader} }}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.watch(ctx) }()
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		leader = ""
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := s.Standing(); st.Silence < 10*time.Second || st.Silence > 10*time.Second+wakeCheck {
			t.Errorf("known %s ago", st.Silence)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
