package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"lanjobs/task"
)

func TestCountersDoNotWrap(t *testing.T) {
	st := stage("main", 1)
	st.Retry.LeaseLosses, st.Retry.Attempts, st.Retry.Initial = maxRetries, maxRetries, 0
	l := &ledger{t: t, s: New()}
	l.ok(0, node("a", 1), submit("j1", st))
	drained := task.Outcome{End: task.EndDrained}
	for range math.MaxUint16 + 2 {
		r, _ := l.s.ApplyBatch(0, &Batch{Commands: []Command{grant("j1", 0, 0)}})
		l.s.ApplyBatch(0, &Batch{Commands: []Command{&Report{Node: "a", Reports: []task.Report{{Job: "j1", Token: r[0].Tokens[0], Outcome: drained}}}}})
	}
	sh := l.s.mutShard(l.s.mutJob(0), 0, 0)
	if sh.Tries != math.MaxUint16+2 {
		t.Fatalf("%+v", sh)
	}
	sh.Tries, sh.Fails, sh.Losses = math.MaxInt32, math.MaxUint16, math.MaxUint16
	l.one("j1", 0, 0)
	if sh := reread(t, l.s).Job("j1").Shard(0, 0); sh.Tries != math.MaxInt32 || sh.Token == 0 {
		t.Fatalf("%+v", sh)
	}
	c := exit("j1", 0, 0, l.shard("j1", 0, 0).Token, 1)
	l.ok(0, c)
	if sh := l.shard("j1", 0, 0); sh.Fails != math.MaxUint16 || sh.State != task.ShardFailed {
		t.Fatalf("%+v", sh)
	}
}

func TestLengthsOfTimeDoNotOverflow(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	c := exit("j1", 0, 0, l.one("j1", 0, 0), 0)
	c.Reports[0].Outcome = task.Outcome{End: task.EndDeferred, Wait: math.MaxInt64}
	l.ok(0, c, &SetNode{Node: "a", Action: NodeDrain, After: math.MaxInt64}, &CreateToken{ID: "t", Hash: []byte("h"), Uses: 1, TTL: math.MaxInt64})
	if sh, n := l.shard("j1", 0, 0), l.s.Node("a"); sh.Due <= l.s.Clock || n.DrainUntil <= l.s.Clock || l.s.JoinTokens()[0].Until <= l.s.Led {
		t.Fatalf("%+v, %+v", sh, n)
	}
	last := l.s.Led
	for _, b := range []*Batch{{Idle: math.MaxInt64}, {Elapsed: math.MinInt64, Idle: math.MinInt64}, {Elapsed: math.MaxInt64}} {
		l.s.ApplyBatch(1, b)
		if l.s.Led < last || l.s.Clock > task.Instant(MaxElapsed) {
			t.Fatalf("after %+v: led %d, clock %d", b, l.s.Led, l.s.Clock)
		}
		last = l.s.Led
	}
	if l.s.Led = maxLed - 1; l.s.Clock != task.Instant(MaxElapsed) {
		t.Fatal(l.s.Clock)
	}
	l.s.ApplyBatch(1, &Batch{Idle: math.MaxInt64})
	if l.s.Led != maxLed {
		t.Fatal(l.s.Led)
	}
}

func TestReportedTextsAreCut(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	c := exit("j1", 0, 0, l.one("j1", 0, 0), 1)
	c.Reports[0].Outcome.Tail, c.Reports[0].Outcome.Message = "x"+long, "x"+long
	l.ok(0, c)
	o := l.shard("j1", 0, 0).History()[0].Outcome
	if len(o.Tail) > task.MaxTailBytes || len(o.Message) > task.MaxMessageLength || !utf8.ValidString(o.Tail) || !utf8.ValidString(o.Message) || len(o.Tail) < task.MaxTailBytes-1 {
		t.Fatalf("%d, %d bytes", len(o.Tail), len(o.Message))
	}
	if got := clipTail(strings.Repeat("\x80", 10), 5); got != "" { // the middle of a character that never began
		t.Errorf("%q", got)
	}
	_, events := l.do(0, &CancelJob{Job: "j1", Reason: long, By: long}, &CancelJob{Job: task.JobID(long)}, &Checkpoint{Ref: task.ShardRef{Job: task.JobID(long)}, Seq: 1, Token: 9})
	for _, e := range events {
		if data, _ := json.Marshal(e); len(data) > 4096 {
			t.Errorf("an event has %d bytes", len(data))
		}
	}
}

