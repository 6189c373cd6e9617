package api

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"lanjobs/task"
	"lanjobs/task/jobfile"
)

// flag reads a parameter that is yes or no; the name alone is yes.
func (q *request) flag(name string) (bool, error) {
	values, given := q.query[name]
	if !given {
		return false, nil
	}
	switch values[0] {
	case "1", "true", "yes", "":
		return true, nil
	case "0", "false", "no":
		return false, nil
	}
	return false, invalid(fmt.Sprintf("%s %s is neither 1 nor 0", name, shown(values[0])), "")
}

// count reads a whole number from 0 on, kept below most; def if it is not given.
func (q *request) count(name string, def, most int) (int, error) {
	text := q.query.Get(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, invalid(fmt.Sprintf("%s %s is not a number from 0 on", name, shown(text)), "")
	}
	return min(n, most), nil
}

// page reads how long a list may be.
func (q *request) page() (int, error) {
	n, err := q.count("limit", defaultPage, maxPage)
	if n == 0 {
		n = defaultPage
	}
	return n, err
}

// list reads a parameter with several values, separated by commas. known, if given, are those that mean something.
func (q *request) list(name string, known []string) ([]string, error) {
	text := q.query.Get(name)
	if text == "" {
		return nil, nil
	}
	values := strings.Split(text, ",")
	if len(values) > maxValues {
		return nil, invalid(fmt.Sprintf("%s has more than %d values", name, maxValues), "")
	}
	for _, v := range values {
		if known != nil && !slices.Contains(known, v) {
			return nil, invalid(name+" "+shown(v)+" is not known", "one of "+strings.Join(known, ", "))
		}
	}
	return values, nil
}

// ranges reads shard numbers: 3,7,10-19. What comes back is in order, without overlap, so that it can be searched.
func (q *request) ranges(name string) ([]task.Range, error) {
	text := q.query.Get(name)
	if text == "" {
		return nil, nil
	}
	rs, err := task.ParseRanges(text)
	if err != nil {
		return nil, invalid(err.Error(), "")
	}
	return inOrder(rs), nil
}

func inOrder(rs []task.Range) []task.Range {
	slices.SortFunc(rs, func(a, b task.Range) int { return cmp.Compare(a.First, b.First) })
	out := rs[:0]
	for _, r := range rs {
		if n := len(out); n > 0 && r.First <= out[n-1].Last {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// within tells whether a number is in one of ranges in order; in no ranges at all every number is.
func within(rs []task.Range, k int) bool {
	if len(rs) == 0 {
		return true
	}
	i := sort.Search(len(rs), func(i int) bool { return rs[i].Last >= k })
	return i < len(rs) && rs[i].First <= k
}

// duration reads a length of time: seconds, or as job files have it (90s, 1h30m).
func (q *request) duration(name string, most time.Duration) (time.Duration, error) {
	text := q.query.Get(name)
	if text == "" {
		return 0, nil
	}
	d, ok := lengthOf(text)
	if !ok || d > most {
		return 0, invalid(fmt.Sprintf("%s %s is not a length of time up to %s", name, shown(text), short(most)), "write seconds, or 90s, 5m, 1h30m")
	}
	return d, nil
}

func lengthOf(text string) (time.Duration, bool) {
	if m, err := jobfile.ParseLength(text); err == nil {
		return m.Duration(), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	return secondsOf(f)
}

// secondsOf makes a length of a number of seconds; false for what is none.
func secondsOf(f float64) (time.Duration, bool) {
	if !(f >= 0 && f <= jobfile.MaxLength.Duration().Seconds()) || math.IsNaN(f) {
		return 0, false
	}
	return time.Duration(f * float64(time.Second)), true
}

// moment reads a parameter that is a moment: RFC 3339, or how long ago. The zero time if it is not given.
func (q *request) moment(name string, now time.Time) (time.Time, error) {
	text := q.query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	d, ok := lengthOf(text)
	if !ok {
		return time.Time{}, invalid(name+" "+shown(text)+" is neither a time nor a length of time", "write 2026-11-29T12:00:00Z, or 1h for an hour ago; the + of a zone is %2B in a query")
	}
	return now.Add(-d), nil
}
