package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The oracle walks through time minute by minute, knows nothing of periods, and remembers each local minute that it saw.

// walk is the local minutes (counted from 1970 on a calendar without zones) of all real minutes from a moment on.
type walk struct {
	zone  *time.Location
	from  time.Time
	local []int
}

func walkThrough(zone *time.Location, from, to time.Time) walk {
	w := walk{zone: zone, from: from, local: make([]int, 0, int(to.Sub(from)/time.Minute)+1)}
	for t := from; t.Before(to); t = t.Add(time.Minute) {
		_, offset := t.In(zone).Zone()
		w.local = append(w.local, int(t.Unix()+int64(offset))/60)
	}
	return w
}

// changes are the indexes at which the offset changes.
func (w walk) changes() []int {
	var out []int
	for i := 1; i < len(w.local); i++ {
		if w.local[i] != w.local[i-1]+1 {
			out = append(out, i)
		}
	}
	return out
}

// sum is the same for zones that have the same local times all the way.
func (w walk) sum() [sha256.Size]byte {
	data := binary.BigEndian.AppendUint64(nil, uint64(w.from.Unix()))
	for _, i := range append([]int{0}, w.changes()...) {
		data = binary.BigEndian.AppendUint64(data, uint64(i))
		data = binary.BigEndian.AppendUint64(data, uint64(w.local[i]))
	}
	return sha256.Sum256(data)
}

// fires gives the names and moments from index a on and before b; what lies before a is seen, but not given.
func (w walk) fires(s slow, a, b int) []string {
	var out []string
	begin := max(a-3*1440, 0)
	base := slices.Min(w.local[begin:b])
	seen := make([]bool, slices.Max(w.local[begin:b])-base+1)
	fits := func(local int, day bool) bool { return day && s.hour[local/60%24] && s.minute[local%60] }
	day, dayFits := -1, false
	for i := begin; i < b; i++ {
		l := w.local[i]
		name := -1
		if i > begin && l > w.local[i-1]+1 {
			for skipped := w.local[i-1] + 1; skipped < l; skipped++ {
				if !seen[skipped-base] && !s.everyHour() && fits(skipped, s.fitsDay(skipped)) {
					name = skipped
				}
				seen[skipped-base] = true
			}
		}
		if l/1440 != day {
			day, dayFits = l/1440, s.fitsDay(l)
		}
		if fits(l, dayFits) && (!seen[l-base] || s.everyHour() || s.rhythm) {
			name = l
		}
		seen[l-base] = true
		if name >= 0 && i >= a {
			t := w.from.Add(time.Duration(i) * time.Minute)
			nominal := time.Unix(int64(name)*60, 0).UTC().Format("2006-01-02T15:04")
			if s.everyHour() || s.rhythm {
				nominal += t.In(w.zone).Format("-07:00")
			}
			out = append(out, fmt.Sprintf("%s[%s] %s", nominal, w.zone, t.UTC().Format("2006-01-02T15:04:05Z")))
		}
	}
	return out
}

// calendarOf makes a Calendar without a check, for zones that have no name.
func calendarOf(t testing.TB, expr string, zone *time.Location) *Calendar {
	t.Helper()
	c := &Calendar{spec: Default(), start: time.Unix(0, 0)}
	c.kind, c.zone = kindCron, zone
	c.cron = parseCron(expr, func(message, _ string) { t.Fatalf("%q: %s", expr, message) })
	return c
}

func shown(o Occurrence) string { return o.Nominal + " " + o.Due.UTC().Format("2006-01-02T15:04:05Z") }

// compare checks Next and Prev against the oracle, from one moment up to another.
func compare(t *testing.T, w walk, expr string, a, b int) {
	t.Helper()
	c := calendarOf(t, expr, w.zone)
	want := w.fires(readSlow(expr), a, b)
	from, to := w.from.Add(time.Duration(a)*time.Minute), w.from.Add(time.Duration(b)*time.Minute-1)
	var ahead, back []string
	for o, ok := c.Next(from.Add(-1)); ok && !o.Due.After(to); o, ok = c.Next(o.Due) {
		ahead = append(ahead, shown(o))
		if len(ahead) > b-a {
			t.Fatalf("%s %q: more occurrences than minutes", w.zone, expr)
		}
	}
	for o, ok := c.Prev(to); ok && !o.Due.Before(from); o, ok = c.Prev(o.Due.Add(-1)) {
		back = append(back, shown(o))
	}
	slices.Reverse(back)
	differ(t, fmt.Sprintf("%s %q Next", w.zone, expr), ahead, want)
	differ(t, fmt.Sprintf("%s %q Prev", w.zone, expr), back, want)
}