func TestOutputsAreBoundedHoweverTheyCome(t *testing.T) {
	big := strings.Repeat("v", task.MaxOutputBytes)
	many := func(n int, value string) (kvs []task.KV) {
		for i := range n {
			kvs = append(kvs, task.KV{Name: fmt.Sprint("n", i), Value: value})
		}
		return kvs
	}
	for name, c := range map[string]struct {
		outputs []task.KV
		code    string
	}{
		"one too large":  {[]task.KV{{Name: "a", Value: big + "v"}}, "too_large"},
		"no name":        {[]task.KV{{Value: "v"}}, "too_large"},
		"too many":       {many(task.MaxOutputs+1, ""), "too_large"},
		"too many bytes": {many(17, big), "too_large"},
		"just enough":    {many(15, big), ""},
	} {
		l := newLedger(t)
		l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
		r := exit("j1", 0, 0, l.one("j1", 0, 0), 0)
		r.Reports[0].Outputs = c.outputs
		if got := l.ok(0, r)[0].Codes[0]; got != c.code {
			t.Errorf("%s: %q", name, got)
		}
		if sh := l.shard("j1", 0, 0); (sh.State == task.ShardSucceeded) != (c.code == "") || c.code != "" && sh.Outputs() != nil {
			t.Errorf("%s: %+v", name, sh)
		}
	}
}

func TestAFullHistoryKeepsTheNewestAttempts(t *testing.T) {
	st := stage("main", 2)
	st.Retry.Attempts, st.Retry.Initial = maxRetries, 0
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", st))
	fail := func(shard int) {
		c := exit("j1", 0, shard, l.one("j1", 0, shard), 1)
		c.Reports[0].Outcome.Tail = "tail"
		l.ok(0, c)
	}
	for range task.MaxHistory + 5 {
		fail(0)
		if n := len(l.shard("j1", 0, 0).History()); n > task.MaxHistory {
			t.Fatalf("%d attempts are kept", n)
		}
	}
	if h := l.shard("j1", 0, 0).History(); len(h) != task.MaxHistory || h[len(h)-1].Number != task.MaxHistory+5 {
		t.Fatalf("%d attempts are kept", len(h))
	}
	j := l.s.mutJob(0)
	l.s.weigh(j, fullHistory) // as after a hundred thousand failed shards
	c := exit("j1", 0, 0, l.s.mustGrant(t, 0), 1)
	c.Reports[0].Outcome.Tail = "tail"
	l.s.ApplyBatch(9, &Batch{Commands: []Command{c}})
	l.s.weigh(l.s.mutJob(0), -fullHistory)
	if h := l.shard("j1", 0, 0).History(); len(h) != 1 || h[0].Outcome.Tail != "" || h[0].Number != task.MaxHistory+6 {
		t.Fatalf("%+v", h)
	}
	if err := l.s.Check(); err != nil {
		t.Fatal(err)
	}
}

func (s *State) mustGrant(t *testing.T, shard int) task.Token {
	r, _ := s.ApplyBatch(9, &Batch{Commands: []Command{grant("j1", 0, shard)}})
	if r[0].Err != nil || r[0].Tokens[0] == 0 {
		t.Fatalf("%+v", r)
	}
	return r[0].Tokens[0]
}

