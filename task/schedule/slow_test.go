package schedule

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// slow is a cron expression read the slow way, apart from the parser.
type slow struct {
	minute, hour, dom, month, weekday []bool
	rhythm                            bool
}

var slowNames = strings.NewReplacer("sun", "0", "mon", "1", "tue", "2", "wed", "3", "thu", "4", "fri", "5", "sat", "6", "jan", "1", "feb", "2", "mar", "3",
	"apr", "4", "may", "5", "jun", "6", "jul", "7", "aug", "8", "sep", "9", "oct", "10", "nov", "11", "dec", "12")

func slowField(text string, low, high int) []bool {
	fits := make([]bool, high+1)
	for item := range strings.SplitSeq(slowNames.Replace(text), ",") {
		body, step, has := strings.Cut(item, "/")
		n := 1
		if has {
			n, _ = strconv.Atoi(step)
		}
		a, b := low, high
		if body != "*" {
			first, last, isRange := strings.Cut(body, "-")
			a, _ = strconv.Atoi(first)
			b = a
			if isRange {
				b, _ = strconv.Atoi(last)
			}
		}
		for v := a; v <= b; v += n {
			fits[v%len(fits)] = true
		}
	}
	return fits
}

func readSlow(expr string) slow {
	p := strings.Fields(expr)
	s := slow{minute: slowField(p[0], 0, 59), hour: slowField(p[1], 0, 23), dom: slowField(p[2], 1, 31), month: slowField(p[3], 1, 12), weekday: slowField(p[4], 0, 6)}
	s.rhythm = p[0][0] == '*' && !strings.Contains(p[0], ",") || !slices.Contains(s.minute, false)
	return s
}

func (s slow) everyHour() bool { return !slices.Contains(s.hour, false) }

func (s slow) fitsDay(local int) bool {
	t := time.Unix(int64(local)*60, 0).UTC()
	dom, week := s.dom[t.Day()], s.weekday[t.Weekday()]
	day := dom && week
	if slices.Contains(s.dom[1:], false) && slices.Contains(s.weekday, false) {
		day = dom || week
	}
	return day && s.month[t.Month()]
}
