package schedule

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"lanjobs/task"
)

func compiledSpec(t testing.TB, start time.Time, change func(*Spec)) *Calendar {
	t.Helper()
	spec := Default()
	change(&spec)
	c, err := Compile(spec, "s1", start)
	if err != nil {
		t.Fatal(err, spec)
	}
	return c
}

var day0 = utc("2026-11-29 12:00")

// C15: every 5 s, everything off for 12 minutes. Then 0, 1 or 100 runs, and the normal rhythm again.
func TestAfterABreak(t *testing.T) {
	for _, tt := range []struct {
		misfire                        task.Misfire
		every                          task.Millis
		grace                          task.Millis
		off                            time.Duration // after start
		fire, missed, expired, dropped int
	}{
		{task.MisfireSkip, 5000, task.Hour, 720*time.Second + 3500*time.Millisecond, 1, 143, 0, 143}, // the one of this moment
		{task.MisfireRunOnce, 5000, task.Hour, 720*time.Second + 3500*time.Millisecond, 1, 143, 0, 143},
		{task.MisfireRunAll, 5000, task.Hour, 720*time.Second + 3500*time.Millisecond, 100, 143, 0, 44},
		{task.MisfireRunAll, 5000, task.Minute, 720*time.Second + 3500*time.Millisecond, 12, 143, 132, 132},
		{task.MisfireSkip, task.Hour, task.Hour, 3*time.Hour + 31*time.Second, 0, 3, 2, 3},
		{task.MisfireSkip, task.Hour, task.Hour, 3*time.Hour + 30*time.Second, 1, 2, 2, 2},
		{task.MisfireRunOnce, task.Hour, task.Hour, 3*time.Hour + 31*time.Second, 1, 3, 2, 2},
		{task.MisfireRunOnce, task.Hour, 20 * task.Minute, 3*time.Hour + 21*time.Minute, 0, 3, 3, 3},
		{task.MisfireRunOnce, task.Hour, task.Day, 3*time.Hour + time.Second, 1, 2, 0, 2}, // the regular run is the made-up one too
		{task.MisfireRunAll, task.Hour, 2 * task.Hour, 4*time.Hour + 30*time.Minute, 2, 4, 2, 2},
		{task.MisfireRunOnce, task.Second, task.Hour, 61*time.Second + 900*time.Millisecond, 2, 59, 0, 59},
		{task.MisfireSkip, task.Hour, task.Hour, 59 * time.Minute, 0, 0, 0, 0},
	} {
		c := compiledSpec(t, day0, func(s *Spec) { s.Every, s.Misfire, s.MisfireGrace = tt.every, tt.misfire, tt.grace })
		now := day0.Add(tt.off)
		d := c.Decide(Occurrence{}, now)
		if len(d.Fire) != tt.fire || d.Missed != tt.missed || d.Expired != tt.expired || d.Dropped != tt.dropped || d.More {
			t.Errorf("%+v: %d fire, %d missed, %d expired, %d dropped", tt, len(d.Fire), d.Missed, d.Expired, d.Dropped)
		}
		if d.Settled() != (tt.fire+tt.dropped > 0) || !d.Next.Due.After(now) || d.Next.Due.Sub(now) > tt.every.Duration() {
			t.Errorf("%+v: settled %v, next %v", tt, d.Settled(), d.Next)
		}
		if again := c.Decide(d.Last, now); again.Settled() || again.Next != d.Next || again.Last != d.Last {
			t.Errorf("%+v: decided twice: %+v", tt, again)
		}
		if late := c.Decide(d.Last, d.Next.Due); len(late.Fire) != 1 || late.Fire[0] != d.Next || late.Missed != 0 {
			t.Errorf("%+v: no normal rhythm: %+v", tt, late)
		}
	}
}

// C01, C06: what counts is the last occurrence, not who leads since when.
func TestElections(t *testing.T) {
	c := compiledSpec(t, day0, func(s *Spec) { s.Cron, s.Timezone = "* * * * *", "America/New_York" })
	var last Occurrence
	fired := map[string]bool{}
	for round := range 20 {
		// A leader dies at second 58; the next one decides at second 4, and a third one, which knows no more, does again.
		now := day0.Add(time.Duration(round+1)*time.Minute + 4*time.Second)
		d, twin := c.Decide(last, now), c.Decide(last, now.Add(time.Second))
		if len(d.Fire) != 1 || d.Missed != 0 || len(twin.Fire) != 1 || twin.Fire[0] != d.Fire[0] || fired[d.Fire[0].Nominal] {
			t.Fatalf("round %d: %+v, %+v", round, d, twin)
		}
		fired[d.Fire[0].Nominal] = true
		last = d.Last
	}
}

