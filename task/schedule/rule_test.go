package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// The rule of the package comment, in examples that a person can check. Berlin: 2026-03-29 01:00Z 02:00 → 03:00, 2026-10-25
// 01:00Z 03:00 → 02:00.
func TestClockChanges(t *testing.T) {
	for _, tt := range []struct{ what, expr, zone, from, to, want string }{
		{"C13: skipped, once, right after", "30 2 * * *", "America/Los_Angeles", "2026-03-07 12:00", "2026-03-09 12:00",
			"03-08T02:30=03-08 10:00, 03-09T02:30=03-09 09:30"},
		{"C13: twice, the first time", "30 1 * * *", "America/Los_Angeles", "2026-10-31 12:00", "2026-11-02 12:00",
			"11-01T01:30=11-01 08:30, 11-02T01:30=11-02 09:30"},
		{"several in the gap are one", "15,45 2 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00", "03-29T02:45=03-29 01:00"},
		{"and one with what is due then", "0 2,3 * * *", "Europe/Berlin", "2026-03-28 12:00", "2026-03-29 12:00", "03-29T03:00=03-29 01:00"},
		{"hourly runs on through the gap", "30 * * * *", "Europe/Berlin", "2026-03-28 23:45", "2026-03-29 02:45",
			"03-29T01:30+01:00=03-29 00:30, 03-29T03:30+02:00=03-29 01:30, 03-29T04:30+02:00=03-29 02:30"},
		{"and through both hours", "30 * * * *", "Europe/Berlin", "2026-10-25 00:00", "2026-10-25 03:00",
			"10-25T02:30+02:00=10-25 00:30, 10-25T02:30+01:00=10-25 01:30, 10-25T03:30+01:00=10-25 02:30"},
		{"0-23 means the same", "30 0-23 * * *", "Europe/Berlin", "2026-10-25 00:00", "2026-10-25 02:00", "10-25T02:30+02:00=10-25 00:30, 10-25T02:30+01:00=10-25 01:30"},
		{"*/15 1-3 has no hole", "*/30 1-3 * * *", "Europe/Berlin", "2026-10-25 00:00", "2026-10-25 03:00",
			"10-25T02:00+02:00=10-25 00:00, 10-25T02:30+02:00=10-25 00:30, 10-25T02:00+01:00=10-25 01:00, 10-25T02:30+01:00=10-25 01:30, 10-25T03:00+01:00=10-25 02:00, 10-25T03:30+01:00=10-25 02:30"},
		{"nor in the gap", "*/30 1-3 * * *", "Europe/Berlin", "2026-03-29 00:00", "2026-03-29 03:00",
			"03-29T01:00+01:00=03-29 00:00, 03-29T01:30+01:00=03-29 00:30, 03-29T03:00+02:00=03-29 01:00, 03-29T03:30+02:00=03-29 01:30"},
		{"all of its hours skipped: once", "*/15 2 * * *", "Europe/Berlin", "2026-03-29 00:00", "2026-03-29 03:00", "03-29T02:45+02:00=03-29 01:00"},
		{"certain minutes: once each", "0,30 2 * * *", "Europe/Berlin", "2026-10-24 12:00", "2026-10-25 12:00", "10-25T02:00=10-25 00:00, 10-25T02:30=10-25 00:30"},
		{"*/2 names twelve hours", "0 */2 * * *", "Europe/Berlin", "2026-10-24 22:00", "2026-10-25 04:00", "10-25T00:00=10-24 22:00, 10-25T02:00=10-25 00:00, 10-25T04:00=10-25 03:00"},
		{"and loses none", "0 */2 * * *", "Europe/Berlin", "2026-03-28 23:00", "2026-03-29 03:00", "03-29T00:00=03-28 23:00, 03-29T02:00=03-29 01:00, 03-29T04:00=03-29 02:00"},
		{"half an hour skipped", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03 00:00", "2026-10-04 00:00", "10-04T02:15=10-03 15:30"},
		{"half an hour twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 00:00", "2026-04-05 12:00", "04-05T01:45=04-04 14:45"},
		{"a day skipped", "0 3 * * *", "Pacific/Apia", "2011-12-29 12:00", "2011-12-31 00:00",
			"12-29T03:00=12-29 13:00, 12-30T03:00=12-30 10:00, 12-31T03:00=12-30 13:00"},
		{"its midnight is that of the next", "0 0 * * *", "Pacific/Apia", "2011-12-29 12:00", "2012-01-01 00:00", "12-31T00:00=12-30 10:00, 01-01T00:00=12-31 10:00"},
		{"a Friday that there was not", "0 3 * * fri", "Pacific/Apia", "2011-12-28 12:00", "2012-01-05 00:00", "12-30T03:00=12-30 10:00"},
		{"a day skipped, hourly", "0 * * * *", "Pacific/Apia", "2011-12-30 08:30", "2011-12-30 11:30", "12-29T23:00-10:00=12-30 09:00, 12-31T00:00+14:00=12-30 10:00, 12-31T01:00+14:00=12-30 11:00"},
		{"a day skipped in 1993", "0 12 * * *", "Pacific/Kwajalein", "1993-08-20 12:01", "1993-08-22 23:00", "08-20T12:00=08-21 00:00, 08-21T12:00=08-21 12:00, 08-22T12:00=08-22 00:00"},
		{"midnight skipped", "0 0 * * *", "America/Havana", "2026-03-07 12:00", "2026-03-08 12:00", "03-08T00:00=03-08 05:00"},
		{"midnight twice", "0 0 * * *", "America/Havana", "2026-10-31 12:00", "2026-11-01 12:00", "11-01T00:00=11-01 04:00"},
		{"standard offset changed", "45 2 * * *", "America/Caracas", "2016-04-30 12:00", "2016-05-02 00:00", "05-01T02:45=05-01 07:00"},
	} {
		var got []string
		from, to := utc(tt.from), utc(tt.to)
		for _, o := range calendarOf(t, tt.expr, load(t, tt.zone)).Between(from.Add(-1), to, 100) {
			name, _, _ := strings.Cut(o.Nominal, "[")
			got = append(got, name[5:]+"="+o.Due.UTC().Format("01-02 15:04"))
		}
		if all := strings.Join(got, ", "); all != tt.want {
			t.Errorf("%s: %s %s gives\n  %s, not\n  %s", tt.what, tt.expr, tt.zone, all, tt.want)
		}
	}
}

func TestLeapDays(t *testing.T) {
	c := calendarOf(t, "0 0 29 2 *", time.UTC)
	var got []string
	for o, ok := c.Next(utc("2090-01-01 00:00")); ok && len(got) < 3; o, ok = c.Next(o.Due) {
		got = append(got, o.Nominal)
	}
	if want := []string{"2092-02-29T00:00[UTC]", "2096-02-29T00:00[UTC]", "2104-02-29T00:00[UTC]"}; !slices.Equal(got, want) {
		t.Error(got)
	}
	if o, ok := calendarOf(t, "0 0 30 2 *", time.UTC).Next(utc("2026-01-01 00:00")); ok {
		t.Error("30 February is ", o)
	}
	if o, ok := calendarOf(t, "0 0 30 2 *", time.UTC).Prev(utc("2026-01-01 00:00")); ok {
		t.Error("30 February was ", o)
	}
}

func TestEveryDoesNotDrift(t *testing.T) {
	spec := Default()
	spec.Every = 7 * task.Minute
	c, err := Compile(spec, "s1", utc("2026-03-29 00:00").Add(123*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := c.Prev(utc("2026-03-29 00:06")); ok {
		t.Error("before the first turn: ", o)
	}
	for n, at := 1, c.start; n < 2000; n++ {
		// Asked late, by another amount each time.
		o, _ := c.Next(at.Add(time.Duration(n*977%419000) * time.Millisecond))
		want := c.start.Add(time.Duration(n) * 7 * time.Minute)
		if !o.Due.Equal(want) || o.Nominal != want.UTC().Format(time.RFC3339) {
			t.Fatalf("turn %d is %v, not %v", n, o, want)
		}
		if p, ok := c.Prev(want); !ok || p != o {
			t.Fatalf("turn %d back: %v", n, p)
		}
		at = want
	}
}

// C01: nothing is older than its schedule.
func TestNothingBeforeTheStart(t *testing.T) {
	spec := Default()
	spec.Cron, spec.Timezone = "0 3 * * *", "America/New_York"
	c, err := Compile(spec, "s1", utc("2026-06-01 07:00"))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []time.Time{{}, time.Unix(-1<<40, 0), utc("2020-01-01 00:00")} {
		if o, ok := c.Next(from); !ok || !o.Due.Equal(utc("2026-06-02 07:00")) {
			t.Error(from, o)
		}
	}
	if o, ok := c.Prev(utc("2026-06-02 06:59")); ok {
		t.Error(o)
	}
	for _, far := range []time.Time{time.Unix(1<<50, 0), time.Unix(maxWall, 0), time.Unix(1<<62, 0)} {
		if o, ok := c.Next(far); ok {
			t.Error(far, o)
		}
		c.Prev(far)
	}
}

func TestOneOff(t *testing.T) {
	for at, want := range map[string]string{
		"2026-12-24T18:00": "2026-12-24T18:00[Europe/Berlin] 2026-12-24T17:00:00Z", "2026-12-24 18:00:05": "2026-12-24T18:00:05[Europe/Berlin] 2026-12-24T17:00:05Z",
		"2026-12-24T18:00:00+03:00": "2026-12-24T15:00:00Z 2026-12-24T15:00:00Z", "2026-12-24T18:00Z": "2026-12-24T18:00:00Z 2026-12-24T18:00:00Z",
		"2027-03-28T02:30": "2027-03-28T02:30[Europe/Berlin] 2027-03-28T01:00:00Z", "2027-10-31T02:30": "2027-10-31T02:30[Europe/Berlin] 2027-10-31T00:30:00Z",
	} {
		spec := Default()
		spec.At, spec.Timezone = at, "Europe/Berlin"
		now := utc("2026-11-29 12:00")
		if f := Check(&spec, now); f != nil {
			t.Error(at, f)
		}
		c, err := Compile(spec, "s1", now)
		if err != nil {
			t.Fatal(err)
		}
		o, ok := c.Next(now)
		if !ok || shown(o) != want {
			t.Errorf("%s is %s, not %s", at, shown(o), want)
		}
		if again, ok := c.Next(o.Due); ok {
			t.Errorf("%s comes again: %v", at, again)
		}
		if back, ok := c.Prev(o.Due); !ok || back != o {
			t.Errorf("%s back: %v", at, back)
		}
	}
}
