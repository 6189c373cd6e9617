package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lanjobs/task"
)

// shown quotes what a caller typed, cut to a length that fits into a sentence.
func shown(s string) string {
	if utf8.RuneCountInString(s) > maxEcho {
		s = string([]rune(s)[:maxEcho-1]) + "…"
	}
	return strconv.Quote(s)
}

// oneLine tells whether a text can be shown and stored: UTF-8, no control characters, no more than n bytes.
func oneLine(s string, n int) bool {
	return len(s) <= n && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// short is a length of time in few characters: 18s, 4m10s, 12m, 3h, 2d.
func short(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute && d%time.Minute >= time.Second:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

func shortMillis(m task.Millis) string { return short(m.Duration()) }

// seconds is a length as views have it.
func seconds(m task.Millis) float64 { return float64(m) / 1000 }

// wallTime is a leader's wall clock as views have it; nil for never.
func wallTime(millis int64) *time.Time {
	if millis == 0 {
		return nil
	}
	t := time.UnixMilli(millis).UTC()
	return &t
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// some joins the first few texts and says how many more there are.
func some(texts []string, most int, separator string) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return strings.Join(texts[:most], separator) + fmt.Sprintf(" and %d more", len(texts)-most)
}

// ranges gathers ascending shard numbers; a million of them take no more room than their first ranges.
type ranges struct {
	n    int
	list []task.Range
	cut  bool
}

const maxRanges = 20

func (r *ranges) add(k int) {
	r.n++
	if last := len(r.list) - 1; last >= 0 && r.list[last].Last == k-1 && !r.cut {
		r.list[last].Last = k
		return
	}
	if len(r.list) == maxRanges {
		r.cut = true
		return
	}
	r.list = append(r.list, task.Range{First: k, Last: k})
}

func (r *ranges) String() string {
	var parts []string
	for _, p := range r.list {
		if p.First == p.Last {
			parts = append(parts, strconv.Itoa(p.First))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", p.First, p.Last))
		}
	}
	s := strings.Join(parts, ",")
	if r.cut {
		s += fmt.Sprintf(",… (%d in all)", r.n)
	}
	return s
}