func TestWhatTheReplicasCannotHoldIsRefused(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	tok := l.one("j1", 0, 0)
	ref := task.ShardRef{Job: "j1"}
	l.ok(0, &Checkpoint{Ref: ref, Token: tok, Seq: 1, Data: make([]byte, 1000)})
	l.s.shards += maxTotalShards - 1
	if r, _ := l.s.ApplyBatch(9, &Batch{Commands: []Command{submit("j2", stage("main", 1)), submit("j3", stage("main", 1))}}); r[0].Err == nil || r[0].Err.Code != "too_large" || r[1].Err == nil {
		t.Fatalf("%+v", r)
	}
	l.s.shards -= maxTotalShards - 1
	more := int64(maxWeight) - l.s.weight
	l.s.weight += more
	r, _ := l.s.ApplyBatch(9, &Batch{Commands: []Command{
		submit("j2", stage("main", 1)),
		&Checkpoint{Ref: ref, Token: tok, Seq: 2, Data: make([]byte, 1001)},
		&PutOutput{Ref: ref, Token: tok, Output: task.KV{Name: "a", Value: "b"}},
		&PutState{Ref: ref, Token: tok, Key: "k"},
		&Checkpoint{Ref: ref, Token: tok, Seq: 3, Data: make([]byte, 10)},
	}})
	l.s.weight -= more
	for i, r := range r {
		if refused := r.Err != nil && r.Err.Code == "too_large"; refused != (i < 4) {
			t.Errorf("command %d: %+v", i, r.Err)
		}
	}
	if err := l.s.Check(); err != nil {
		t.Fatal(err)
	}
}

// TestReportedOutputsAreNoWayAround: a million shards with a few KiB each would be more than a replica holds.
func TestReportedOutputsAreNoWayAround(t *testing.T) {
	for level, want := range map[int]string{Level: "too_large", Level - 1: ""} { // those below do not know the rule
		a := node("a", 1)
		a.Info.Level = level
		l := newLedger(t)
		l.ok(0, a, submit("j1", stage("main", 2)))
		c := exit("j1", 0, 0, l.one("j1", 0, 0), 0)
		c.Reports[0].Outputs = []task.KV{{Name: "a", Value: "b"}}
		plain := exit("j1", 0, 1, l.one("j1", 0, 1), 0)
		more := int64(maxWeight) - l.s.weight
		l.s.weight += more
		r, _ := l.s.ApplyBatch(9, &Batch{Commands: []Command{c, plain}})
		l.s.weight -= more
		if got := r[0].Codes[0]; got != want || r[1].Codes[0] != "" {
			t.Errorf("level %d: %q, and %q without outputs", level, got, r[1].Codes[0])
		}
		if err := l.s.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSharedKeysAreBounded(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	tok := l.one("j1", 0, 0)
	put := func(key string, n int) *task.Problem {
		r, _ := l.do(0, &PutState{Ref: task.ShardRef{Job: "j1"}, Token: tok, Key: key, Value: make([]byte, n)})
		return r[0].Err
	}
	for i := range 15 {
		if p := put(fmt.Sprint("k", i), task.MaxStateValueBytes); p != nil {
			t.Fatal(p)
		}
	}
	for _, c := range []struct {
		key string
		n   int
	}{{"", 1}, {strings.Repeat("k", maxKeyLength+1), 1}, {"k0", task.MaxStateValueBytes + 1}, {"k15", task.MaxStateValueBytes}} {
		if p := put(c.key, c.n); p == nil || p.Code != "too_large" {
			t.Errorf("key of %d bytes with %d: %v", len(c.key), c.n, p)
		}
	}
	if p := put("k0", 1); p != nil {
		t.Fatal(p)
	}
}

func TestSpecsOutOfBoundsAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*task.Spec){
		"no stages":            func(s *task.Spec) { s.Stages = nil },
		"two of a name":        func(s *task.Spec) { s.Stages[1].Name = "a" },
		"no name":              func(s *task.Spec) { s.Stages[1].Name = "" },
		"no shards":            func(s *task.Spec) { s.Stages[0].Shards = 0 },
		"too many shards":      func(s *task.Spec) { s.Stages[0].Shards = task.MaxShards },
		"shards that overflow": func(s *task.Spec) { s.Stages[0].Shards = math.MaxInt },
		"needs itself":         func(s *task.Spec) { s.Stages[1].Needs = []string{"b"} },
		"needs what is not":    func(s *task.Spec) { s.Stages[1].Needs = []string{"x"} },
		"needs one twice":      func(s *task.Spec) { s.Stages[1].Needs = []string{"a", "a"} },
		"needs a later":        func(s *task.Spec) { s.Stages[0].Needs = []string{"b"} },
		"priority":             func(s *task.Spec) { s.Priority = 101 },
		"retain":               func(s *task.Spec) { s.Retain = -1 },
		"ttl":                  func(s *task.Spec) { s.Stages[0].Lease.TTL = 1 },
		"attempts":             func(s *task.Spec) { s.Stages[0].Retry.Attempts = math.MaxUint16 },
		"losses":               func(s *task.Spec) { s.Stages[0].Retry.LeaseLosses = 0 },
		"factor":               func(s *task.Spec) { s.Stages[0].Retry.Factor = 1e300 },
		"wait":                 func(s *task.Spec) { s.Stages[0].Retry.Max = math.MaxInt64 },
		"percent":              func(s *task.Spec) { s.Stages[0].Success.Percent = math.MaxInt32 },
		"parallelism":          func(s *task.Spec) { s.Stages[0].Parallelism = -1 },
		"items":                func(s *task.Spec) { s.Stages[0].Items = []string{"x", "y"} },
		"when":                 func(s *task.Spec) { s.Stages[0].When = "later" },
		"too wide a number":    func(s *task.Spec) { s.Stages[0].Retry.PermanentOn = []int{4294967} }, // made wider below
	} {
		spec := task.Spec{Name: "x", Priority: 50, Stages: []task.StageSpec{stage("a", 1), stage("b", 1, "a")}}
		spoil(&spec)
		data, _ := json.Marshal(spec)
		data = bytes.Replace(data, []byte("[4294967]"), []byte("[4294967295]"), 1)
		l := newLedger(t)
		if r, ev := l.do(0, &SubmitJob{Job: "j1", Spec: data}); r[0].Err == nil || r[0].Err.Code != "invalid" || len(ev) != 0 || len(l.s.specs) != 0 {
			t.Errorf("%s: %+v", name, r[0])
		}
	}
}

