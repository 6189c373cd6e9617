package plan_test

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"testing"

	"lanjobs/fsm"
	"lanjobs/task"
)

// The simulation runs the real ledger and the real plan with model machines in true time, single-threaded and seeded: same
// seed, same run. Machines have boot clocks of their own rate, sleep, lose messages and crash; leaders change at any moment,
// with what they had proposed committed or lost. After every step the laws of the ledger are checked, and that no two
// processes of one shard ever act at the same time.

// faults says which faults a run has, as chances per decision.
type faults struct {
	drift, loss, sleep, crash, leader float64
	// Mutations of the holder, to show that the test can fail.
	share     float64 // replaces φ when not 0
	fromReply bool    // counts the deadline from the answer
	noKill    bool    // does not kill what lapsed while asleep
}

type event struct {
	at  int64 // true time, ms
	seq int
	do  func()
}
type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any     { o := *h; e := o[len(o)-1]; *h = o[:len(o)-1]; return e }

type sim struct {
	r     *rand.Rand
	f     faults
	calm  bool // no more faults
	pace  int  // most milliseconds that one step of work takes
	now   int64
	seq   int
	q     events
	st    *fsm.State
	index uint64
	audit map[task.EventKind]int

	term     int
	leads    bool
	measured int64 // true time up to which the leader has given time to the clock
	queue    []pending
	busy     bool
	parked   map[task.NodeID]*simPoll
	machines []*machine
	acked    map[task.ShardRef]uint64 // newest checkpoint whose save was acknowledged
}

type pending struct {
	cmd   fsm.Command
	reply func(fsm.Result)
}

func (s *sim) after(ms int64, f func()) {
	s.seq++
	heap.Push(&s.q, event{s.now + max(ms, 0), s.seq, f})
}
func (s *sim) chance(p float64) bool { return !s.calm && s.r.Float64() < p }
func (s *sim) delay() int64 {
	if s.chance(0.05) {
		return int64(s.r.Intn(3000)) // a slow packet
	}
	return 1 + int64(s.r.Intn(20))
}

func newSim(seed int64, f faults, machines int, stages ...task.StageSpec) *sim {
	s := &sim{pace: 4000, r: rand.New(rand.NewSource(seed)), f: f, st: fsm.New(), audit: map[task.EventKind]int{}, parked: map[task.NodeID]*simPoll{}, acked: map[task.ShardRef]uint64{}}
	for i := range machines {
		m := &machine{s: s, id: task.NodeID(fmt.Sprintf("m%d", i)), rate: 1 + f.drift*(2*s.r.Float64()-1), slots: 2, running: map[task.Token]*attempt{}}
		s.machines = append(s.machines, m)
	}
	s.elect()
	for _, m := range s.machines {
		m.start()
	}
	spec := task.Spec{Name: "sim", Queue: "default", Retain: task.Day, Stages: stages}
	data, _ := json.Marshal(spec)
	s.after(100, func() { s.ask(&fsm.SubmitJob{RequestID: "r", Job: "j", Spec: data, Digest: data}, nil) })
	return s
}

// fault is a broken law, thrown by fail and caught by run.
type fault string

func (s *sim) fail(format string, args ...any) {
	panic(fault(fmt.Sprintf("at %d ms: %s", s.now, fmt.Sprintf(format, args...))))
}

// --- the machine ---

// overlap fails if two processes of one shard act at this moment (I1, I2).
func (s *sim) overlap(ref task.ShardRef) {
	var who []string
	for _, m := range s.machines {
		for tok, x := range m.running {
			if x.acting && !m.asleep && x.a.Ref() == ref {
				who = append(who, fmt.Sprintf("%s under token %d", m.id, tok))
			}
		}
	}
	if len(who) > 1 {
		s.fail("two processes act on %v: %v", ref, who)
	}
}

// run goes on until the job is final or the time is over, and gives the law that broke, "" if none did.
func (s *sim) run(faultsUntil, until int64) (broken string) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(fault)
			if !ok {
				panic(p)
			}
			broken = string(f)
		}
	}()
	for len(s.q) > 0 && s.now < until {
		e := heap.Pop(&s.q).(event)
		s.now = e.at
		s.calm = s.now >= faultsUntil
		e.do()
		if j := s.st.Job("j"); j != nil && j.State.Final() {
			break
		}
	}
	return ""
}

func simStage(name string, shards int, ttl task.Millis, needs ...string) task.StageSpec {
	r := task.DefaultRetry()
	r.Initial, r.LeaseLosses = task.Second, 1000
	return task.StageSpec{Name: name, Shards: shards, Needs: needs, When: task.WhenSuccess, Run: "x", Lease: task.DefaultLease(ttl), Retry: r}
}

func seeds(normal int) int {
	if n, err := strconv.Atoi(os.Getenv("LANJOBS_SEEDS")); err == nil {
		return n * 10
	}
	return normal
}

var rough = faults{drift: 0.1, loss: 0.15, sleep: 0.3, crash: 0.1, leader: 0.7}

func TestNoTwoProcessesActOnAShardWhateverHappens(t *testing.T) {
	moved := 0
	for seed := range int64(seeds(400)) {
		ttl := []task.Millis{2000, 5000, 10000, 60000}[seed%4]
		s := newSim(seed, rough, 3, simStage("a", 4, ttl), simStage("b", 2, ttl, "a"))
		if broken := s.run(300_000, 3_600_000); broken != "" {
			t.Fatalf("seed %d: %s", seed, broken)
		}
		if j := s.st.Job("j"); j == nil || j.State != task.JobSucceeded {
			t.Fatalf("seed %d: an hour after the faults the job is not done: %+v", seed, j)
		}
		moved += s.audit[task.EventLeaseExpire]
	}
	if moved == 0 {
		t.Fatal("no lease ever expired: the faults do not bite")
	}
}

func TestWithoutFaultsNothingExpiresInTenHours(t *testing.T) {
	for _, leader := range []float64{0, 0.01} { // with a failover now and then too (I12)
		s := newSim(7, faults{drift: 0.1, leader: leader}, 3, simStage("a", 60, 60000))
		s.pace = 1_300_000
		if broken := s.run(36_000_000, 36_000_000); broken != "" {
			t.Fatal(broken)
		}
		if n := s.audit[task.EventLeaseExpire]; n != 0 || s.audit[task.EventLeaseConfirm] == 0 {
			t.Errorf("leader changes %v: %d leases expired, %d confirmed", leader > 0, n, s.audit[task.EventLeaseConfirm])
		}
		if s.now < 35_000_000 {
			t.Errorf("the job ended after %d ms", s.now)
		}
	}
}

// The mutants of the holder must be caught; otherwise the tests above prove nothing.
func TestTheSimulationCatchesWrongHolders(t *testing.T) {
	for name, f := range map[string]faults{
		"counts from the answer": {drift: 0.1, loss: 0.15, sleep: 0.6, leader: 0.7, fromReply: true},
		"believes 1.3 TTL":       {drift: 0.1, loss: 0.3, sleep: 0.3, leader: 0.7, share: 1.3},
		"forgets its sleep":      {drift: 0.1, loss: 0.15, sleep: 0.6, leader: 0.7, noKill: true},
	} {
		caught := int64(-1)
		for seed := int64(0); seed < 400 && caught < 0; seed++ {
			s := newSim(seed, f, 3, simStage("a", 4, 5000), simStage("b", 2, 5000, "a"))
			if s.run(300_000, 3_600_000) != "" {
				caught = seed
			}
		}
		if caught < 0 {
			t.Errorf("a holder that %s is not caught", name)
		}
	}
}
