package cli

import (
	"fmt"
	"time"
)

// short is a length of time in one unit, for columns: 12s, 4m, 2h, 3d.
func short(seconds float64) string {
	s := int(max(seconds, 0))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 60*60:
		return fmt.Sprintf("%dm", s/60)
	case s < 48*60*60:
		return fmt.Sprintf("%dh", s/3600)
	}
	return fmt.Sprintf("%dd", s/86400)
}

// length is a length of time in two units: 4m12s, 2h05m, 3d4h. Nothing of the smaller one is not written: 4m, 2h, 3d.
func length(seconds float64) string {
	s := int(max(seconds, 0))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 60*60:
		return two(s/60, "m", "%02ds", s%60)
	case s < 24*60*60:
		return two(s/3600, "h", "%02dm", s/60%60)
	}
	return two(s/86400, "d", "%dh", s/3600%24)
}

func two(great int, unit, format string, small int) string {
	if small == 0 {
		return fmt.Sprintf("%d%s", great, unit)
	}
	return fmt.Sprintf("%d%s"+format, great, unit, small)
}

// shorter is short, or "-".
func shorter(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return short(*seconds)
}

// shortStamp is a moment to the minute: 23:10, or 28 Nov 23:10 if it is not of today.
func shortStamp(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("2 Jan 15:04")
}

// stamp is a moment for a person: the clock alone if it is of today, else the day too.
func stamp(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format("2006-01-02 15:04:05")
}
