//go:build linux

package runner

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task/runner/logindtest"
	"lanjobs/transport/memnet"
)

// login gives a bus of its own to the test. Tests with one do not run beside each other.
func login(t *testing.T) *logindtest.Bus {
	t.Helper()
	b, err := logindtest.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", b.Address())
	return b
}

// until waits for locks.
func untilLocks(t *testing.T, b *logindtest.Bus, want ...string) {
	t.Helper()
	for {
		locks, changed := b.Locks()
		var have []string
		for _, l := range locks {
			have = append(have, l.Mode+" "+l.What)
		}
		if slices.Equal(have, want) {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("locks %q, want %q", have, want)
		}
	}
}

func TestLogindHoldsAsMuchAsItMay(t *testing.T) {
	b := login(t)
	if err := SystemInhibitor().Check(); err != nil {
		t.Error(err)
	}
	h, err := SystemInhibitor().Take()
	if err != nil {
		t.Fatal(err)
	}
	untilLocks(t, b, "block sleep:idle")
	if h.What != "sleep and idle" {
		t.Error(h.What)
	}
	h.Release()
	h.Release() // once is enough
	untilLocks(t, b)
	b.Deny("sleep")
	if h, err = SystemInhibitor().Take(); err != nil || !strings.HasPrefix(h.What, "idle sleep only") {
		t.Fatalf("%+v, %v", h, err)
	}
	untilLocks(t, b, "block idle")
	h.Release()
	untilLocks(t, b)
	b.Deny("idle")
	if _, err = SystemInhibitor().Take(); err == nil || !strings.Contains(err.Error(), "Interactive authentication required") {
		t.Errorf("%v", err)
	}
}

func TestNoBusIsSaidPlainly(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	if _, err := SystemInhibitor().Take(); err == nil || !strings.HasPrefix(err.Error(), "no system bus") {
		t.Errorf("%v", err)
	}
	if err := SystemInhibitor().Check(); err == nil {
		t.Error("no fault")
	}
}

// listener notes what it is told. While ready is open it is not ready to sleep.
type listener struct {
	ready  chan struct{}
	heard  chan string
	budget time.Duration
}

func (l *listener) Sleeps(budget time.Duration) {
	l.budget = budget
	l.heard <- "sleeps"
	<-l.ready
}
func (l *listener) Woke() { l.heard <- "woke" }
func (l *listener) Watching(err error) {
	if err != nil {
		l.heard <- "not watching: " + err.Error()
	} else {
		l.heard <- "watching"
	}
}

// The machine waits for lanjobs before it sleeps, and no longer than lanjobs needs (R16).
func TestSleepIsDelayedUntilReady(t *testing.T) {
	b := login(t)
	l := &listener{ready: make(chan struct{}), heard: make(chan string, 8)}
	ctx, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() { _ = WatchSleep(ctx, SystemClock(), l) })
	defer watch.Wait()
	defer stop()
	hear := func(want string) {
		t.Helper()
		if got := <-l.heard; !strings.HasPrefix(got, want) {
			t.Fatalf("heard %q, want %q", got, want)
		}
	}
	hear("watching")
	untilLocks(t, b, "delay sleep")
	for range 2 { // the lock is there for the next sleep too
		if err := b.PrepareForSleep(true); err != nil {
			t.Fatal(err)
		}
		hear("sleeps")
		if locks, _ := b.Locks(); len(locks) != 1 {
			t.Errorf("locks %v before it is ready", locks)
		}
		if l.budget != 4500*time.Millisecond {
			t.Errorf("budget %s of the 5 s that logind gives", l.budget)
		}
		l.ready <- struct{}{}
		untilLocks(t, b)
		if err := b.PrepareForSleep(false); err != nil {
			t.Fatal(err)
		}
		hear("woke")
		untilLocks(t, b, "delay sleep")
	}
	b.Drop()
	hear("not watching: the system bus has closed")
	untilLocks(t, b)
}

// fakeInhibitor counts.
type fakeInhibitor struct {
	mu    sync.Mutex
	held  int
	takes int
	err   error
	lost  chan struct{}
}

func (f *fakeInhibitor) Check() error { f.mu.Lock(); defer f.mu.Unlock(); return f.err }
func (f *fakeInhibitor) Take() (*Hold, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	f.held++
	f.takes++
	f.lost = make(chan struct{})
	return &Hold{What: "all", Lost: f.lost, Release: func() { f.mu.Lock(); f.held--; f.mu.Unlock() }}, nil
}
func (f *fakeInhibitor) see() (held, takes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held, f.takes
}

