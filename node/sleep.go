package node

import (
	"context"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// calledOff: a machine that has been awake for so long after it was ready to sleep does not sleep, whatever the system said.
const calledOff = time.Minute

// sleepWatch prepares this machine for the sleeps that its system tells of (R16). Without such notice a sleep is found out after
// waking, by the clocks (worker.keep, watchPlace).
type sleepWatch struct {
	m   *machine
	ctx context.Context

	mu   sync.Mutex    // guards all below
	woke chan struct{} // closed by Woke; nil while no sleep is being prepared
	said bool
}

var _ runner.Sleeper = (*sleepWatch)(nil)

// watchSleep hears of sleeps until ctx ends.
func (m *machine) watchSleep(ctx context.Context) error {
	return m.cfg.Sleeps(ctx, m.clock, &sleepWatch{m: m, ctx: ctx})
}

// Sleeps is runner.Sleeper.
func (s *sleepWatch) Sleeps(budget time.Duration) {
	m := s.m
	m.log.Info("this machine goes to sleep", "within", budget.String())
	before := m.clock.Awake()
	m.core.Sleep(s.ctx, budget)
	m.log.Info("ready to sleep", "after", (m.clock.Awake() - before).Round(time.Millisecond).String())
	woke := make(chan struct{})
	s.awaits(woke)
	go func() { // its timer stands still while the machine sleeps
		timer := m.clock.NewTimer(calledOff)
		defer timer.Stop()
		select {
		case <-timer.C():
			m.log.Info("the sleep did not come; going on")
			m.core.Woke()
		case <-woke:
		case <-s.ctx.Done():
		}
	}()
}

// awaits ends the wait of an earlier sleep and keeps what ends that of the next.
func (s *sleepWatch) awaits(woke chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woke != nil {
		close(s.woke)
	}
	s.woke = woke
}

// Woke is runner.Sleeper.
func (s *sleepWatch) Woke() {
	s.awaits(nil)
	s.m.renewPlace()
	s.m.core.Woke()
}

// Watching is runner.Sleeper. It is asked again and again where it cannot be had, and said once.
func (s *sleepWatch) Watching(err error) {
	s.mu.Lock()
	said := s.said
	s.said = err != nil
	s.mu.Unlock()
	switch {
	case err == nil:
		s.m.log.Debug("this system tells of sleeps")
	case !said:
		s.m.log.Info("no notice before this machine sleeps; a sleep is found out after waking", "why", err.Error())
	}
}

// renewPlace makes connections anew: those of before a sleep lead nowhere.
func (m *machine) renewPlace() {
	if m.wire == nil {
		return
	}
	m.wire.gossip.Wake()
	for _, id := range m.wire.book.IDs() {
		m.reconnect(id)
	}
}

// wakeHere answers MethodWake.
func (m *machine) wakeHere(_ context.Context, _ task.NodeID, q *transport.WakeRequest) (*transport.WakeReply, error) {
	table, err := transport.SystemInterfaces()
	if err != nil {
		return nil, err
	}
	sent, err := transport.SendWake(table, q.MACs)
	return &transport.WakeReply{Sent: sent}, err
}
