package clustertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lanjobs/task"
)

// Conditional writes of a job's shared keys are linearizable: whatever dies meanwhile, there is one order of all of them that
// explains every answer, and in which each stands between its call and its answer (R12, I5). Reads are not part of it: they
// promise no more than to be as new as the reader's grant.

// putInput is a write as it was asked for; the versions of all keys of a job come from one counter.
type putInput struct {
	key   int
	ifIs  uint64
	bound bool // only if the key has version ifIs
}

// putOutput is how it was answered.
type putOutput struct {
	version  uint64
	conflict bool
	unknown  bool // no answer: it may have happened at any time since, or not at all
}

const putKeys = 2

// putState is a job's keys in the model.
type putState struct {
	last uint64
	key  [putKeys]uint64
}

func (s putState) step(in putInput, out putOutput) (bool, putState) {
	if in.bound && s.key[in.key] != in.ifIs {
		return out.unknown || out.conflict, s
	}
	s.last++
	s.key[in.key] = s.last
	return out.unknown || !out.conflict && out.version == s.last, s
}

var putModel = porcupine.Model{
	Init:              func() any { return putState{} },
	Step:              func(s, in, out any) (bool, any) { return s.(putState).step(in.(putInput), out.(putOutput)) },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
}

// writers are the clients: the processes of a job, each writing between its steps.
type writers struct {
	mu      sync.Mutex
	start   time.Time
	rand    *rand.Rand
	history []porcupine.Operation
	n       int
	known   [putKeys]uint64 // versions that somebody saw
	repeats int
}

// write makes one write and repeats it under its request id until it is answered, as the helper command does.
func (w *writers) write(p *process) {
	w.mu.Lock()
	w.n++
	id := task.RequestID(fmt.Sprintf("w%d", w.n))
	in := putInput{key: w.rand.Intn(putKeys), bound: w.rand.Intn(4) > 0}
	in.ifIs = w.known[in.key]
	w.mu.Unlock()
	var ifVersion *uint64
	if in.bound {
		ifVersion = &in.ifIs
	}
	called := time.Since(w.start)
	out := putOutput{unknown: true}
	for try := 0; try < 10 && out.unknown && p.r.ctx.Err() == nil; try++ {
		ctx, cancel := context.WithTimeout(p.r.ctx, 2*time.Second)
		version, err := p.r.worker.StatePut(ctx, &p.a, fmt.Sprint(in.key), []byte(id), ifVersion, id)
		cancel()
		switch {
		case err == nil:
			out = putOutput{version: version}
		case errors.Is(err, task.ErrConflict):
			out = putOutput{conflict: true}
			if v, err := p.read(in.key); err == nil {
				version = v
			}
		case errors.Is(err, task.ErrStaleToken):
			try = 10 // an earlier try may have arrived
		default:
			w.mu.Lock()
			w.repeats++
			w.mu.Unlock()
		}
		w.mu.Lock()
		w.known[in.key] = max(w.known[in.key], version)
		w.mu.Unlock()
	}
	answered := int64(time.Since(w.start))
	if out.unknown {
		answered = math.MaxInt64
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, porcupine.Operation{ClientId: w.n, Input: in, Call: int64(called), Output: out, Return: answered})
}

func (p *process) read(key int) (uint64, error) {
	ctx, cancel := context.WithTimeout(p.r.ctx, 2*time.Second)
	defer cancel()
	_, version, err := p.r.worker.StateGet(ctx, &p.a, fmt.Sprint(key))
	return version, err
}

func TestConditionalWritesHaveOneOrder(t *testing.T) {
	var repeats, unknown, conflicts, writes int
	n := max(seeds(24)/4, 6)
	for seed := range int64(n) {
		w := &writers{rand: rand.New(rand.NewSource(seed))}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runWith(t, 3, func(c *cluster) { c.between = w.write }, func(c *cluster) {
				w.mu.Lock()
				w.start = time.Now()
				w.mu.Unlock()
				id := c.submit("j1", stage("a", 10, 10*task.Second))
				r := rand.New(rand.NewSource(seed))
				for range 5 {
					time.Sleep(time.Duration(500+r.Intn(2500)) * time.Millisecond)
					l := c.leader()
					if l == nil {
						continue
					}
					if r.Intn(3) == 0 {
						c.net.Isolate(l.id) // it answers nobody, and does not know yet
						time.Sleep(3 * time.Second)
						c.net.Rejoin(l.id)
						continue
					}
					l.crash()
					time.Sleep(time.Duration(r.Intn(3000)) * time.Millisecond)
					l.start(false)
				}
				c.untilDone(id, 5*time.Minute)
			})
		})
		switch result, _ := porcupine.CheckOperationsVerbose(putModel, w.history, time.Minute); result {
		case porcupine.Illegal:
			for _, op := range w.history {
				t.Logf("%v … %v: %s", time.Duration(op.Call), time.Duration(op.Return), putModel.DescribeOperation(op.Input, op.Output))
			}
			t.Errorf("seed %d: no order explains these %d writes", seed, len(w.history))
		case porcupine.Unknown:
			t.Errorf("seed %d: no verdict on %d writes within a minute", seed, len(w.history))
		}
		repeats += w.repeats
		for _, op := range w.history {
			writes++
			if op.Output.(putOutput).unknown {
				unknown++
			}
			if op.Output.(putOutput).conflict {
				conflicts++
			}
		}
	}
	t.Logf("%d writes, %d conflicts, %d without an answer, %d repeats", writes, conflicts, unknown, repeats)
	if conflicts == 0 || repeats == 0 || writes-conflicts-unknown < 100 {
		t.Error("the writers hardly do anything")
	}
}