// I14: held while something runs, as the owner allows, and only then.
func TestAwakeWhileSomethingRuns(t *testing.T) {
	for _, c := range []struct {
		policy          InhibitPolicy
		battery, finish bool
		held            int
		state           string
	}{
		{InhibitMains, false, false, 1, "held: all"},
		{InhibitMains, true, false, 0, "not held: on battery (--inhibit mains)"},
		{InhibitMains, true, true, 1, "held: all"},
		{InhibitAlways, true, false, 1, "held: all"},
		{InhibitNever, false, true, 0, "never held (--inhibit never)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeInhibitor{}
			a := NewAwake(AwakeConfig{Policy: c.policy, Inhibitor: f, OnBattery: func() bool { return c.battery }, Clock: memnet.NewClock(), Log: slog.New(slog.DiscardHandler)})
			ctx, stop := context.WithCancel(t.Context())
			var run sync.WaitGroup
			run.Go(func() { _ = a.Run(ctx) })
			idle := a.State()
			time.Sleep(time.Hour)
			if held, takes := f.see(); held != 0 || takes != 0 {
				t.Errorf("%+v: held while nothing runs", c)
			}
			a.Want(true, c.finish)
			synctest.Wait()
			if held, _ := f.see(); held != c.held || a.State() != c.state {
				t.Errorf("%+v: held %d, %q", c, held, a.State())
			}
			a.Want(false, false)
			time.Sleep(500 * time.Millisecond)
			a.Want(true, c.finish) // a queue of short ones asks once
			time.Sleep(time.Minute)
			if held, takes := f.see(); held != c.held || takes != c.held {
				t.Errorf("%+v: held %d, taken %d times", c, held, takes)
			}
			a.Want(false, false)
			time.Sleep(inhibitLinger + time.Millisecond)
			synctest.Wait()
			if held, _ := f.see(); held != 0 || a.State() != idle {
				t.Errorf("%+v: held %d after the end, %q", c, held, a.State())
			}
			a.Want(true, c.finish)
			synctest.Wait()
			stop()
			run.Wait()
			if held, _ := f.see(); held != 0 {
				t.Errorf("%+v: held %d after the agent's end", c, held)
			}
		})
	}
}

// What the system lets go of is taken again; a refusal is asked again after a while; the plug decides while something runs.
func TestAwakeFollowsTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeInhibitor{err: os.ErrPermission}
		var battery bool
		var mu sync.Mutex
		plug := func(out bool) { mu.Lock(); battery = out; mu.Unlock() }
		a := NewAwake(AwakeConfig{Policy: InhibitMains, Inhibitor: f, OnBattery: func() bool { mu.Lock(); defer mu.Unlock(); return battery },
			Clock: memnet.NewClock(), Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = a.Run(ctx) })
		defer run.Wait()
		defer stop()
		a.Want(true, false)
		synctest.Wait()
		if a.State() != "cannot be held: permission denied" {
			t.Error(a.State())
		}
		f.mu.Lock()
		f.err = nil
		f.mu.Unlock()
		expect := func(after time.Duration, held, takes int) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if h, n := f.see(); h != held || n != takes {
				t.Errorf("held %d, taken %d times, want %d and %d", h, n, held, takes)
			}
		}
		expect(30*time.Second, 0, 0)
		expect(40*time.Second, 1, 1)
		close(f.lost)
		expect(0, 1, 2)
		plug(true)
		expect(batteryTick, 0, 2)
		plug(false)
		expect(batteryTick, 1, 3)
	})
}

func TestPowerSupplies(t *testing.T) {
	mains := func(online string) supply { return supply{kind: "Mains", online: online} }
	battery := func(status string) supply { return supply{kind: "Battery", status: status} }
	for _, c := range []struct {
		all     []supply
		has, on bool
	}{
		{nil, false, false},
		{[]supply{mains("1")}, false, false},
		{[]supply{mains("1"), battery("Discharging")}, true, false},
		{[]supply{mains("0"), battery("Discharging")}, true, true},
		{[]supply{mains("0"), battery("Not charging")}, true, true},
		{[]supply{mains("0"), {kind: "USB", online: "1"}, battery("Charging")}, true, false},
		{[]supply{battery("Discharging")}, true, true},
		{[]supply{battery("Full")}, true, false},
		{[]supply{{kind: "Battery", scope: "Device", status: "Discharging"}}, false, false}, // a mouse
		{[]supply{{kind: "UPS", status: "Discharging"}}, false, false},
	} {
		if has, on := fedBy(c.all); has != c.has || on != c.on {
			t.Errorf("%+v: %v %v", c.all, has, on)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"AC/type": "Mains\n", "AC/online": "0\n", "BAT0/type": "Battery\n", "BAT0/status": "Discharging\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if has, on := batteryUnder(dir); !has || !on {
		t.Error(has, on)
	}
	if has, on := batteryUnder(filepath.Join(dir, "none")); has || on {
		t.Error(has, on)
	}
	for text, want := range map[string][2]bool{
		"Now drawing from 'AC Power'\n": {false, false},
		"Now drawing from 'AC Power'\n -InternalBattery-0 (id=4325475)\t100%; charged; 0:00 remaining present: true\n":         {true, false},
		"Now drawing from 'Battery Power'\n -InternalBattery-0 (id=4325475)\t87%; discharging; 5:12 remaining present: true\n": {true, true},
	} {
		if has, on := parsePmset(text); has != want[0] || on != want[1] {
			t.Errorf("%q: %v %v", text, has, on)
		}
	}
}