func TestAForgedSpecTakesLittleMemory(t *testing.T) {
	for _, forged := range []string{
		`{"stages":[` + strings.Repeat("{},", 300_000) + `{}]}`,
		`{"stages":[` + strings.Repeat("{},", 300_000) + `{}],"Stages":[{}]}`,
		`{"stages":{"a":[` + strings.Repeat("{},", 300_000) + `{}]}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, _ := New().ApplyBatch(1, &Batch{Commands: []Command{&SubmitJob{Job: "j", Spec: []byte(forged)}}})
		runtime.ReadMemStats(&after)
		if r[0].Err == nil {
			t.Fatal("accepted")
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
			t.Errorf("%d MiB for a spec of %d bytes", n>>20, len(forged))
		}
	}
}

func TestAForgedLengthTakesLittleMemory(t *testing.T) {
	e := &enc{b: []byte{batchVersion, 4, 0, 0, 0, 0, 1, byte(kindReport)}}
	e.rec(func(e *enc) {
		e.str("a")
		e.u64(1 << 20) // reports, of which not even the first is whole
		e.b = append(e.b, make([]byte, 1<<20)...)
	})
	endless := &enc{b: []byte{batchVersion, 4, 0, 0, 0, 0, 1, byte(kindReport)}}
	endless.rec(func(e *enc) { e.str("a"); e.u64(1 << 40) })
	snapshot := &enc{b: []byte(snapshotMagic)}
	snapshot.u64(snapshotVersion)
	snapshot.rec(New().encodeHead)
	snapshot.u64(0)
	snapshot.u64(0)
	snapshot.num(maxJobSeq)
	snapshot.num(0)
	snapshot.rec(func(e *enc) {})
	for name, decode := range map[string]func() error{
		"a list":          func() error { _, err := DecodeBatch(e.b); return err },
		"a longer list":   func() error { _, err := DecodeBatch(endless.b); return err },
		"a table of jobs": func() error { _, err := Decode(snapshot.b); return err },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := decode()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 16<<20 {
			t.Errorf("%s: %d MiB, %v", name, n>>20, err)
		}
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 2)), submit("j2", stage("main", 1)))
	toks := l.ok(0, grant("j1", 0, 0, 1))[0].Tokens
	l.ok(0, exit("j1", 0, 1, toks[1], 1))
	for name, damage := range map[string]func(*State){
		"a job twice":             func(s *State) { *s.jobs.mut(1, s.epoch) = s.mutJob(0) },
		"an id twice":             func(s *State) { s.mutJob(1).ID = "j1" },
		"a request twice":         func(s *State) { s.mutJob(1).Request = "r-j1" },
		"a node twice":            func(s *State) { s.nodes = append(s.nodes, s.nodes[0]) },
		"no node":                 func(s *State) { s.nodes = nil },
		"another node":            func(s *State) { s.mutShard(s.mutJob(0), 0, 0).Node = 1 },
		"a token never given":     func(s *State) { s.nextToken = 0 },
		"a generation too high":   func(s *State) { s.Generation = maxGeneration + 1 },
		"a number too high":       func(s *State) { s.nextToken = maxToken + 1 },
		"two leases of a token":   func(s *State) { *s.mutShard(s.mutJob(0), 0, 1) = *s.mutJob(0).Shard(0, 0) },
		"a lease without end":     func(s *State) { s.mutShard(s.mutJob(0), 0, 0).Due += task.Instant(task.Day) },
		"a lease without a token": func(s *State) { s.mutShard(s.mutJob(0), 0, 0).Token = 0 },
		"a lease in a stage that is done": func(s *State) {
			j := s.mutJob(0)
			j.Stages[0].State, j.State = task.StageFailed, task.JobFailed
		},
		"a clock before its beginning": func(s *State) { s.Clock = -1 },
		"more clock than was led":      func(s *State) { s.Led = task.Millis(s.Clock) - 1 },
		"an unknown job state":         func(s *State) { s.mutJob(0).State = "odd" },
		"a job that nothing can end":   func(s *State) { s.mutJob(1).Stages[0].State = task.StageWaiting },
		"a final job with work":        func(s *State) { s.mutJob(1).State = task.JobFailed },
		"an unknown stage state":       func(s *State) { s.mutJob(1).Stages[0].State = 99 },
		"a stage less":                 func(s *State) { s.mutJob(1).Stages = nil },
		"a stage more":                 func(s *State) { j := s.mutJob(1); j.Stages = append(j.Stages, j.Stages[0]) },
	} {
		s := reread(t, l.s)
		damage(s)
		var buf bytes.Buffer
		if err := s.write(&buf); err != nil {
			t.Fatal(err)
		}
		if s, err := Decode(buf.Bytes()); err == nil || s != nil {
			t.Errorf("%s was read", name)
		}
	}
	var buf bytes.Buffer
	if err := l.s.write(&buf); err != nil {
		t.Fatal(err)
	}
	for cut := range buf.Bytes() {
		if _, err := Decode(buf.Bytes()[:cut]); err == nil {
			t.Errorf("cut at %d of %d it was read", cut, buf.Len())
		}
	}
}

func TestASmallJobTakesASmallPage(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1), stage("other", pageSize+3)))
	l.one("j1", 0, 0)
	l.ok(0, &CancelJob{Job: "j1"})
	for _, s := range []*State{l.s, reread(t, l.s)} {
		j := s.Job("j1")
		for i, want := range [][]int{{1}, {pageSize, 3}} {
			for k, p := range j.Stages[i].shards.pages {
				if len(p.recs) != want[k] {
					t.Errorf("page %d of stage %d has %d records", k, i, len(p.recs))
				}
			}
		}
	}
}

// TestNumbersFitReplicasOf32Bits: an int has 32 bits on some machines, and all must keep the same.
func TestNumbersFitReplicasOf32Bits(t *testing.T) {
	for _, c := range []struct{ in, num, code int64 }{
		{7, 7, 7}, {-1, -1, -1}, {1 << 40, math.MaxInt32, 0}, {-1 << 40, math.MinInt32, 0},
		{0xC0000005, math.MaxInt32, -0x3ffffffb}, // an access violation on Windows
	} {
		e := &enc{}
		e.i64(c.in)
		if got := (&dec{b: e.b}).num(); int64(got) != c.num {
			t.Errorf("%d is read as %d", c.in, got)
		}
		e = &enc{}
		e.rec(func(e *enc) {
			e.str("exited")
			e.i64(c.in)
			e.num(0)
			e.i64(0)
			e.i64(0)
			e.str("")
			e.str("")
		})
		if got := decOutcome(&dec{b: e.b}); int64(got.ExitCode) != c.code || got.End != task.EndExited {
			t.Errorf("exit code %d is read as %d", c.in, got.ExitCode)
		}
	}
}

func TestIdsAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxIDLength+1)
	l := newLedger(t)
	l.ok(0, node("a", 1), submit("j1", stage("main", 1)))
	tok := l.one("j1", 0, 0)
	id, request := submit("j2", stage("main", 1)), submit("j2", stage("main", 1))
	id.Job, request.RequestID = task.JobID(long), task.RequestID(long)
	for _, c := range []Command{id, request, &SubmitJob{Spec: id.Spec}, node(long, 1), &Elected{Node: task.NodeID(long)},
		&CancelJob{Job: "j1", RequestID: task.RequestID(long)}, &RetryJob{Job: "j1", RequestID: task.RequestID(long)},
		&PutOutput{Ref: task.ShardRef{Job: "j1"}, Token: tok, Output: task.KV{Name: "a"}, RequestID: task.RequestID(long)},
		&PutState{Ref: task.ShardRef{Job: "j1"}, Token: tok, Key: "a", RequestID: task.RequestID(long)},
		&InitCluster{ID: long}, &CreateToken{ID: long, Hash: []byte("h"), TTL: 1, Uses: 1}, &CreateToken{ID: "t", Hash: []byte(long), TTL: 1, Uses: 1}} {
		if r, ev := l.do(0, c); r[0].Err == nil || r[0].Err.Code != "invalid" || len(ev) != 0 {
			t.Errorf("%T: %+v", c, r[0])
		}
	}
}

func TestRangesAreVisitedOnce(t *testing.T) {
	for _, c := range []struct {
		in   []task.Range
		want string
	}{
		{nil, "[{0 9}]"},
		{[]task.Range{{First: 3, Last: 4}, {First: 0, Last: 3}}, "[{0 3} {4 4}]"},
		{[]task.Range{{First: -5, Last: 100}, {First: 2, Last: 3}, {First: math.MinInt, Last: math.MaxInt}}, "[{0 9}]"},
		{[]task.Range{{First: 5, Last: 2}, {First: 10, Last: 20}}, "[]"},
	} {
		if got := fmt.Sprint(within(c.in, 10)); got != c.want {
			t.Errorf("%v: %s, want %s", c.in, got, c.want)
		}
	}
}

func TestTheJobTableIsAsLongAsTheJobsInIt(t *testing.T) {
	l := newLedger(t)
	last := task.JobID("")
	for i := range 5000 {
		id := task.JobID(fmt.Sprint("j", i))
		b := &Batch{Idle: task.Minute, Commands: []Command{submit(string(id), stage("main", 1)), &CancelJob{Job: id}, &CollectJobs{Jobs: []task.JobID{last}}}}
		if i == 0 {
			b.Commands = append(b.Commands, node("a", 1))
		}
		l.s.ApplyBatch(uint64(i), b)
		if i%100 == 99 {
			l.s.ApplyBatch(uint64(i), &Batch{Idle: 2 * task.Day})
			var ids []task.JobID
			l.s.Jobs(func(j *Job) bool { ids = append(ids, j.ID); return true })
			l.s.ApplyBatch(uint64(i), &Batch{Commands: []Command{&CollectJobs{Jobs: ids}}})
			if err := l.s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		last = id
	}
	l.ok(0, submit("x", stage("main", 1)))
	twin := reread(t, l.s)
	for _, s := range []*State{l.s, twin} {
		if len(s.jobs.pages) > 2 || s.JobSeqs() != 5001 || s.JobBySeq(7) != nil || s.Job("x").Seq != 5000 || s.shards != 1 || len(s.specs) != 1 {
			t.Fatalf("%d pages from %d, %d jobs", len(s.jobs.pages), s.jobs.first, s.JobSeqs())
		}
		s.ApplyBatch(9, &Batch{Commands: []Command{submit("y", stage("main", 2))}})
	}
	if l.s.Digest() != twin.Digest() {
		t.Fatal("the twins differ")
	}
	if s := reread(t, New()); s.JobSeqs() != 0 {
		t.Fatal("an empty state has jobs")
	}
}

func TestJobsAreNumberedAnewBeforeTheNumbersEnd(t *testing.T) {
	w := newMachine(t, seeded(3))
	for range 60 {
		w.step(w.batch())
	}
	far := (maxJobSeq - w.s.jobs.n) / pageSize * pageSize // as after 2^30 jobs
	shift := func(s *State) {
		frozen, before := s.Snapshot(), s.Digest()
		s.jobs.first += far / pageSize
		s.jobs.n += far
		for s.jobs.n < maxJobSeq-10 {
			s.jobs.push(nil, s.epoch) // submitted and collected since
		}
		s.Jobs(func(j *Job) bool { s.mutJob(j.Seq + far).Seq = j.Seq + far; return true })
		s.index()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if frozen.s.Digest() != before {
			t.Fatal("an earlier snapshot changed")
		}
	}
	shift(w.s)
	shift(w.twin)
	w.restore()
	for range 60 {
		w.step(w.batch(w.submit(), w.command()))
	}
	w.restore()
	if w.s.JobSeqs() >= far {
		t.Fatalf("the next job has number %d", w.s.JobSeqs())
	}
}

func TestEqualSpecsAreStoredAndWrittenOnce(t *testing.T) {
	l := newLedger(t)
	spec := task.Spec{Name: "x", Source: strings.Repeat("s", 10_000), Retain: task.Day, Stages: []task.StageSpec{stage("main", 1)}}
	data, _ := json.Marshal(spec)
	for i := range 500 {
		l.s.ApplyBatch(1, &Batch{Commands: []Command{&SubmitJob{Job: task.JobID(fmt.Sprint("j", i)), Spec: data, Digest: []byte("d")}}})
	}
	var buf bytes.Buffer
	if err := l.s.Snapshot().Write(&buf); err != nil {
		t.Fatal(err)
	}
	if buf.Len() > len(data)+500*100 {
		t.Fatalf("500 jobs of one spec of %d bytes take %d", len(data), buf.Len())
	}
	s := reread(t, l.s)
	if s.Job("j1").Spec != s.Job("j499").Spec || s.Job("j0").Spec.users != 500 || s.weight != int64(len(data)+1) {
		t.Fatal("the spec is there more than once")
	}
}

func TestReadersSeeEachJob(t *testing.T) {
	l := newLedger(t)
	if l.s.JobBySeq(-1) != nil || l.s.JobBySeq(0) != nil {
		t.Fatal("a job that is not there")
	}
	for i := range 3*pageSize + 5 {
		l.s.ApplyBatch(1, &Batch{Commands: []Command{submit(fmt.Sprint("j", i), stage("main", 1))}})
	}
	n := 0
	l.s.Jobs(func(j *Job) bool { n++; return j.Seq == n-1 })
	l.s.JobsNewestFirst(func(j *Job) bool { n--; return j.Seq == n })
	if n != 0 {
		t.Fatal(n)
	}
	l.s.JobsNewestFirst(func(*Job) bool { n++; return n < 4 })
	if n != 4 {
		t.Fatalf("%d after being told to stop at 4", n)
	}
}
