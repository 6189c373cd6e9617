package api

import (
	"sync"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// failuresEvery is how old a judgement of the machines may be: it looks at many shards, and is about hours.
const failuresEvery = 10 * time.Second

// failures is the last judgement of which machines fail where others succeed (R45).
type failures struct {
	mu    sync.Mutex                   // not taken while the ledger is read
	known map[task.NodeID]plan.Failing // replaced, never changed; nil = none yet
	index uint64                       // of the state that was judged
	at    time.Duration                // Awake() then
}

// recent gives a judgement that is not too old.
func (f *failures) recent(ledger Ledger, now time.Duration) map[task.NodeID]plan.Failing {
	f.mu.Lock()
	defer f.mu.Unlock()
	var index uint64
	ledger.Read(func(s *fsm.State) { index = s.Index })
	if f.known != nil && (f.index == index || now-f.at < failuresEvery) {
		return f.known
	}
	var scan plan.Failures
	for more := true; more; {
		ledger.Read(func(s *fsm.State) { more = scan.Look(s) })
	}
	f.known, f.index, f.at = scan.Judge(), index, now
	return f.known
}

// lookAtNodes is look for what shows machines with their notes.
func (a *API) lookAtNodes(q *request, f func(*view)) {
	failing := a.failures.recent(a.cfg.Ledger, a.clock.Awake())
	a.look(q, func(v *view) {
		v.failing = failing
		f(v)
	})
}
