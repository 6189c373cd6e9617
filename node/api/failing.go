package api

import (
	"sync"
	"time"

	"lanjobs/node/plan"
	"lanjobs/task"
)

// failuresEvery is how old a judgement of the machines may be: it looks at many shards, and is about hours.
const failuresEvery = 10 * time.Second

// failures is the last judgement of which machines fail where others succeed (R45).
type failures struct {
	mu    sync.Mutex
	known map[task.NodeID]plan.Failing // nil = none yet
	index uint64                       // of the state that was judged
	at    time.Duration                // Awake() then
}

// failing is how a machine's newest attempts ended.
func (v *view) failing(id task.NodeID) plan.Failing {
	f := v.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || f.index != v.Index && v.awake-f.at >= failuresEvery {
		f.known, f.index, f.at = plan.Failures(v.State), v.Index, v.awake
	}
	return f.known[id]
}
