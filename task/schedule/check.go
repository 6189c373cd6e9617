package schedule

import (
	"fmt"
	"strings"
	"time"

	"lanjobs/task"
)

// Check tells what is wrong with a Spec at a time: where (Path), what and why (Message), what to write (Suggestion). A
// server calls it before anything reaches the log. What is stored is not checked against the time again: see Compile.
func Check(spec *Spec, now time.Time) []task.Fault {
	c := compile(spec)
	if len(c.faults) > 0 {
		return c.faults
	}
	switch c.kind {
	case kindCron:
		from := max(now.Unix(), minWall)
		moment, _, ok := nextCron(&c.cron, c.zone, from+1)
		if !ok || moment > from+MustFireIn*yearSeconds {
			c.fault("cron", fmt.Sprintf("%q does not fire within %d years: no date fits day of month and month", spec.Cron, MustFireIn),
				"write a day that the month has; 28 is in all of them")
		}
	case kindAt:
		if c.at.Before(now) {
			c.fault("at", fmt.Sprintf("%q is in the past: it was %s ago", spec.At, inWords(task.MillisOf(now.Sub(c.at)))),
				"write a later time, or leave schedule out to run now")
		}
	}
	return c.faults
}

type kind uint8

const (
	kindNone kind = iota
	kindCron
	kindEvery
	kindAt
)

// compiled is what the texts of a Spec mean, or what is wrong with them.
type compiled struct {
	kind    kind
	cron    cron
	zone    *time.Location
	at      time.Time // moment of a one-off
	nominal string    // its name
	faults  []task.Fault
}

func (c *compiled) fault(path, message, suggestion string) {
	c.faults = append(c.faults, task.Fault{Path: strings.TrimSuffix("schedule."+path, "."), Message: message, Suggestion: suggestion})
}

// say gives the function that parsers report to.
func (c *compiled) say(path string) func(message, suggestion string) {
	return func(message, suggestion string) { c.fault(path, path+": "+message, suggestion) }
}

// compile reads a Spec. Nothing here depends on the time of the call.
func compile(spec *Spec) compiled {
	var c compiled
	if zone, message, suggestion := loadZone(spec.Timezone); zone != nil {
		c.zone = zone
	} else {
		c.fault("timezone", message, suggestion)
	}
	c.times(spec)
	c.words(spec)
	c.bounds(spec)
	return c
}

// times reads cron, every and at.
func (c *compiled) times(spec *Spec) {
	var given []string
	if spec.Cron != "" {
		given, c.kind = append(given, "cron"), kindCron
		c.cron = parseCron(spec.Cron, c.say("cron"))
	}
	if spec.Every != 0 {
		given, c.kind = append(given, "every"), kindEvery
		if spec.Every < MinEvery || spec.Every > MaxEvery {
			c.fault("every", fmt.Sprintf("every %s is not from 1s to %s", inWords(spec.Every), inWords(MaxEvery)), "as in  every: 5m")
		}
	}
	if spec.At != "" {
		given, c.kind = append(given, "at"), kindAt
		zone := c.zone
		if zone == nil {
			zone = time.UTC
		}
		c.at, c.nominal = parseAt(spec.At, zone, c.say("at"))
	}
	switch len(given) {
	case 0:
		c.fault("", "the schedule has no time", `give one of  cron: "0 3 * * *"  every: 5m  at: 2026-12-24T18:00`)
	case 1:
	default:
		c.fault("", "the schedule has "+strings.Join(given, " and ")+", of which only one can count", "keep one of them, and make a job of its own for each other")
	}
}

// words checks what is one of few words.
func (c *compiled) words(spec *Spec) {
	switch spec.Overlap {
	case task.OverlapSkip, task.OverlapQueue, task.OverlapReplace, task.OverlapAllow:
	default:
		c.fault("overlap", fmt.Sprintf("overlap %q is not known", spec.Overlap), "one of skip, queue, replace, allow")
	}
	switch spec.Misfire {
	case task.MisfireSkip, task.MisfireRunOnce, task.MisfireRunAll:
	default:
		c.fault("misfire", fmt.Sprintf("misfire %q is not known", spec.Misfire), "one of run_once, skip, run_all")
	}
}

// bounds checks the numbers.
func (c *compiled) bounds(spec *Spec) {
	if spec.MisfireGrace < MinGrace || spec.MisfireGrace > MaxGrace {
		suggestion := "to make nothing up write  misfire: skip"
		if spec.MisfireGrace > MaxGrace {
			suggestion = "as in  misfire_grace: 1d"
		}
		c.fault("misfire_grace", fmt.Sprintf("misfire_grace %s is not from %s to %s", inWords(spec.MisfireGrace), inWords(MinGrace), inWords(MaxGrace)), suggestion)
	}
	if spec.RunAllMax < 1 || spec.RunAllMax > MaxRunAll {
		c.fault("run_all_max", fmt.Sprintf("run_all_max %d is not from 1 to %d", spec.RunAllMax, MaxRunAll), "")
	}
	switch {
	case spec.Jitter < 0 || spec.Jitter > MaxJitter:
		c.fault("jitter", fmt.Sprintf("jitter %s is not from 0 to %s", inWords(spec.Jitter), inWords(MaxJitter)), "as in  jitter: 10m")
	case spec.Every >= MinEvery && spec.Jitter >= spec.Every:
		c.fault("jitter", fmt.Sprintf("jitter %s is not shorter than every %s", inWords(spec.Jitter), inWords(spec.Every)),
			"write a jitter of at most half of every")
	}
}
