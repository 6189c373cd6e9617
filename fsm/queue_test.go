package fsm

import (
	"fmt"
	"strings"
	"testing"

	"lanjobs/task"
)

// inQueue is a submit to a queue.
func inQueue(queue, id string, stages ...task.StageSpec) *SubmitJob {
	c := submit(id, stages...)
	c.Spec = []byte(strings.Replace(string(c.Spec), `"queue":"default"`, `"queue":"`+queue+`"`, 1))
	return c
}

func (l *ledger) active(queue string, want int) {
	l.t.Helper()
	if q := l.s.Queue(queue); q.Active != want {
		l.t.Fatalf("queue %s has %d active, want %d", queue, q.Active, want)
	}
}

func granted2(r Result) (n int) {
	for _, t := range r.Tokens {
		if t != 0 {
			n++
		}
	}
	return n
}

func TestAQueueHasItsLimitWhateverHappens(t *testing.T) {
	l := newLedger(t)
	l.refused("not_found", inQueue("q", "j1", stage("main", 4)))
	l.ok(0, node("a", 1), node("b", 1), &SetQueue{Name: "q", Max: new(3)})
	st := stage("main", 4)
	st.Retry.Initial = 0
	l.ok(0, inQueue("q", "j1", st), inQueue("q", "j2", st))
	r := l.ok(0, grant("j1", 0, 0, 1), &Grant{Node: "b", Incarnation: 1, Job: "j2", Shards: []int{0, 1, 2, 3}})
	if granted2(r[0]) != 2 || granted2(r[1]) != 1 {
		t.Fatalf("%+v", r)
	}
	l.active("q", 3)
	a := r[0].Tokens
	l.s = reread(t, l.s) // a new replica counts the same
	l.active("q", 3)
	l.ok(0, exit("j1", 0, 0, a[0], 1)) // a failure frees its place, and its retry needs one
	l.active("q", 2)
	l.ok(0, exit("j1", 0, 0, a[0], 1)) // once
	l.active("q", 2)
	if granted2(l.ok(0, grant("j1", 0, 0))[0]) != 1 {
		t.Fatal("a freed place is not given again")
	}
	l.ok(0, &SetQueue{Name: "q", Max: new(1)}) // stops nothing
	l.active("q", 3)
	l.ok(0, node("a", 2)) // crashed and came back with nothing
	l.active("q", 1)
	if granted2(l.ok(0, &Grant{Node: "a", Incarnation: 2, Job: "j1", Shards: []int{0}})[0]) != 0 {
		t.Fatal("a full queue gave a place")
	}
	l.ok(0, &CancelJob{Job: "j2"})
	l.active("q", 1) // its process may still run
	l.lead(task.AssignTTL)
	l.expire()
	l.active("q", 0)
	l.ok(0, &SetQueue{Name: "q", Paused: new(true)})
	if granted2(l.ok(0, &Grant{Node: "a", Incarnation: 2, Job: "j1", Shards: []int{0}})[0]) != 0 || l.s.Queue("q").Room() != 0 {
		t.Fatal("a paused queue gave a place")
	}
	l.ok(0, &SetQueue{Name: "q", Paused: new(false), Max: new(0)})
	if granted2(l.ok(0, &Grant{Node: "a", Incarnation: 2, Job: "j1", Shards: []int{0, 1, 2, 3}})[0]) != 4 {
		t.Fatal("no limit is no limit")
	}
	l.refused("conflict", &SetQueue{Name: "q", Remove: true}, &SetQueue{Name: "default", Remove: true})
	l.refused("not_found", &SetQueue{Name: "r", Remove: true})
	l.refused("invalid", &SetQueue{Name: "q", Max: new(-1)}, &SetQueue{Name: "q", Balance: new(task.Balance("odd"))}, &SetQueue{})
}

func TestQueuesAreBounded(t *testing.T) {
	l := &ledger{t: t, s: New()}
	for i := range task.MaxQueues {
		r, _ := l.s.ApplyBatch(1, &Batch{Commands: []Command{&SetQueue{Name: fmt.Sprint("q", i)}}})
		if (r[0].Err != nil) != (i == task.MaxQueues-1) { // the default one counts
			t.Fatalf("queue %d: %v", i, r[0].Err)
		}
	}
	for i := range task.MaxSchedules + 1 {
		r, _ := l.s.ApplyBatch(1, &Batch{Commands: []Command{scheduled(fmt.Sprint("s", i), task.OverlapSkip, stage("main", 1))}})
		if (r[0].Err != nil) != (i == task.MaxSchedules) {
			t.Fatalf("schedule %d: %v", i, r[0].Err)
		}
	}
	if err := l.s.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestPausedJobsAndPriorities(t *testing.T) {
	l := newLedger(t)
	l.ok(0, node("a", 1), &SetQueue{Name: "q", Max: new(1)}, &SetQueue{Name: "r"})
	for i, q := range []string{"default", "q", "r", "q", "default"} {
		l.ok(0, inQueue(q, fmt.Sprint("j", i), stage("main", 2)))
	}
	order := func(want string) {
		t.Helper()
		ids := ""
		l.ready(func(j *Job) bool { ids += string(j.ID) + " "; return true })
		if ids != want {
			t.Fatalf("%q, want %q", ids, want)
		}
		l.s = reread(t, l.s)
	}
	order("j0 j1 j2 j3 j4 ")
	l.ok(0, &SetJob{Job: "j3", Action: JobPriority, Priority: 100}, &SetJob{Job: "j0", Action: JobPriority, Priority: 0})
	order("j3 j1 j2 j4 j0 ")
	l.ok(0, &SetJob{Job: "j2", Action: JobPause})
	order("j3 j1 j4 j0 ")
	if granted2(l.ok(0, grant("j2", 0, 0))[0]) != 0 {
		t.Fatal("a paused job was granted")
	}
	tok := l.one("j3", 0, 0)
	order("j4 j0 ") // q is full
	l.ok(0, &SetJob{Job: "j3", Action: JobPause}, exit("j3", 0, 0, tok, 0))
	order("j1 j4 j0 ")
	l.ok(0, &SetJob{Job: "j3", Action: JobResume}, &SetQueue{Name: "default", Paused: new(true)})
	order("j3 j1 ")
	seen := ""
	l.s.EachReady(func(j *Job) Next { seen += string(j.ID); return NextQueue })
	if seen != "j3" {
		t.Fatal(seen)
	}
	l.refused("invalid", &SetJob{Job: "j1", Action: JobPriority, Priority: 101}, &SetJob{Job: "j1", Action: "paint"})
	l.refused("not_found", &SetJob{Job: "j9", Action: JobPause})
	l.ok(0, &CancelJob{Job: "j1"})
	l.refused("conflict", &SetJob{Job: "j1", Action: JobPause})
}