func differ(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("%s: occurrence %d is %s, the oracle says %s", what, i, g, w)
			return
		}
	}
}

var (
	// Few enough occurrences for a whole year.
	sparse = []string{"30 2 * * *", "0 0 * * *", "30 1 * * *", "0 2,3 * * *", "15,45 0-3 * * *", "0 */6 * * *", "*/15 1-3 * * *", "*/30 0,23 * * *",
		"* 2 * * sun", "59 23 31 * *", "0 3 29 2 *", "5 0 1,15 * fri", "0 12 * 1-6/2 mon-wed", "20 * * * 6,0"}
	// For the days around a change.
	dense = []string{"* * * * *", "*/15 * * * *", "0 * * * *", "7-59/13 * * * *", "*/7 */2 * * *", "* 0-4 * * *", "50 0-23 * * *"}
)

func yearOf(zone *time.Location, year int) walk {
	return walkThrough(zone, time.Date(year-1, 12, 28, 0, 0, 0, 0, time.UTC), time.Date(year+1, 1, 3, 0, 0, 0, 0, time.UTC))
}

// compareYear compares a zone over a year of local time, or over the days around its changes only.
func compareYear(t *testing.T, w walk, changesOnly bool) {
	t.Helper()
	first, end := 3*1440, len(w.local)
	often := dense
	if changesOnly {
		often = slices.Concat(sparse, dense)
	} else {
		for _, expr := range sparse {
			compare(t, w, expr, first, end)
		}
	}
	for _, i := range append(w.changes(), 5*1440) {
		for _, expr := range often {
			compare(t, w, expr, max(i-1440, first), min(i+2*1440, end))
		}
	}
}

func load(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, message, suggestion := loadZone(name)
	if zone == nil {
		t.Fatal(message, suggestion)
	}
	return zone
}

// Zones and years with something odd: date line, half an hour, two hours, midnight, new standard offset, Ramadan.
func TestOddZones(t *testing.T) {
	for _, tt := range []struct {
		zone string
		year int
	}{
		{"Pacific/Apia", 2011}, {"Pacific/Kwajalein", 1993}, {"Australia/Lord_Howe", 2026}, {"Pacific/Chatham", 2027}, {"Antarctica/Troll", 2026},
		{"Antarctica/Casey", 2010}, {"America/Havana", 2026}, {"America/Caracas", 2016}, {"Asia/Pyongyang", 2018}, {"Africa/Casablanca", 2026},
		{"Europe/Dublin", 2026}, {"Asia/Gaza", 2011}, {"Africa/Cairo", 2010}, {"America/Scoresbysund", 2024}, {"Europe/Berlin", 2026},
	} {
		t.Run(tt.zone, func(t *testing.T) {
			t.Parallel()
			compareYear(t, yearOf(load(t, tt.zone), tt.year), true)
		})
	}
}

// seeds is how many zones are drawn: LANJOBS_SEEDS, or few. From 598 on it is all of them, each in all the years.
func seeds(few int) int {
	if n, err := strconv.Atoi(os.Getenv("LANJOBS_SEEDS")); err == nil {
		return n
	}
	return few
}

func TestAllZones(t *testing.T) {
	var done sync.Map
	names := strings.Fields(zoneList)
	years := []int{2011, 2026, 2027, 2028}
	n := seeds(4)
	whole := n >= len(names)
	r := rand.New(rand.NewPCG(uint64(n), 32))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:min(n, len(names))] {
		drawn := years
		if !whole {
			drawn = []int{years[r.IntN(len(years))]}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, year := range drawn {
				w := yearOf(load(t, name), year)
				if _, same := done.LoadOrStore(w.sum(), name); !same { // many zones differ in their names only
					compareYear(t, w, false)
				}
			}
		})
	}
}
