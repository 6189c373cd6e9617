package fsm

import (
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// keyed is a submit whose shards have keys that count for an hour.
func keyed(id, key string, shards int) *SubmitJob {
	st := stage("main", shards)
	st.ShardKey = key
	c := submit(id, st)
	c.Spec = []byte(strings.Replace(string(c.Spec), `"retain":`, `"idempotency_window":3600000,"retain":`, 1))
	return c
}

func TestAKeyThatHasSucceededIsSkipped(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), keyed("j1", "inv-${LANJOBS_SHARD}", 3))
	l.finish("j1", 0, 0)
	l.finish("j1", 0, 2)
	_, events := l.do(0, keyed("j2", "inv-${LANJOBS_SHARD}", 4))
	skips := ""
	for _, e := range events {
		if e.Kind == task.EventShardSkip {
			skips += e.Shards + " " + e.Reason
		}
	}
	if skips != "0,2 shard_key had succeeded in j1" || states(l.s.Job("j2")) == "" || l.shard("j2", 0, 2).Skipped() != "j1" || l.shard("j2", 0, 1).State != task.ShardPending {
		t.Fatalf("%q, %+v", skips, l.shard("j2", 0, 2))
	}
	l.s = reread(t, l.s)
	l.finish("j1", 0, 1)
	if granted2(l.ok(0, grant("j2", 0, 1))[0]) != 0 || l.shard("j2", 0, 1).Skipped() != "j1" { // it has succeeded since
		t.Fatalf("%+v", l.shard("j2", 0, 1))
	}
	l.finish("j2", 0, 3)
	if j := l.s.Job("j2"); j.State != task.JobSucceeded {
		t.Fatal(j.State)
	}
	if r := l.ok(0, keyed("j3", "inv-${LANJOBS_SHARD}", 4))[0]; r.Job != "j3" || l.s.Job("j3").State != task.JobSucceeded { // nothing to do
		t.Fatal(l.s.Job("j3").State)
	}
	l.ok(0, &RetryJob{Job: "j1", All: true}) // by a person: all of it again
	if granted2(l.ok(0, grant("j1", 0, 0))[0]) != 1 {
		t.Fatal("a person's retry was skipped by the job's own keys")
	}
}

func TestProofOfAKeyOutlivesItsJobAndNotItsWindow(t *testing.T) {
	l := newLedger(t)
	c := keyed("j1", "k", 1)
	c.Spec = []byte(strings.Replace(string(c.Spec), `"retain":86400000`, `"retain":0`, 1))
	l.ok(0, node("a", 1), c)
	l.finish("j1", 0, 0)
	l.s.ApplyBatch(9, &Batch{Idle: requestWindow})
	l.ok(0, &CollectJobs{Jobs: []task.JobID{"j1"}})
	if l.s.Job("j1") != nil || l.s.KeyProof("k") == nil {
		t.Fatal("the proof went with the job")
	}
	l.s = reread(t, l.s)
	l.ok(0, keyed("j2", "k", 1))
	if l.s.Job("j2").State != task.JobSucceeded {
		t.Fatal(l.s.Job("j2").State)
	}
	l.s.ApplyBatch(9, &Batch{Idle: task.Hour - requestWindow})
	if l.s.KeyProof("k") != nil || len(l.s.keyAt) != 0 || l.s.keys.n != 1 {
		t.Fatal("the proof counts beyond its window")
	}
	l.ok(0, keyed("j3", "k", 1))
	if l.s.Job("j3").State != task.JobPending {
		t.Fatal(l.s.Job("j3").State)
	}
}

func TestKeysAreBounded(t *testing.T) {
	s := New()
	j := &Job{ID: "j1", Spec: &Spec{Spec: task.Spec{IdempotencyWindow: 1000, Stages: []task.StageSpec{{ShardKey: "${LANJOBS_SHARD}"}}}}}
	for i := range 3 * keyPurge {
		s.Led = task.Millis(i)
		s.prove(j, 0, i)
		s.prove(j, 0, i) // again: one proof
	}
	if len(s.keyAt) != 3*keyPurge || len(s.keyEnds) > 2*len(s.keyAt)+1001 {
		t.Fatal(len(s.keyAt), len(s.keyEnds))
	}
	for want := 2 * keyPurge; want >= 0; want -= keyPurge { // a part with each batch
		if s.ApplyBatch(1, &Batch{Idle: task.Hour}); len(s.keyAt) != want || s.KeyProof("0") != nil {
			t.Fatal(len(s.keyAt), want)
		}
	}
	if s.weight != 0 || len(s.keys.pages) > 1 || len(s.keyEnds) > 0 {
		t.Fatal(s.weight, len(s.keys.pages), len(s.keyEnds))
	}
	many := task.StageSpec{ShardKey: "k", Shards: maxKeys / 2}
	if problem := s.room(&Spec{Spec: task.Spec{Stages: []task.StageSpec{many, many, {ShardKey: "k", Shards: 1}}}}); problem == nil {
		t.Error("more keys than are allowed")
	}
	for i := range 600 {
		s.prove(j, 0, i)
	}
	s.renumberKeys()
	if s.keys.n != 600 || s.KeyProof("599") == nil {
		t.Fatal(s.keys.n)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestDatesAreWrittenAsTheLibraryDoes(t *testing.T) {
	c := seeded(1)
	for range 20_000 {
		ms := int64(c.Intn(1<<31))*2000 + int64(c.Intn(1000)) - 4_000_000_000_000/8
		if got, want := rfc3339(ms), time.UnixMilli(ms).UTC().Format(time.RFC3339); got != want {
			t.Fatalf("%d: %s, want %s", ms, got, want)
		}
	}
	for _, ms := range []int64{0, 951_782_400_000, 4_107_542_399_999, -1} {
		if got, want := rfc3339(ms), time.UnixMilli(ms).UTC().Format(time.RFC3339); got != want && ms != 0 {
			t.Fatalf("%d: %s, want %s", ms, got, want)
		}
	}
}
