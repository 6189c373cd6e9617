package clustertest

import (
	"encoding/json"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/schedule"
)

// schedule stores a job that runs again and again.
func (c *cluster) schedule(name string, s task.Schedule, stages ...task.StageSpec) {
	c.t.Helper()
	data, err := json.Marshal(task.Spec{Name: name, Queue: "default", Priority: 50, Retain: task.Day, Schedule: &s, Stages: stages})
	if err != nil {
		c.t.Fatal(err)
	}
	if r := c.propose(&fsm.SubmitJob{RequestID: task.RequestID("r-" + name), Job: task.JobID(name), Spec: data, Digest: data}); r.Err != nil {
		c.t.Fatal(r.Err)
	}
}

// runs gives the jobs of a schedule by the ledger of whoever leads, oldest first.
func (c *cluster) runs(name string) (out []*fsm.Job) {
	c.t.Helper()
	c.until(time.Minute, "a leader", func() bool { return c.leader() != nil })
	c.leader().core.Read(func(s *fsm.State) {
		s.Jobs(func(j *fsm.Job) bool {
			if j.Schedule == name {
				clone := *j
				out = append(out, &clone)
			}
			return true
		})
	})
	return out
}

// C06, C01: leaders die around the full minute again and again; each minute has its run, once, late by the election.
func TestLeadersDieAndEveryMinuteHasItsRun(t *testing.T) {
	run(t, 3, func(c *cluster) {
		s := schedule.Default()
		s.Cron = "* * * * *"
		s.Overlap = task.OverlapAllow
		start := time.Now()
		c.schedule("minutely", s, stage("a", 1, task.Minute))
		for range 6 {
			next := time.Now().Truncate(time.Minute).Add(58 * time.Second)
			if next.Before(time.Now()) {
				next = next.Add(time.Minute)
			}
			time.Sleep(time.Until(next))
			c.until(time.Minute, "a leader", func() bool { return c.leader() != nil })
			l := c.leader()
			l.crash()
			time.Sleep(17 * time.Second)
			l.start(false)
		}
		time.Sleep(10 * time.Second)
		due := start.Truncate(time.Minute).Add(time.Minute)
		for _, j := range c.runs("minutely") {
			late := time.UnixMilli(j.Submitted).Sub(due)
			if j.ScheduledFor != due.UnixMilli() || late < 0 || late > 10*time.Second {
				t.Errorf("run %s for %s, %s late; due was %s", j.ID, time.UnixMilli(j.ScheduledFor).UTC(), late, due.UTC())
			}
			due = due.Add(time.Minute)
		}
		if due.Before(time.Now()) {
			t.Errorf("no run for %s and later", due.UTC())
		}
	})
}

// C17: runs that last longer than their interval, without overlap, under leaders that die.
func TestLeadersDieAndRunsDoNotOverlap(t *testing.T) {
	run(t, 3, func(c *cluster) {
		c.pace = 10 // about 30 s a run
		s := schedule.Default()
		s.Every = 10 * task.Second
		c.schedule("busy", s, stage("a", 1, task.Minute))
		for range 4 {
			time.Sleep(40 * time.Second)
			l := c.leader()
			if l == nil {
				continue
			}
			l.crash()
			time.Sleep(10 * time.Second)
			l.start(false)
		}
		time.Sleep(40 * time.Second)
		runs := c.runs("busy")
		for i := 1; i < len(runs); i++ {
			if before := runs[i-1]; !before.State.Final() || before.Ended > runs[i].Submitted {
				t.Errorf("run %s began before %s had ended", runs[i].ID, before.ID)
			}
		}
		if len(runs) < 3 {
			t.Errorf("%d runs", len(runs))
		}
		c.leader().core.Read(func(s *fsm.State) {
			if sc := s.Schedule("busy"); sc.Skipped == 0 {
				t.Error("nothing was skipped")
			}
		})
		c.propose(&fsm.SetSchedule{Name: "busy", Action: fsm.ScheduleRemove, RequestID: "rm"})
	})
}

// An idle cluster with a schedule writes nothing between its times.
func TestAnIdleClusterWithASchedule(t *testing.T) {
	run(t, 3, func(c *cluster) {
		s := schedule.Default()
		s.Cron = "0 3 * * *"
		c.schedule("nightly", s, stage("a", 1, task.Minute))
		time.Sleep(2 * time.Minute)
		index := func() (n uint64) {
			c.leader().core.Read(func(s *fsm.State) { n = s.Index })
			return n
		}
		before := index()
		if night := time.Now().Truncate(24 * time.Hour).Add(3 * time.Hour); time.Until(night) > 0 && time.Until(night) < 21*time.Minute {
			time.Sleep(22 * time.Minute)
			before = index()
		}
		time.Sleep(20 * time.Minute)
		if n := index() - before; n != 0 {
			t.Errorf("%d entries in 20 idle minutes", n)
		}
	})
}

// Nothing else wakes the leader of an idle cluster: it comes back by itself exactly when something is due.
func TestASleepingLeaderWakesForASchedule(t *testing.T) {
	run(t, 1, func(c *cluster) {
		s := schedule.Default()
		s.Cron = "7-59/10 * * * *"
		c.schedule("sometimes", s, stage("a", 1, task.Minute))
		time.Sleep(40 * time.Minute)
		runs := c.runs("sometimes")
		for _, j := range runs {
			if late := j.Submitted - j.ScheduledFor; late < 0 || late > 100 {
				t.Errorf("the run for %s is %d ms late", time.UnixMilli(j.ScheduledFor).UTC(), late)
			}
		}
		if len(runs) < 3 {
			t.Errorf("%d runs", len(runs))
		}
	})
}
