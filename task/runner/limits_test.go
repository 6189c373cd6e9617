//go:build linux

package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lanjobs/task"
)

func TestWordsOfLimits(t *testing.T) {
	for _, c := range []struct {
		b    cgroupBase
		want string
	}{
		{cgroupBase{controllers: limitControllers}, "cgroup"},
		{cgroupBase{controllers: []string{"cpu", "pids"}, why: "x"}, "cgroup: cpu, pids only"},
		{cgroupBase{why: "no controllers"}, "not enforced: no controllers"},
	} {
		if got := c.b.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for mb, want := range map[int]string{100: "100 MiB", 1024: "1 GiB", 1536: "1.5 GiB", 4096: "4 GiB"} {
		if got := memorySize(mb); got != want {
			t.Errorf("%d: %q, want %q", mb, got, want)
		}
	}
	for m, want := range map[task.Millis]string{600_000: "10m", 5_400_000: "1h30m", 7_200_000: "2h", 1500: "1.5s", 90_000: "1m30s", 3_610_000: "1h0m10s"} {
		if got := length(m); got != want {
			t.Errorf("%d: %q, want %q", m, got, want)
		}
	}
	for _, c := range []struct{ r, want task.Resources }{
		{task.Resources{}, task.Resources{}},
		{task.Resources{DiskMB: 9}, task.Resources{}}, // booked, not enforced
		{task.Resources{MilliCPU: 500, DiskMB: 9}, task.Resources{MilliCPU: 500}},
		{task.Resources{MilliCPU: task.DefaultMilliCPU, MemoryMB: 64}, task.Resources{MilliCPU: task.DefaultMilliCPU, MemoryMB: 64}},
	} {
		if got := limitsOf(c.r); got != (limits{c.want.MilliCPU, c.want.MemoryMB}) {
			t.Errorf("%+v: %+v", c.r, got)
		}
	}
}

func TestOutOfMemoryNamesTheLimit(t *testing.T) {
	o := outcomeOf(&exitRecord{Signal: 9, OOM: true, MemoryMB: 4096})
	if o.End != task.EndOutOfMemory || o.Message != "out of memory: limit 4 GiB" || o.String() != "out of memory: limit 4 GiB" {
		t.Errorf("%+v %q", o, o.String())
	}
	if v := task.DefaultRetry().Judge(o); v != task.VerdictRetry {
		t.Errorf("verdict %v", v)
	}
	// A task that went on without the process that was killed, and succeeded, has succeeded.
	if o := outcomeOf(&exitRecord{OOM: true, MemoryMB: 4096}); o.End != task.EndExited || o.ExitCode != 0 || o.Message == "" {
		t.Errorf("%+v", o)
	}
	if o := outcomeOf(&exitRecord{Code: 137, OOM: true, MemoryMB: 64}); o.End != task.EndOutOfMemory || o.ExitCode != 137 {
		t.Errorf("%+v", o)
	}
}

// A folder stands for a control group: what is written is what the kernel's manual asks for.
func TestLimitsAsWritten(t *testing.T) {
	for _, c := range []struct {
		has  string
		l    limits
		want map[string]string
	}{
		{"cpu io memory pids", limits{MilliCPU: 500, MemoryMB: 64}, map[string]string{"memory.max": "67108864", "memory.swap.max": "0",
			"memory.oom.group": "1", "cpu.max": "50000 100000", "pids.max": itoa(maxProcesses)}},
		{"cpu pids", limits{MilliCPU: 4000, MemoryMB: 64}, map[string]string{"cpu.max": "400000 100000", "pids.max": itoa(maxProcesses)}},
		{"memory", limits{MilliCPU: 4000, MemoryMB: 1}, map[string]string{"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1"}},
		{"cpu", limits{MilliCPU: 1}, map[string]string{"cpu.max": "1000 100000"}}, // the kernel takes no less than a millisecond
		{"hugetlb", limits{MilliCPU: 500, MemoryMB: 64}, nil},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte(c.has+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (&cgroupSlot{dir: dir}).limit(c.l); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max"} {
			if got := content(filepath.Join(dir, name)); got != c.want[name] {
				t.Errorf("%s, %+v: %s is %q, want %q", c.has, c.l, name, got, c.want[name])
			}
		}
	}
}

func TestCountOfMemoryKills(t *testing.T) {
	dir := t.TempDir()
	s := &cgroupSlot{dir: dir}
	if s.oomKilled() != 0 {
		t.Error("kills without a count")
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte("low 0\nhigh 1\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := s.oomKilled(); n != 3 {
		t.Errorf("%d kills", n)
	}
}

// limitedBench has a runner on a machine that enforces limits.
func limitedBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	if b.r.Limits() != limitsEnforced {
		t.Skipf("limits cannot be tested on this machine (they need root and control groups of version 2 with their controllers): %s", b.r.Limits())
	}
	return b
}

func withResources(s *task.Spec, r task.Resources) *task.Spec {
	s.Stages[0].Resources = r
	return s
}

// ownGroup prints files of the control group that the script is in.
const ownGroup = `
mount=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$mount$(sed -n 's/^0:://p' /proc/self/cgroup)
show() { for f; do cat "$group/$f" 2>/dev/null || echo none; done; }
`

// C56: what is stated is enforced, what is not is not.
func TestLimitsOfTheKernel(t *testing.T) {
	t.Parallel()
	b := limitedBench(t)
	x, e := b.run(withResources(script(ownGroup+"show memory.max cpu.max pids.max memory.oom.group"), task.Resources{MilliCPU: 500, MemoryMB: 64}))
	if got, want := b.log(x, ""), fmt.Sprintf("67108864\n50000 100000\n%d\n1\n", maxProcesses); e.Outcome.ExitCode != 0 || got != want {
		t.Errorf("%+v: %q, want %q", e.Outcome, got, want)
	}
	x, _ = b.run(withResources(script(ownGroup+"show memory.max cpu.max pids.max"), task.Resources{DiskMB: 1}))
	if got := b.log(x, ""); got != "none\nnone\nnone\n" {
		t.Errorf("without limits: %q", got)
	}
	b.until("groups of ended attempts are gone", func() bool {
		left, _ := filepath.Glob(filepath.Join(b.r.cgroups.dir, cgroupPrefix+"*"+limitedSuffix, "c*"))
		return !slices.ContainsFunc(left, func(dir string) bool { return content(filepath.Join(dir, "memory.max")) == "67108864\n" })
	})
}

// C56: a grandchild that takes too much memory ends its attempt, says why, and harms nobody else.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	b := limitedBench(t)
	spec, out := withOut(b, `read x < "$OUT/gate"; echo alive`)
	mkfifo(t, out+"/gate")
	neighbour := b.start(spec, far())
	greedy := withResources(script(`(head -c 400000000 /dev/zero | tail -c 400000000 | wc -c) || echo survived; sleep 600`), task.Resources{MemoryMB: 48})
	x, e := b.run(greedy)
	if e.Outcome.End != task.EndOutOfMemory || e.Outcome.Signal != 9 || e.Outcome.Message != "out of memory: limit 48 MiB" {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	b.nothingLeft(x)
	if err := os.WriteFile(out+"/gate", []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if e := b.exit(neighbour); e.Outcome.ExitCode != 0 || b.log(neighbour, "") != "alive\n" {
		t.Errorf("neighbour: %+v", e.Outcome)
	}
}

// Groups of guards that are gone do not pile up; those of living ones and those in use stay.
func TestGroupsOfDeadGuardsAreSwept(t *testing.T) {
	t.Parallel()
	own, ok := ownCgroup()
	if !ok {
		t.Skip("no control groups of version 2 here")
	}
	base := filepath.Join(own, "lanjobstest-sweep"+itoa(os.Getpid()))
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Skipf("no right to make control groups here: %v", err)
	}
	dirs := []string{"lanjobs-dead", "lanjobs-dead/c0", "lanjobs-dead/c1", "lanjobs-dead-limited", "lanjobs-dead-limited/c2",
		"lanjobs-old-limited", "lanjobs-live", "lanjobs-live/c0", "lanjobs-live-limited", nodeGroup, "somebody"}
	for _, d := range dirs {
		if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, d := range slices.Backward(append([]string{""}, dirs...)) {
			_ = unix.Rmdir(filepath.Join(base, d))
		}
	})
	lock, err := lockDir(filepath.Join(base, "lanjobs-live"))
	if err != nil {
		t.Fatal(err)
	}
	cgroupBase{dir: base}.sweep()
	_ = unix.Close(lock)
	var left []string
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(base, d)); err == nil {
			left = append(left, d)
		}
	}
	if want := "lanjobs-live lanjobs-live/c0 lanjobs-live-limited lanjobs-node somebody"; strings.Join(left, " ") != want {
		t.Errorf("left %v, want %s", left, want)
	}
}

// A guard that was killed leaves its group locked by nobody; the next agent removes it.
func TestKilledGuardsGroup(t *testing.T) {
	t.Parallel()
	probe := openCgroups("", "probe-killed"+itoa(os.Getpid()))
	if probe == nil {
		t.Skip("no control groups of version 2 for us here")
	}
	dir := probe.dir
	if _, err := lockDir(dir); err == nil {
		t.Error("a living guard's group can be locked")
	}
	_ = unix.Close(probe.lock) // as its death does
	for _, s := range probe.free {
		s.release()
	}
	// A process that another test forks at this moment has the lock too, until it runs its program.
	until(t, "its group is gone", func() bool {
		cgroupBase{dir: filepath.Dir(dir)}.sweep()
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
}
