package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/task/schedule"
)

// office is a ledger with leaders who come and go, a wall clock, and machines that take some time for each run. Time goes by
// whole seconds. A leader writes only what its plan gives, and at its Next.
type office struct {
	t         *testing.T
	s         *fsm.State
	index     uint64
	wall      time.Time
	shift     time.Duration // of the clock of the leader in office
	timetable *plan.Timetable
	wake      time.Time // of the clock of the leader
	ids       int
	runFor    time.Duration
	ends      map[task.JobID]time.Time
	written   int
	lost      func() bool // whether a batch is lost with its leader
	fired     []firing
	audit     map[task.EventKind]int
}

type firing struct {
	schedule, nominal string
	due, at           time.Time
	job               task.JobID
}

func newOffice(t *testing.T, start string) *office {
	at, err := time.Parse(time.RFC3339, start)
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t, s: fsm.New(), wall: at, ends: map[task.JobID]time.Time{}, audit: map[task.EventKind]int{}}
	o.apply(&fsm.RegisterNode{Info: task.NodeInfo{ID: "n", Name: "n", Slots: 1000}, Incarnation: 1})
	o.elect()
	return o
}

// elect puts a new leader in office.
func (o *office) elect() {
	o.timetable = plan.NewTimetable(func() task.JobID { o.ids++; return task.JobID(fmt.Sprintf("run%d", o.ids)) })
	o.wake = time.Time{}
}

// depose leaves the office empty.
func (o *office) depose() { o.timetable = nil }

func (o *office) leaderWall() time.Time { return o.wall.Add(o.shift) }

func (o *office) apply(cs ...fsm.Command) []fsm.Result {
	o.index++
	o.written++
	res, events := o.s.ApplyBatch(o.index, &fsm.Batch{Leader: "n", Wall: o.leaderWall().UnixMilli(), Commands: cs})
	for _, e := range events {
		o.audit[e.Kind]++
		if e.Kind == task.EventScheduleFire {
			j := o.s.Job(e.Job)
			o.fired = append(o.fired, firing{e.JobName, j.Nominal, time.UnixMilli(j.ScheduledFor).UTC(), o.wall, e.Job})
			o.ends[e.Job] = o.wall.Add(o.runFor)
		}
	}
	return res
}

func (o *office) set(name string, s task.Schedule) {
	o.t.Helper()
	full := schedule.Default()
	full.Cron, full.Every, full.At = s.Cron, s.Every, s.At
	if s.Timezone != "" {
		full.Timezone = s.Timezone
	}
	if s.Overlap != "" {
		full.Overlap = s.Overlap
	}
	if s.Misfire != "" {
		full.Misfire = s.Misfire
	}
	if s.RunAllMax > 0 {
		full.RunAllMax = s.RunAllMax
	}
	if s.MisfireGrace > 0 {
		full.MisfireGrace = s.MisfireGrace
	}
	full.Jitter, full.Wake = s.Jitter, s.Wake
	data, _ := json.Marshal(task.Spec{Name: name, Queue: "default", Priority: 50, Retain: task.Day, Schedule: &full, Stages: []task.StageSpec{simStage("s", 1, 300_000)}})
	if r := o.apply(&fsm.SubmitJob{RequestID: task.RequestID("r" + name), Job: task.JobID("j" + name), Spec: data, Digest: data})[0]; r.Err != nil {
		o.t.Fatal(r.Err)
	}
}

// pass lets time go by.
func (o *office) pass(d time.Duration) {
	for end := o.wall.Add(d); o.wall.Before(end); {
		o.wall = o.wall.Add(time.Second)
		o.finish()
		o.lead()
	}
}

// lead does what the leader's writer does when its timer or something else wakes it.
func (o *office) lead() {
	if o.timetable == nil || o.leaderWall().Before(o.wake) {
		return
	}
	for {
		cs := o.timetable.Schedules(&plan.View{State: o.s, Now: o.s.Clock}, o.leaderWall())
		if len(cs) > 0 {
			if o.lost != nil && o.lost() {
				return
			}
			o.apply(cs...)
		}
		wait, ok := o.timetable.Next(o.s, o.leaderWall())
		o.wake = o.leaderWall().Add(wait)
		if !ok {
			o.wake = o.leaderWall().Add(time.Hour)
		}
		if wait > 0 || !ok {
			return
		}
	}
}

// finish ends the runs whose time is over. Whoever leads hears of it.
func (o *office) finish() {
	for id, at := range o.ends {
		if at.After(o.wall) {
			continue
		}
		delete(o.ends, id)
		if j := o.s.Job(id); j != nil && !j.State.Final() {
			tok := o.apply(&fsm.Grant{Node: "n", Incarnation: 1, Job: id, Shards: []int{0}})[0].Tokens
			if len(tok) == 1 && tok[0] != 0 {
				o.apply(&fsm.Report{Node: "n", Reports: []task.Report{{Job: id, Token: tok[0], Outcome: task.Outcome{End: task.EndExited}}}})
			}
		}
		o.wake = time.Time{}
	}
}

func (o *office) firings(name string) (out []firing) {
	for _, f := range o.fired {
		if f.schedule == name {
			out = append(out, f)
		}
	}
	return out
}

func (o *office) set2(name string, s task.Schedule) {
	full := schedule.Default()
	full.Cron = s.Cron
	data, _ := json.Marshal(task.Spec{Name: name, Queue: "default", Priority: 50, Retain: task.Day, Schedule: &full, Stages: []task.StageSpec{simStage("s", 1, 300_000)}})
	if r := o.apply(&fsm.SubmitJob{RequestID: "again", Job: "again", Spec: data, Digest: data})[0]; r.Err != nil {
		o.t.Fatal(r.Err)
	}
}
