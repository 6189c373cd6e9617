package schedule

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"lanjobs/task"
)

// Describe says in plain words when a schedule fires, as in "every Monday at 06:00 Europe/Berlin". A Spec that Check refuses
// is shown as it was written.
func Describe(spec Spec) string {
	c := compile(&spec)
	var words string
	switch {
	case len(c.faults) > 0:
		return strings.TrimSpace("not valid: " + spec.Cron + " " + spec.At)
	case c.kind == kindEvery:
		words = "every " + one(inWords(spec.Every))
	case c.kind == kindAt:
		words = "once at " + c.at.In(c.zone).Format("2006-01-02 15:04:05 ") + zoneInWords(c.zone)
	default:
		words = c.cron.inWords(zoneInWords(c.zone))
	}
	if spec.Jitter > 0 {
		words += ", up to " + inWords(spec.Jitter) + " later"
	}
	if spec.Paused {
		words += " (paused)"
	}
	return words
}

// zoneInWords is the name of a zone; of those whose sign is turned round, also what it means.
func zoneInWords(zone *time.Location) string {
	name := zone.String()
	if rest, ok := strings.CutPrefix(name, "Etc/GMT"); ok && len(rest) > 1 && rest != "-0" && rest != "+0" {
		sign := "-"
		if rest[0] == '-' {
			sign = "+"
		}
		name += " (UTC" + sign + rest[1:] + ")"
	}
	return name
}

var (
	monthNames = []string{"", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	dayNames   = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
)

// inWords puts together the days and the times of day.
func (c *cron) inWords(zone string) string {
	days := c.daysInWords()
	if often, all := c.oftenInWords(); often != "" {
		switch {
		case all && days == "every day":
			if c.runsOn() {
				return often // the same in all zones
			}
			return often + " " + zone
		case days == "every day":
			return days + ", " + often + " " + zone
		}
		return often + " " + days + ", " + zone
	}
	return days + " at " + c.timesInWords() + " " + zone
}

// oftenInWords is for schedules with a rhythm: "every 15 minutes", "" for those with times of day; all if it goes on all day.
func (c *cron) oftenInWords() (words string, all bool) {
	step := stride(c.minute, 60)
	hours := stride(c.hour, 24)
	switch {
	case hours == 1 && step > 0 && step < 60:
		return "every " + one(fmt.Sprintf("%d minutes", step)), true
	case hours == 1 && step == 60:
		return "every hour", true
	case hours == 1:
		return "every hour at minute " + numbers(c.minute), true
	case hours > 1 && hours < 24 && step == 60:
		return fmt.Sprintf("every %d hours", hours), true
	case step > 0 && step < 30:
		words = "every " + one(fmt.Sprintf("%d minutes", step))
		low, high := bits.TrailingZeros64(c.hour), bits.Len64(c.hour)-1
		if c.hour == span(low, high, 1) {
			return words + fmt.Sprintf(" from %02d:00 to %02d:%02d", low, high, bits.Len64(c.minute)-1), false
		}
		return words + " in hour " + numbers(c.hour), false
	}
	return "", false
}

// stride is n for {0, n, 2n, …} that goes evenly into size, and size for {0}; 0 for other sets.
func stride(set uint64, size int) int {
	if set == 1 {
		return size
	}
	n := bits.TrailingZeros64(set &^ 1)
	if n < size && size%n == 0 && set == span(0, size-1, n) {
		return n
	}
	return 0
}

// timesInWords lists the times of day.
func (c *cron) timesInWords() string {
	if bits.OnesCount64(c.minute)*bits.OnesCount64(c.hour) > 8 {
		return "minute " + numbers(c.minute) + " of hour " + numbers(c.hour)
	}
	var out []string
	for h := range 24 {
		for m := range 60 {
			if c.hour>>h&1 != 0 && c.minute>>m&1 != 0 {
				out = append(out, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
	}
	return and(out)
}

// daysInWords says on which days.
func (c *cron) daysInWords() string {
	var ways []string
	months := and(pick(monthNames, c.month))
	if c.dom != allDays {
		of := "every month"
		if c.month != allMonths {
			of = months
		}
		ways = append(ways, "on day "+numbers(c.dom)+" of "+of)
	}
	if c.weekday != allWeekdays {
		week := "every " + and(pick(dayNames, c.weekday))
		if c.weekday == span(1, 5, 1) {
			week = "every Monday to Friday"
		}
		if c.month != allMonths {
			week += " in " + months
		}
		ways = append(ways, week)
	}
	switch {
	case len(ways) > 0:
		return strings.Join(ways, " and ")
	case c.month != allMonths:
		return "every day in " + months
	}
	return "every day"
}

func pick(names []string, set uint64) []string {
	var out []string
	for i, name := range names {
		if set>>i&1 != 0 {
			out = append(out, name)
		}
	}
	return out
}

// numbers lists a set with its ranges.
func numbers(set uint64) string {
	f := field{high: 63}
	return and(strings.Split(f.format(set, false), ","))
}

func and(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return words[0]
}

// one turns "1 minutes" into "minute".
func one(words string) string {
	if unit, ok := strings.CutPrefix(words, "1 "); ok {
		return strings.TrimSuffix(unit, "s")
	}
	return words
}

// inWords writes a length: 5 minutes, 1h30m0s.
func inWords(m task.Millis) string {
	for _, u := range []struct {
		size task.Millis
		name string
	}{{task.Day, "days"}, {task.Hour, "hours"}, {task.Minute, "minutes"}, {task.Second, "seconds"}} {
		if n := m / u.size; n > 0 && m%u.size == 0 {
			words := fmt.Sprintf("%d %s", n, u.name)
			if n == 1 {
				words = strings.TrimSuffix(words, "s")
			}
			return words
		}
	}
	if m == 0 {
		return "0"
	}
	d := m.Duration().String()
	if strings.HasSuffix(d, "m0s") {
		d = strings.TrimSuffix(d, "0s")
	}
	return d
}
