package cli

import (
	"testing"
	"time"

	"lanjobs/task"
)

// Times of sleeps are this person's: asleep, silent and back are told apart (UX 1.3).
func TestSleepNotes(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 5, 0, 0, time.Local)
	at := func(ago time.Duration) *time.Time { s := now.Add(-ago).UTC(); return &s }
	for _, c := range []struct {
		n    task.NodeView
		want string
	}{
		{task.NodeView{State: "asleep", Since: at(55 * time.Minute)}, "(since 11:10)"},
		{task.NodeView{State: "asleep", Since: at(13 * time.Hour), Note: "its lease ends in 4m"}, "(since 28 Nov 23:05, its lease ends in 4m)"},
		{task.NodeView{State: "silent", Since: at(4 * time.Minute), Note: "asleep?, its lease ends in 4m"}, "(asleep since 12:01?, its lease ends in 4m)"},
		{task.NodeView{State: "silent", Since: at(4 * time.Minute)}, ""},
		{task.NodeView{State: "ready", Since: at(5*time.Hour + 43*time.Minute), Note: "slept 7h12m"}, "(slept 7h12m, back since 06:22)"},
		{task.NodeView{State: "ready", Since: at(time.Hour)}, ""},
		{task.NodeView{State: "silent", Note: "asleep?"}, "(asleep?)"},
	} {
		if got := noteText(c.n, now); got != c.want {
			t.Errorf("%+v: %q, want %q", c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		n    task.NodeView
		want string
	}{
		{task.NodeView{State: "ready", Load: &task.Load{}}, "may sleep: nothing runs"},
		{task.NodeView{State: "ready", Load: &task.Load{Awake: "not held: on battery (--inhibit mains)", Battery: true}}, "not held: on battery (--inhibit mains); on battery now"},
		{task.NodeView{State: "asleep", Load: &task.Load{Awake: "held: idle sleep"}}, ""},
		{task.NodeView{State: "ready"}, ""},
	} {
		if got := awakeText(&c.n); got != c.want {
			t.Errorf("%+v: %q, want %q", c.n, got, c.want)
		}
	}
}

// --inhibit reaches the node, also the one in the background.
func TestInhibitReachesTheNode(t *testing.T) {
	b := newBench(t)
	b.up = false
	b.expect(exitDone, "init", "--inhibit", "always")
	if len(b.launched) != 1 || b.launched[0][len(b.launched[0])-1] != "always" || b.launched[0][len(b.launched[0])-2] != "--inhibit" {
		t.Errorf("started %q", b.launched)
	}
	b = newBench(t)
	b.up = false
	b.expect(exitUsage, "init", "--inhibit", "sometimes")
	b.wants("stderr", b.err.String(), `--inhibit "sometimes": use mains, always, never`)
	b = newBench(t)
	b.expect(exitUsage, "init", "--inhibit", "never")
	b.wants("stderr", b.err.String(), "lanjobs serve --inhibit never")
}

// TestWhatKeepsAMachineFromWork: of two reasons one is left after the other is taken away.
func TestWhatKeepsAMachineFromWork(t *testing.T) {
	for _, c := range []struct{ act, state, says string }{
		{"clear", "unstable", "nas takes work again. Its crashes are forgotten"},
		{"clear", "draining", "nas is still draining: lanjobs node resume nas. Its crashes are forgotten"},
		{"resume", "draining", "nas takes work again\n"},
		{"resume", "unstable", "nas drains no more, but has crashed too often: lanjobs node clear nas\n"},
	} {
		b := newBench(t)
		home(b)
		b.api.change(func() {
			for i := range b.api.view.Nodes {
				b.api.view.Nodes[i].State = c.state
			}
		})
		b.expect(exitDone, "node", c.act, "nas")
		b.wants("stdout", b.out.String(), c.says)
	}
}
