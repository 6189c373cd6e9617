package plan_test

import (
	"testing"
	"time"

	"lanjobs/task"
)

// C15: what run_all makes up runs one after another where runs may not overlap, however long that takes; what is due meanwhile is passed
// over as overlap says, and then the schedule has its normal rhythm.
func TestMissedTimesAreMadeUpInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		overlap             task.Overlap
		every, run, off     time.Duration
		made                int // the misses that are made up
		until               time.Duration
		grace               task.Millis
		missed, passed, max int
	}{
		"short runs":  {task.OverlapSkip, time.Minute, 5 * time.Second, 12*time.Minute + 40*time.Second, 12, time.Minute + 20*time.Second, task.Hour, 12, 0, 100},
		"capped":      {task.OverlapSkip, time.Minute, 5 * time.Second, 12*time.Minute + 40*time.Second, 3, time.Minute, task.Hour, 12, 0, 3},
		"queued":      {task.OverlapQueue, time.Minute, 5 * time.Second, 12*time.Minute + 40*time.Second, 12, time.Minute + 20*time.Second, task.Hour, 12, 0, 100},
		"longer runs": {task.OverlapSkip, 20 * time.Second, 45 * time.Second, 70 * time.Second, 3, 160 * time.Second, task.Minute, 3, 5, 100},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, "2026-11-29T00:00:01Z")
			o.runFor = c.run
			o.set("a", task.Schedule{Every: task.MillisOf(c.every), Overlap: c.overlap, Misfire: task.MisfireRunAll, RunAllMax: c.max, MisfireGrace: c.grace})
			o.depose()
			o.pass(c.off)
			o.elect()
			noticed := o.wall
			for range int(c.until / time.Second) {
				o.pass(time.Second)
				if n := o.s.Live(); n > 1 {
					t.Fatalf("%d runs at once", n)
				}
			}
			made := 0
			for _, f := range o.firings("a") {
				if !f.due.After(noticed) {
					made++
				}
			}
			if sc := o.s.Schedule("a"); made != c.made || int(sc.Missed) < c.missed || sc.Skipped > 0 && c.passed == 0 {
				t.Errorf("%d made up, %d missed, %d skipped; want %+v", made, sc.Missed, sc.Skipped, c)
			}
			before := len(o.firings("a"))
			o.pass(10 * time.Minute)
			for _, f := range o.firings("a")[before:] {
				if late := f.at.Sub(f.due); late > 2*time.Second && c.overlap == task.OverlapSkip {
					t.Errorf("%s ran %s late, after the break was made up", f.nominal, late)
				}
			}
			if n := len(o.firings("a")) - before; n < 9 {
				t.Errorf("%d runs in the ten minutes after", n)
			}
		})
	}
}
