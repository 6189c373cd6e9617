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

const (
	putKeys  = 2
	patience = 15 * time.Second // of a writer without an answer
)

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

// some makes a few writes, with pauses in which something may break.
func (w *writers) some(p *process) {
	for range 3 {
		w.write(p)
		if !p.nap(400 * time.Millisecond) {
			return
		}
	}
}

// nap waits on the machine's clock; false when it went off.
func (p *process) nap(d time.Duration) bool {
	select {
	case <-p.r.m.clock.After(d):
		return true
	case <-p.r.ctx.Done():
		return false
	}
}

// write makes one write and repeats it under its request id until it is answered, as the helper command does.
func (w *writers) write(p *process) {
	w.mu.Lock()
	w.n++
	id := task.RequestID(fmt.Sprintf("w%d", w.n))
	in := putInput{key: w.rand.Intn(putKeys), bound: w.rand.Intn(4) > 0}
	in.ifIs = w.known[in.key]
	if w.rand.Intn(5) == 0 {
		in.ifIs = max(in.ifIs, 2) - 2 // what it was a while ago
	}
	w.mu.Unlock()
	var ifVersion *uint64
	if in.bound {
		ifVersion = &in.ifIs
	}
	called := time.Since(w.start)
	out := putOutput{unknown: true}
	for over := false; !over && out.unknown && p.r.ctx.Err() == nil; over = over || time.Since(w.start)-called > patience {
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
			over = true // an earlier try may have arrived
		default:
			w.mu.Lock()
			w.repeats++
			w.mu.Unlock()
			p.nap(200 * time.Millisecond)
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
			runWith(t, 3, func(c *cluster) { c.between = w.some }, func(c *cluster) {
				w.mu.Lock()
				w.start = time.Now()
				w.mu.Unlock()
				id := c.submit("j1", stage("a", 6, 10*task.Second))
				r := rand.New(rand.NewSource(seed))
				for range 7 {
					time.Sleep(time.Duration(500+r.Intn(2500)) * time.Millisecond)
					l := c.leader()
					if l == nil {
						continue
					}
					switch r.Intn(3) {
					case 0: // it answers nobody, and does not know yet
						c.net.Isolate(l.id)
						time.Sleep(3 * time.Second)
						c.net.Rejoin(l.id)
					case 1: // it hears a worker and commits, and its answers are lost
						m := c.machines[r.Intn(3)]
						c.net.CutOneWay(l.id, m.id)
						time.Sleep(5 * time.Second)
						c.net.HealLink(l.id, m.id)
					case 2:
						l.crash()
						time.Sleep(time.Duration(r.Intn(3000)) * time.Millisecond)
						l.start(false)
					}
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
