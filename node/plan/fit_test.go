package plan_test

import (
	"strings"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// big is a machine with 4 processors and 16 GiB.
func big(id string) task.NodeInfo {
	return task.NodeInfo{ID: task.NodeID(id), Name: id, Slots: 8, CPUs: 4, MemoryMB: 16 << 10}
}

func asking(r task.Resources, shards int) task.StageSpec {
	st := simStage("s", shards, 300_000)
	st.Resources = r
	return st
}

func (b *board) commit(cs []fsm.Command) {
	b.t.Helper()
	for _, r := range b.apply(cs...) {
		for _, tok := range r.Tokens {
			if tok == 0 {
				b.t.Fatal("refused")
			}
		}
	}
}

func (b *board) viewOf(load task.Load) *plan.View {
	v := &plan.View{State: b.s, Now: b.s.Clock, Led: b.s.Led, Self: "leader", Nodes: map[task.NodeID]plan.Presence{}, Flight: plan.NewFlight()}
	for _, n := range b.s.Nodes() {
		v.Nodes[n.Info.ID] = plan.Presence{Want: n.Info.Slots, Heard: true, Load: load}
	}
	return v
}

func granted(cs []fsm.Command) (n int) {
	for _, c := range cs {
		n += len(c.(*fsm.Grant).Shards)
	}
	return n
}

func TestAFifthOfAMachineStaysFree(t *testing.T) {
	for _, c := range []struct {
		name string
		ask  task.Resources
		load task.Load
		want int
	}{
		{"ordinary ones fill the slots", task.Resources{MilliCPU: 1000}, task.Load{}, 8},
		{"3.2 of 4 processors", task.Resources{MilliCPU: 1500}, task.Load{}, 2},
		{"12.8 of 16 GiB", task.Resources{MilliCPU: 100, MemoryMB: 4 << 10}, task.Load{}, 3},
		{"no more than is measured to be free", task.Resources{MilliCPU: 100, MemoryMB: 4 << 10}, task.Load{CPU: 0.1, MemFreeMB: 8 << 10}, 1},
		{"others keep the processors busy", task.Resources{MilliCPU: 1500}, task.Load{CPU: 2, MemFreeMB: 16 << 10}, 0},
		{"80 of 100 GiB of disk", task.Resources{MilliCPU: 100, DiskMB: 30 << 10}, task.Load{CPU: 0.1, MemFreeMB: 16 << 10, DiskFreeMB: 100 << 10}, 2},
	} {
		b := newBoard(t, big("n"))
		b.submit("j", asking(c.ask, 20), 50)
		v := b.viewOf(c.load)
		cs := plan.Place(v)
		if n := granted(cs); n != c.want {
			t.Errorf("%s: %d granted, not %d", c.name, n, c.want)
		}
		b.commit(cs)
		if after := c.load; after != (task.Load{}) { // the next heartbeat measures them too
			after.MemFreeMB -= c.want * c.ask.MemoryMB
			after.CPU += float64(c.want*c.ask.MilliCPU) / 1000
			v = b.viewOf(after)
		}
		if n := granted(plan.Place(v)); n != 0 {
			t.Errorf("%s: %d more once the first run", c.name, n)
		}
	}
}

func TestWhatIsInFlightIsBooked(t *testing.T) {
	b := newBoard(t, big("n"))
	b.submit("j", asking(task.Resources{MilliCPU: 1500}, 20), 50)
	v := b.viewOf(task.Load{})
	cs := plan.Place(v)
	for _, c := range cs {
		v.Flight.Add(b.s.Job(c.(*fsm.Grant).Job), c.(*fsm.Grant))
	}
	if n := granted(plan.Place(v)); n != 0 {
		t.Fatalf("%d more", n)
	}
	for _, c := range cs {
		v.Flight.Remove(c.(*fsm.Grant))
	}
	if n := granted(plan.Place(v)); n != 2 {
		t.Fatalf("%d once they are forgotten", n)
	}
}

// Where a big attempt runs, ordinary ones take no more than is left beside it; when it has ended they fill the slots again.
func TestOrdinaryAttemptsKeepClearOfBigOnes(t *testing.T) {
	b := newBoard(t, big("n"))
	b.submit("big", asking(task.Resources{MilliCPU: 2000}, 1), 90)
	b.submit("small", simStage("s", 20, 300_000), 10)
	v := b.viewOf(task.Load{})
	cs := plan.Place(v)
	if n := granted(cs); n != 2 {
		t.Fatalf("%d granted: 2 processors and one of 1.2 left", n)
	}
	b.commit(cs)
	var tok task.Token
	b.s.Leases(func(l *fsm.Lease) {
		if l.Ref.Job == "big" {
			tok = l.Token
		}
	})
	b.apply(&fsm.Report{Node: "n", Reports: []task.Report{{Job: "big", Token: tok, Outcome: task.Outcome{End: task.EndExited}}}})
	if n := granted(plan.Place(v)); n != 7 {
		t.Fatalf("%d granted after it", n)
	}
}

func TestTheLeaderTakesWhatIsTooBigForAllOthers(t *testing.T) {
	small := big("a")
	small.MemoryMB = 4 << 10
	b := newBoard(t, big("leader"), small)
	b.submit("j", asking(task.Resources{MilliCPU: 1000, MemoryMB: 8 << 10}, 1), 50)
	cs := plan.Place(b.viewOf(task.Load{}))
	if len(cs) != 1 || cs[0].(*fsm.Grant).Node != "leader" {
		t.Fatalf("%+v", cs)
	}
}

func TestTheLeaderTakesWhatOnlyItsDiskHasRoomFor(t *testing.T) {
	b := newBoard(t, big("leader"), big("a"))
	b.submit("j", asking(task.Resources{MilliCPU: 1000, DiskMB: 100 << 10}, 1), 50)
	v := b.viewOf(task.Load{CPU: 0.1, MemFreeMB: 16 << 10, DiskFreeMB: 48 << 10})
	for _, r := range plan.Explain(v, "j", 0, 0) {
		if r.Kind != plan.KindTooSmall || !strings.Contains(r.Text, "disk 100 GiB, it has 38.4 GiB to give (of 48 GiB free, 20 % stays free)") {
			t.Errorf("%+v", r)
		}
	}
	roomy := v.Nodes["leader"]
	roomy.Load.DiskFreeMB = 200 << 10
	v.Nodes["leader"] = roomy
	cs := plan.Place(v)
	if len(cs) != 1 || cs[0].(*fsm.Grant).Node != "leader" {
		t.Fatalf("%+v", cs)
	}
}

// A shell that a stage names is found missing like a program; what names none is not kept away.
func TestAMachineWithoutTheShellIsLeftOutForAWhile(t *testing.T) {
	b := newBoard(t, info("a"))
	zsh := simStage("s", 1, 5000)
	zsh.Run, zsh.Command, zsh.Shell = "echo", nil, "zsh"
	b.submit("j", zsh, 50)
	v := b.viewOf(task.Load{})
	v.Lacks = &plan.Lacks{}
	v.Lacks.Note("a", &b.s.Job("j").Spec.Stages[0], "shell zsh: no program \"zsh\" on PATH (/bin)", time.Second)
	if n := granted(plan.Place(v)); n != 0 {
		t.Errorf("%d granted", n)
	}
	if rs := plan.Explain(v, "j", 0, 0); len(rs) != 1 || rs[0].Text != "did not have shell zsh a moment ago" {
		t.Errorf("%+v", rs)
	}
	v.Lacks.Pass(time.Second + plan.LackFor)
	if n := granted(plan.Place(v)); n != 1 {
		t.Errorf("%d granted afterwards", n)
	}
	plain := simStage("s", 1, 5000)
	plain.Run, plain.Command, plain.Shell = "echo", nil, "auto"
	b.submit("k", plain, 90)
	v.Lacks.Note("a", &b.s.Job("j").Spec.Stages[0], "shell zsh: no program \"zsh\" on PATH (/bin)", time.Minute)
	if cs := plan.Place(v); len(cs) != 1 || cs[0].(*fsm.Grant).Job != "k" {
		t.Errorf("%+v", cs)
	}
}

func TestAMachineWithoutThePathIsLeftOutForAWhile(t *testing.T) {
	b := newBoard(t, info("a"), info("b"))
	st := simStage("s", 8, 5000)
	st.Paths, st.Programs = []string{"/mnt/nas", "/mnt/nas/video"}, []string{"ffmpeg"}
	b.submit("j", st, 50)
	spec := &b.s.Job("j").Spec.Stages[0]
	v := b.viewOf(task.Load{})
	v.Lacks = &plan.Lacks{}
	v.Lacks.Note("a", spec, "path /mnt/nas/video is not there", 10*time.Second)
	on := func(stage task.StageSpec) map[task.NodeID]int {
		out := map[task.NodeID]int{}
		b.n++
		id := "x" + string(rune('0'+b.n))
		b.submit(id, stage, 90)
		for _, c := range plan.Place(v) {
			if g := c.(*fsm.Grant); g.Job == task.JobID(id) {
				out[g.Node] += len(g.Shards)
			}
		}
		b.apply(&fsm.CancelJob{Job: task.JobID(id), RequestID: task.RequestID("cancel" + id)})
		return out
	}
	v.Lacks.Pass(39 * time.Second)
	if got := on(st); got["a"] != 0 || got["b"] != 4 {
		t.Errorf("%v", got)
	}
	other := simStage("s", 8, 5000)
	other.Paths = []string{"/mnt/nas"}
	if got := on(other); got["a"] != 4 {
		t.Errorf("what needs another path: %v", got)
	}
	if next, ok := v.Lacks.Pass(39 * time.Second); !ok || next != 40*time.Second {
		t.Errorf("to be tried again at %s, %v", next, ok)
	}
	if _, ok := v.Lacks.Pass(40 * time.Second); ok {
		t.Error("it is never forgotten")
	}
	if got := on(st); got["a"] != 4 {
		t.Errorf("after 30 s: %v", got)
	}
}

func TestBroadcastShardsGoToTheirMachinesTheLeaderToo(t *testing.T) {
	b := newBoard(t, info("leader"), info("b"), info("c"))
	st := simStage("s", 0, 5000)
	st.Broadcast = true
	b.submit("j", st, 50)
	j, seen := b.s.Job("j"), map[task.NodeID]bool{}
	for _, c := range plan.Place(b.viewOf(task.Load{})) {
		g := c.(*fsm.Grant)
		for _, shard := range g.Shards {
			if j.PinnedTo(0, shard) != g.Node {
				t.Errorf("shard %d of %s went to %s", shard, j.PinnedTo(0, shard), g.Node)
			}
			seen[g.Node] = true
		}
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
}

// A machine of one processor runs what asks for one, and what asks for memory only; for more it is too small.
func TestOneProcessorIsEnoughForOne(t *testing.T) {
	small := task.NodeInfo{ID: "s", Name: "s", Slots: 1, CPUs: 1, MemoryMB: 1000}
	for _, c := range []struct {
		resources task.Resources
		fits      bool
	}{
		{task.Resources{MemoryMB: 512}, true},
		{task.Resources{MilliCPU: 1000, MemoryMB: 512}, true},
		{task.Resources{MilliCPU: 1001}, false},
		{task.Resources{MemoryMB: 801}, false},
	} {
		b := newBoard(t, small)
		st := simStage("s", 1, 5000)
		st.Resources = c.resources
		b.submit("j", st, 50)
		if got := b.place(1, plan.NewFlight()); len(got["s"]) == 1 != c.fits {
			t.Errorf("%+v: granted %v, want %v", c.resources, got, c.fits)
		}
	}
}

func TestAMachineMayKeepMoreOrLessForItself(t *testing.T) {
	for reserve, want := range map[int]int{0: 3, -1: 4, 50: 2, 70: 1} { // of 4 processors and 16 GiB
		n := big("n")
		n.Reserve = reserve
		b := newBoard(t, n)
		b.submit("j", asking(task.Resources{MilliCPU: 1000, MemoryMB: 4 << 10}, 20), 50)
		if got := granted(plan.Place(b.viewOf(task.Load{}))); got != want {
			t.Errorf("reserve %d: %d granted, not %d", reserve, got, want)
		}
	}
}
