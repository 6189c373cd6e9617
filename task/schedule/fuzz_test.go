package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lanjobs/task"
)

// FuzzParse: nothing crashes; what is refused is told in words fit to be shown; what is taken means the same once it was
// written out and read again, and fires only at times that fit.
func FuzzParse(f *testing.F) {
	for _, expr := range slices.Concat(sparse, dense, []string{"@daily", "TZ=", "TZ=\t", "@every 0s", "0 0 L * *", "0 0 ? * 5#3", "*/0 * * * *", "5-1 * * * *", ", * * * *",
		"0 0 * * fri-sun", "1 2 3 4 5 6", "*-5 * * * *", "0 0 30 2 *", "\x00", "９ * * * *"}) {
		f.Add(expr)
	}
	zone := load(f, "Europe/Berlin")
	from := utc("2026-03-28 00:00")
	f.Fuzz(func(t *testing.T, expr string) {
		var faults []task.Fault
		c := parseCron(expr, func(message, suggestion string) {
			faults = append(faults, task.Fault{Message: message, Suggestion: suggestion})
		})
		for _, f := range faults {
			if f.Message == "" || !utf8.ValidString(f.Message) || strings.ContainsAny(f.Message, "\x00\x1b\n\r") {
				t.Errorf("%q: %q", expr, f.Message)
			}
		}
		spec := Default()
		spec.Cron = expr
		if f := Check(&spec, from); (len(f) == 0) && len(faults) > 0 {
			t.Fatalf("%q is refused, but Check takes it", expr)
		} else if Describe(spec) == "" {
			t.Errorf("%q has no words", expr)
		}
		if len(faults) > 0 {
			return
		}
		again := parseCron(c.String(), func(message, _ string) { t.Fatalf("%q becomes %q: %s", expr, c.String(), message) })
		if again != c {
			t.Fatalf("%q becomes %q, which is something else", expr, c.String())
		}
		cal := calendarOf(t, expr, zone)
		last := from
		for _, o := range cal.Between(from, from.AddDate(1, 0, 0), 50) {
			local := o.Planned.In(zone)
			start, _ := local.ZoneBounds()
			fits := c.minute>>local.Minute()&1 != 0 && c.hour>>local.Hour()&1 != 0 && c.month>>local.Month()&1 != 0
			if !o.Planned.After(last) || !fits && !local.Equal(start) {
				t.Fatalf("%q: %v after %v", expr, o, last)
			}
			last = o.Planned
		}
		ahead := cal.Between(from, last, 50)
		for i := len(ahead) - 1; i >= 0; i-- {
			if o, ok := cal.Prev(last); !ok || o != ahead[i] {
				t.Fatalf("%q: %v back from %v, not %v", expr, o, last, ahead[i])
			}
			last = ahead[i].Planned.Add(-time.Second)
		}
	})
}

// FuzzSpec: no Spec crashes anything, and what Check takes can be compiled and has an answer for any clock.
func FuzzSpec(f *testing.F) {
	f.Add("0 3 * * *", int64(0), "", "UTC", int64(0), int64(1795953600))
	f.Add("", int64(5000), "", "Europe/Berlin", int64(100), int64(1)<<60)
	f.Add("", int64(5086), "", "Europe/Berlin", int64(100), int64(1)<<60) // the end of time
	f.Add("", int64(0), "2027-03-28T02:30", "Europe/Berlin", int64(0), int64(-1)<<60)
	f.Add("", int64(0), "9999-12-31T23:59:59Z", "UTC+8", int64(1), int64(0))
	f.Fuzz(func(t *testing.T, cron string, every int64, at, zone string, jitter, seconds int64) {
		spec := Default()
		spec.Cron, spec.Every, spec.At, spec.Timezone, spec.Jitter = cron, task.Millis(every), at, zone, task.Millis(jitter)
		faults := Check(&spec, day0)
		c, err := Compile(spec, "s1", day0)
		if len(faults) == 0 && err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			if f.Message == "" || !strings.HasPrefix(f.Path, "schedule") {
				t.Errorf("%+v", f)
			}
		}
		Describe(spec)
		if err != nil {
			return
		}
		now := time.Unix(seconds, 0)
		d := c.Decide(Occurrence{}, now)
		if len(d.Fire) > MaxRunAll {
			t.Errorf("%d runs", len(d.Fire))
		}
		if again := c.Decide(d.Last, now); again.Settled() {
			t.Errorf("settled twice: %+v, %+v", d, again)
		}
		c.NextTimes(now, 5)
	})
}
