package schedule

import (
	"fmt"
	"time"
)

var (
	momentLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00"}
	localLayouts  = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}
)

// parseAt reads the moment of a one-off schedule, in whole seconds, and its name.
func parseAt(text string, zone *time.Location, say func(message, suggestion string)) (moment time.Time, nominal string) {
	if len(text) > MaxExpression {
		say("it is longer than a date and time", atExample)
		return time.Time{}, ""
	}
	for _, layout := range momentLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			t = t.Truncate(time.Second).UTC()
			return t, t.Format(time.RFC3339)
		}
	}
	for _, layout := range localLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			l := label(t.Unix())
			return time.Unix(momentOf(zone, l), 0).In(zone), nominalOf(l, zone)
		}
	}
	message := fmt.Sprintf("%q is not a date and time", text)
	suggestion := atExample
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		message, suggestion = fmt.Sprintf("%q has no time of day", text), "write "+t.Format("2006-01-02")+"T18:00"
	} else if _, err := time.Parse("15:04", text); err == nil {
		message, suggestion = fmt.Sprintf("%q has no date", text), "as in 2026-12-24T"+text
	}
	say(message, suggestion)
	return time.Time{}, ""
}

const atExample = "as in 2026-12-24T18:00 (in timezone) or 2026-12-24T18:00:00+01:00"

// nominalOf names a local time in a zone. It has no offset, so it stays when the rules of the zone change.
func nominalOf(l label, zone *time.Location) string { return l.String() + "[" + zone.String() + "]" }