func TestClockJumps(t *testing.T) {
	for _, change := range []func(*Spec){
		func(s *Spec) { s.Cron = "* * * * *" },
		func(s *Spec) { s.Cron, s.Timezone = "*/2 0-5 * * *", "Europe/Berlin" },
		func(s *Spec) { s.Cron = "0 0 29 2 *" },
		func(s *Spec) { s.Every = task.Second },
		func(s *Spec) { s.Every, s.Jitter = task.Minute, 30*task.Second },
	} {
		for _, misfire := range []task.Misfire{task.MisfireSkip, task.MisfireRunOnce, task.MisfireRunAll} {
			c := compiledSpec(t, day0, func(s *Spec) { s.Misfire, s.MisfireGrace = misfire, MaxGrace; change(s) })
			var d Decision
			took := time.Hour
			for try := 0; try < 5 && took > time.Second; try++ { // others may keep the machine busy
				begin := time.Now()
				d = c.Decide(Occurrence{}, day0.AddDate(70, 0, 0))
				took = min(took, time.Since(begin))
			}
			if took > time.Second || len(d.Fire) > MaxRunAll || misfire != task.MisfireRunAll && len(d.Fire) > 3 || d.Missed > MaxCount {
				t.Errorf("%v %s: 70 years ahead gave %d runs after %v", c.spec, misfire, len(d.Fire), took)
			}
			if back := c.Decide(d.Last, day0.Add(time.Hour)); back.Settled() || d.Last.Nominal != "" && back.Ahead < 60*365*task.Day {
				t.Errorf("%v %s: clock right again: %+v", c.spec, misfire, back)
			}
		}
	}
}

// Whatever the clock does: each occurrence is settled once, in order, none before its time, none forgotten.
func TestAnyClock(t *testing.T) {
	for seed := range seeds(60) {
		r := rand.New(rand.NewPCG(uint64(seed), 99))
		exprs := append(sparse[:len(sparse):len(sparse)], dense...)
		start := day0.Add(time.Duration(r.IntN(365*24)) * time.Hour)
		c := compiledSpec(t, start, func(s *Spec) {
			s.Misfire = []task.Misfire{task.MisfireSkip, task.MisfireRunOnce, task.MisfireRunAll}[r.IntN(3)]
			s.MisfireGrace = MinGrace + task.Millis(r.Int64N(int64(task.Day)))
			s.RunAllMax = 1 + r.IntN(MaxRunAll)
			s.Jitter = []task.Millis{0, task.Minute, task.Hour}[r.IntN(3)]
			if r.IntN(4) == 0 {
				s.Every = s.Jitter + task.Second + task.Millis(r.Int64N(int64(task.Hour)))
			} else {
				s.Cron, s.Timezone = exprs[r.IntN(len(exprs))], []string{"UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana"}[r.IntN(4)]
			}
		})
		now, last, settled, high := start, Occurrence{}, 0, time.Time{}
		names := map[string]bool{}
		for range 300 {
			switch r.IntN(10) {
			case 0:
				now = now.Add(-time.Duration(r.Int64N(int64(48 * time.Hour))))
			case 1:
				now = now.Add(time.Duration(r.Int64N(int64(12 * time.Hour))))
			default:
				now = now.Add(time.Duration(r.Int64N(int64(10 * time.Minute))))
			}
			d := c.Decide(last, now)
			if d.More {
				t.Fatalf("seed %d: more than %d in half a day", seed, MaxCount)
			}
			for _, o := range d.Fire {
				if names[o.Nominal] || !o.Planned.After(high) || o.Due.After(now) || o.Due.Before(o.Planned) {
					t.Fatalf("seed %d %+v: %v fired at %v after %v", seed, c.spec, o, now, high)
				}
				names[o.Nominal], high = true, o.Planned
			}
			settled += len(d.Fire) + d.Dropped
			last = d.Last
			if d.Next.Nominal != "" && (!d.Next.Planned.After(last.Planned) || !d.Next.Due.After(now)) {
				t.Fatalf("seed %d: next %v after %v", seed, d.Next, last)
			}
		}
		want := 0
		if last.Nominal != "" {
			for o, ok := c.ahead(start); ok && !o.Planned.After(last.Planned); o, ok = c.ahead(o.Planned) {
				want++
			}
		}
		if settled != want {
			t.Errorf("seed %d %+v: %d settled of %d", seed, c.spec, settled, want)
		}
	}
}

