package clustertest

import (
	"fmt"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/schedule"
)

// TestStartsWithTheClockYearsOff: an empty clock battery (1970) and a wrong century (2099), on one machine of three and on the one that
// founds the cluster. Whoever leads: leases, tokens and jobs go on, schedules keep to the times of day that the cluster knows, and
// nothing is left behind that lies decades ahead (C48, I8).
func TestStartsWithTheClockYearsOff(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, who := range []task.NodeID{"n1", "n2"} {
		for _, off := range []time.Duration{-30 * year, 73 * year} {
			t.Run(fmt.Sprintf("%s off by %.0f years", who, off.Hours()/24/365), func(t *testing.T) {
				runWith(t, 3, func(c *cluster) {
					c.wrong, c.era = map[task.NodeID]time.Duration{who: off}, time.Now().Add(-10*time.Minute)
				}, yearsOff)
			})
		}
	}
}

func yearsOff(c *cluster) {
	c.pace = 40
	s := schedule.Default()
	s.Cron, s.Overlap, s.Misfire = "* * * * *", task.OverlapAllow, task.MisfireSkip
	c.schedule("minutely", s, stage("a", 1, task.Minute))
	long := c.submit("long", stage("a", 4, 20*task.Second))
	c.propose(&fsm.CreateToken{ID: "kept", Hash: []byte("kept"), TTL: task.Hour, Uses: 1})
	for _, m := range c.machines { // each leads for three minutes
		for range 20 {
			if l := c.leader(); l == m {
				break
			} else if l != nil {
				l.crash()
				c.until(time.Minute, "another leader", func() bool { return c.leader() != nil })
				l.start(false)
				time.Sleep(2 * time.Second)
			}
		}
		if c.leader() != m {
			continue // it did not win an election; the others of the table have it
		}
		before := len(c.runs("minutely"))
		time.Sleep(3 * time.Minute)
		runs := c.runs("minutely")
		if n := len(runs) - before; n < 2 || n > 4 {
			c.t.Errorf("%s led for 3 minutes with its clock at %s: %d runs", m.id, m.clock.Wall().UTC().Format(time.DateTime), n)
		}
		for _, j := range runs {
			if at := time.UnixMilli(j.ScheduledFor); at.After(time.Now().Add(time.Minute)) || at.Before(c.era) {
				c.t.Fatalf("a run for %s", at.UTC())
			}
		}
	}
	c.untilDone(long, 30*time.Minute)
	l := c.leader()
	l.core.Read(func(s *fsm.State) {
		if at := time.UnixMilli(s.Wall); at.After(time.Now().Add(time.Minute)) || at.Before(c.era) {
			c.t.Errorf("entries are stamped %s", at.UTC())
		}
	})
	if r := c.propose(&fsm.AdmitNode{TokenHash: []byte("kept"), Node: "late", Name: "late"}); r.Err != nil {
		c.t.Errorf("a token of an hour, after some minutes: %v", r.Err)
	}
	c.propose(&fsm.SetSchedule{Name: "minutely", Action: fsm.ScheduleRemove, RequestID: "rm"})
}
