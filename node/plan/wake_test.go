package plan_test

import (
	"slices"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
)

// A schedule has its machines woken from three minutes before an occurrence until five after it, every half minute, while they are
// not here; the next leader goes on with that.
func TestSchedulesWakeTheirMachines(t *testing.T) {
	o := newOffice(t, "2026-11-29T02:00:00Z")
	o.apply(&fsm.RegisterNode{Info: task.NodeInfo{ID: "x", Name: "nas", Slots: 1}, Incarnation: 1},
		&fsm.RegisterNode{Info: task.NodeInfo{ID: "y", Name: "pc", Slots: 1}, Incarnation: 1})
	o.apply(&fsm.SetOnline{Node: "x", Reason: task.ReasonAsleep}, &fsm.SetOnline{Node: "y"})
	o.set("nightly", task.Schedule{Cron: "0 3 * * *", Timezone: "UTC", Overlap: task.OverlapAllow, Misfire: task.MisfireRunOnce, MisfireGrace: task.Hour, Wake: "nas"})
	var at []time.Duration // of each packet, from the occurrence
	due := o.wall.Add(time.Hour)
	awake := time.Duration(0)
	for range 80 * 60 {
		o.pass(time.Second)
		awake += time.Second
		ids, wait, ok := o.timetable.Wakes(o.s, o.wall, awake)
		if !ok || wait <= 0 {
			t.Fatalf("wait %s, ok %v", wait, ok)
		}
		for _, id := range ids {
			if id != "x" {
				t.Fatalf("wakes %s", id)
			}
			at = append(at, o.wall.Sub(due))
		}
		if o.wall.Equal(due.Add(2 * time.Minute)) {
			o.elect()
		}
	}
	if len(at) < 16 || at[0] < -3*time.Minute || at[0] > -3*time.Minute+2*time.Second || at[len(at)-1] > 5*time.Minute {
		t.Fatalf("packets at %v", at)
	}
	for i := 1; i < len(at); i++ {
		// The next leader does not know when the last one was sent.
		if gap := at[i] - at[i-1]; gap < 30*time.Second && (at[i] < 2*time.Minute || at[i] > 2*time.Minute+2*time.Second) || gap > 45*time.Second {
			t.Errorf("%s after %s", at[i], at[i-1])
		}
	}
	// Nobody is woken who is here, and none for a schedule that is paused.
	o.pass(24*time.Hour - 22*time.Minute)
	o.apply(&fsm.SetOnline{Node: "x", Online: true})
	if ids, _, _ := o.timetable.Wakes(o.s, o.wall, awake+time.Hour); len(ids) != 0 {
		t.Errorf("wakes %v, which is here", ids)
	}
	o.apply(&fsm.SetOnline{Node: "x"})
	if ids, _, _ := o.timetable.Wakes(o.s, o.wall, awake+time.Hour); !slices.Equal(ids, []task.NodeID{"x"}) {
		t.Errorf("wakes %v", ids)
	}
	o.apply(&fsm.SetSchedule{Name: "nightly", Action: fsm.SchedulePause})
	if ids, _, ok := o.timetable.Wakes(o.s, o.wall, awake+2*time.Hour); ok || len(ids) != 0 {
		t.Errorf("wakes %v for a paused schedule", ids)
	}
}