// Two leaders with other rules for a zone: a local time that was fired is not fired again at its new moment.
func TestOtherZoneData(t *testing.T) {
	old := homeMade(t, "Test/Zone", 2*time.Hour)
	new := homeMade(t, "Test/Zone", 2*time.Hour, change{day0, time.Hour}) // decided last week to be an hour later
	was, is := calendarOf(t, "0,30 14-15 * * *", old), calendarOf(t, "0,30 14-15 * * *", new)
	d := was.Decide(Occurrence{}, utc("2026-11-30 12:31")) // 14:30
	if got := shown(d.Last); got != "2026-11-30T14:30[Test/Zone] 2026-11-30T12:30:00Z" {
		t.Fatal(got)
	}
	d = is.Decide(d.Last, utc("2026-11-30 13:31")) // 14:30 again, by the new rules
	if d.Settled() || shown(d.Next) != "2026-11-30T15:00[Test/Zone] 2026-11-30T14:00:00Z" {
		t.Errorf("%+v", d)
	}
}

func TestPaused(t *testing.T) {
	c := compiledSpec(t, day0, func(s *Spec) { s.Every, s.Paused = task.Minute, true })
	now := day0.Add(time.Hour + time.Second)
	if d := c.Decide(Occurrence{}, now); d.Settled() || d.Next.Nominal != "" {
		t.Errorf("%+v", d)
	}
	last, _ := c.Prev(now)
	c = compiledSpec(t, day0, func(s *Spec) { s.Every, s.Misfire = task.Minute, task.MisfireRunAll })
	if d := c.Decide(last, now); d.Settled() || !d.Next.Due.Equal(day0.Add(61*time.Minute)) {
		t.Errorf("resumed: %+v", d)
	}
}

func TestOneOffIsOver(t *testing.T) {
	c := compiledSpec(t, day0, func(s *Spec) { s.At = "2026-11-29T13:00" })
	d := c.Decide(Occurrence{}, day0)
	if d.Settled() || d.Next.Nominal == "" {
		t.Errorf("before: %+v", d)
	}
	d = c.Decide(Occurrence{}, day0.Add(90*time.Minute))
	if len(d.Fire) != 1 || d.Missed != 1 || d.Next.Nominal != "" {
		t.Errorf("late: %+v", d)
	}
	if d = c.Decide(d.Last, day0.Add(91*time.Minute)); d.Settled() || d.Next.Nominal != "" {
		t.Errorf("over: %+v", d)
	}
	if d = c.Decide(Occurrence{}, day0.Add(3*time.Hour)); len(d.Fire) != 0 || d.Expired != 1 || !d.Settled() {
		t.Errorf("too late: %+v", d)
	}
}

func TestJitter(t *testing.T) {
	sum, names := task.Millis(0), map[task.Millis]bool{}
	for i := range 1000 {
		j := Jitter("s1", fmt.Sprintf("2026-11-29T%02d:%02d[UTC]", i/60, i%60), task.Minute)
		if j < 0 || j > task.Minute || j != Jitter("s1", fmt.Sprintf("2026-11-29T%02d:%02d[UTC]", i/60, i%60), task.Minute) {
			t.Fatal(i, j)
		}
		sum += j
		names[j] = true
	}
	if mean := sum / 1000; mean < 28*task.Second || mean > 32*task.Second || len(names) < 950 {
		t.Errorf("mean %d ms, %d values", mean, len(names))
	}
	if Jitter("s1", "a", task.Hour) == Jitter("s2", "a", task.Hour) {
		t.Error("the id does not count")
	}
	// Larger than what lies between two occurrences, one of them right after a gap.
	c := compiledSpec(t, utc("2026-03-28 00:00"), func(s *Spec) { s.Cron, s.Timezone, s.Jitter = "0,30 1-4 * * *", "Europe/Berlin", 3*task.Hour })
	all := c.Between(c.start, utc("2026-03-31 00:00"), 100)
	if len(all) != 23 {
		t.Fatal(len(all), all)
	}
	for i, o := range all {
		if o.Due.Before(o.Planned) || o.Due.Sub(o.Planned) > 3*time.Hour || i > 0 && !all[i-1].Due.Before(o.Planned) {
			t.Errorf("%v after %v", o, all[max(i-1, 0)])
		}
		if next, ok := c.Next(o.Due.Add(-1)); !ok || next != o {
			t.Errorf("Next before %v is %v", o, next)
		}
		if prev, ok := c.Prev(o.Due); !ok || prev != o {
			t.Errorf("Prev at %v is %v", o, prev)
		}
	}
}
