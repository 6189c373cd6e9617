package schedule

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// field is one of the five fields of a cron expression.
type field struct {
	name      string
	low, high int
	top       int      // highest value that may be written; 7 for weekdays
	names     []string // names[i] = low + i
	wrap      int      // 7 where a range may end on Sunday written as 0 or sun; else 0
}

var fields = [5]field{
	{name: "minute", high: 59, top: 59},
	{name: "hour", high: 23, top: 23},
	{name: "day of month", low: 1, high: 31, top: 31},
	{name: "month", low: 1, high: 12, top: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "weekday", high: 6, top: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}, wrap: 7},
}

// all is the set of all values.
func (f *field) all() uint64 { return span(f.low, f.high, 1) }

func span(low, high, step int) uint64 {
	var set uint64
	for v := low; v <= high; v += step {
		set |= 1 << v
	}
	return set
}

// parse reads a field: the set of its values, and whether it asks for a rhythm (* or */n alone, or all values).
func (f *field) parse(text string, say func(message, suggestion string)) (set uint64, rhythm bool) {
	items := strings.Split(text, ",")
	for _, item := range items {
		if item != "" {
			set |= f.item(item, say)
		}
	}
	if slices.Contains(items, "") {
		say(fmt.Sprintf("%s %q has a comma with nothing beside it", f.name, text), "remove the comma")
	}
	if f.wrap != 0 && set>>f.wrap&1 != 0 {
		set = set&^(1<<f.wrap) | 1
	}
	return set, set == f.all() || len(items) == 1 && strings.HasPrefix(text, "*")
}

// item reads one item of the list.
func (f *field) item(item string, say func(message, suggestion string)) uint64 {
	if f.sign(item, say) {
		return 0
	}
	body, stepText, hasStep := strings.Cut(item, "/")
	first, last, isRange := strings.Cut(body, "-")
	low, high := f.low, f.high
	if body != "*" {
		var ok bool
		if low, ok = f.value(first, item, say); !ok {
			return 0
		}
		high = low
		if isRange {
			if high, ok = f.value(last, item, say); !ok {
				return 0
			}
			if high == 0 && low > 0 && f.wrap != 0 {
				high = f.wrap // fri-sun
			} else if low == f.wrap && high < low {
				low = 0 // 7-2
			}
		}
	}
	if high < low {
		say(fmt.Sprintf("%s %q runs backwards", f.name, item), fmt.Sprintf("write %d-%d,%d-%d", low, f.high, f.low, high))
		return 0
	}
	if !hasStep {
		return span(low, high, 1)
	}
	if body != "*" && !isRange {
		say(fmt.Sprintf("%s %q has a step but no range", f.name, item), fmt.Sprintf("write %s-%d/%s", body, f.high, stepText))
		return 0
	}
	step, ok := number(stepText)
	switch {
	case !ok || step == 0:
		say(fmt.Sprintf("%s %q: the step %q is not a number from 1 on", f.name, item, stepText), "as in */5")
		return 0
	case step > high-low:
		suggestion := fmt.Sprintf("write %d", low)
		if high > low {
			suggestion += fmt.Sprintf(", or a step up to %d", high-low)
		}
		say(fmt.Sprintf("%s %q: the step is longer than its range, only %d would be left", f.name, item, low), suggestion)
		return 0
	}
	return span(low, high, step)
}

// sign refuses the signs that other schedulers know.
func (f *field) sign(item string, say func(message, suggestion string)) bool {
	upper := strings.ToUpper(item)
	digits := strings.Trim(upper, "0123456789")
	switch {
	case strings.Contains(item, "?"):
		say(fmt.Sprintf("%s %q: the sign ? is not known", f.name, item), "write * for any")
	case strings.Contains(item, "#"):
		say(fmt.Sprintf("%s %q: the sign # (the n-th weekday of a month) is not known", f.name, item),
			"run on that weekday and let the script look at the date")
	case digits == "L" || digits == "LW" || strings.HasPrefix(upper, "L-"):
		say(fmt.Sprintf("%s %q: the sign L (last) is not known", f.name, item),
			"run on days 28-31 and let the script test for the last one, or use day 1 of the next month")
	case digits == "W":
		say(fmt.Sprintf("%s %q: the sign W (nearest working day) is not known", f.name, item),
			"run on mon-fri and let the script look at the date")
	case upper == "H" || strings.HasPrefix(upper, "H/") || strings.HasPrefix(upper, "H("):
		say(fmt.Sprintf("%s %q: the sign H (spread the load) is not known", f.name, item), "write a number and add  jitter: 10m")
	default:
		return false
	}
	return true
}

// value reads a number or a name.
func (f *field) value(text, item string, say func(message, suggestion string)) (int, bool) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.low + i, true
		}
	}
	where := f.name
	if text != item {
		where = fmt.Sprintf("%s %q:", f.name, item)
	}
	n, ok := number(text)
	if ok && n >= f.low && n <= f.top {
		return n, true
	}
	known := fmt.Sprintf("numbers from %d to %d", f.low, f.top)
	if f.names != nil {
		known += fmt.Sprintf(" or %s … %s", f.names[0], f.names[len(f.names)-1])
		for _, name := range f.names {
			if len(text) > 3 && strings.EqualFold(text[:3], name) {
				known = "write " + name
			}
		}
	}
	if ok {
		say(fmt.Sprintf("%s %s is not from %d to %d", where, text, f.low, f.top), f.instead(n))
	} else {
		say(fmt.Sprintf("%s %q is not understood", where, text), known)
	}
	return 0, false
}

// instead guesses what a number out of range was meant to be.
func (f *field) instead(n int) string {
	if n == f.top+1 && f.low == 0 && f.wrap == 0 {
		return "write 0" // minute 60, hour 24
	}
	return ""
}

// number reads plain decimals of up to four digits. 05 is five; 010 is eight elsewhere.
func number(s string) (int, bool) {
	if len(s) == 0 || len(s) > 4 || len(s) > 2 && s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// format writes a set the way parse reads it.
func (f *field) format(set uint64, rhythm bool) string {
	if set == f.all() {
		return "*"
	}
	var values []int
	for v := f.low; v <= f.high; v++ {
		if set>>v&1 != 0 {
			values = append(values, v)
		}
	}
	if rhythm { // it was written as */n, which has at least two values
		return "*/" + strconv.Itoa(values[1]-values[0])
	}
	var out []string
	for rest := set; rest != 0; {
		low := bits.TrailingZeros64(rest)
		high := low + bits.TrailingZeros64(^(rest >> low)) - 1
		rest &^= span(low, high, 1)
		text := strconv.Itoa(low)
		if high > low {
			text += "-" + strconv.Itoa(high)
		}
		out = append(out, text)
	}
	return strings.Join(out, ",")
}
