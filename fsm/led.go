package fsm

import (
	"strconv"
	"strings"

	"lanjobs/task"
)

// ledEnd is something that ends at a time on Led.
type ledEnd struct {
	at    task.Millis
	place int
}

// ledHeap orders by time, then place: what comes out of it, and when, is the same on every replica.
type ledHeap []ledEnd

func (h ledHeap) Len() int { return len(h) }
func (h ledHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].place < h[j].place
}
func (h ledHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *ledHeap) Push(x any)   { *h = append(*h, x.(ledEnd)) }
func (h *ledHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

// rfc3339 writes Unix milliseconds as people do, in UTC, to the second: the ledger has no package time. 0 = "".
func rfc3339(ms int64) string {
	if ms == 0 {
		return ""
	}
	days, rest := floorDiv(ms, 86_400_000)
	// Days are counted from 1 March of the year 0 on, in eras of 400 years (H. Hinnant, chrono-compatible date algorithms).
	era, dayOfEra := floorDiv(days+719_468, 146_097)
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36_524 - dayOfEra/146_096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153
	day, month, year := dayOfYear-(153*m+2)/5+1, m+3, yearOfEra+era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	seconds := rest / 1000
	var b strings.Builder
	for _, part := range []struct {
		n      int64
		digits int
		after  string
	}{{year, 4, "-"}, {month, 2, "-"}, {day, 2, "T"}, {seconds / 3600, 2, ":"}, {seconds / 60 % 60, 2, ":"}, {seconds % 60, 2, "Z"}} {
		text := strconv.FormatInt(part.n, 10)
		b.WriteString(strings.Repeat("0", max(part.digits-len(text), 0)))
		b.WriteString(text + part.after)
	}
	return b.String()
}

func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
