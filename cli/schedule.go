package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/task/jobfile"
)

func scheduleGroup() *group {
	return &group{name: "schedule", short: "jobs that run at set times", commands: []*command{
		{name: "ls", short: "list schedules, and when each runs next", takes: takesNode | takesOutput | takesWatch | takesSelector, run: runScheduleLs,
			long: `A schedule is made by a job file with the key schedule: lanjobs submit nightly.yaml. Submitting a file of the same name changes it.
  lanjobs schedule ls -l team=media`},
		{name: "show", operands: "SCHEDULE", min: 1, max: 1, short: "one schedule: its next times, in its zone and yours, and its last runs",
			takes: takesNode | takesOutput | takesWatch, run: runScheduleShow,
			flags: []urfave.Flag{&urfave.IntFlag{Name: "next", Value: 5, Usage: "`N` coming times, at most 100"}},
			long: `  lanjobs schedule show nightly --next 20
FIRED counts runs; MISSED times that were not fired when they were due, as no leader was there (misfire says whether they are made
up); SKIPPED times at which the run before was not over (overlap).`},
		{name: "pause", operands: "SCHEDULE…", min: 1, max: -1, short: "no further runs until it is resumed; what runs goes on",
			takes: takesNode | takesOutput, run: setSchedules("pause"), long: `  lanjobs schedule pause nightly`},
		{name: "resume", operands: "SCHEDULE…", min: 1, max: -1, short: "end a pause; the times in between are not made up",
			takes: takesNode | takesOutput, run: setSchedules("resume"), long: `  lanjobs schedule resume nightly`},
		{name: "trigger", operands: "SCHEDULE", min: 1, max: 1, short: "run it now; prints the id of the run",
			takes: takesNode | takesOutput | takesWait, run: runScheduleTrigger,
			long: `The schedule's rule for overlapping runs holds: with skip nothing starts while a run is not over (exit 7).
  id=$(lanjobs schedule trigger nightly)      lanjobs schedule trigger nightly --wait`},
		{name: "rm", operands: "SCHEDULE…", min: 1, max: -1, short: "remove schedules; asks for more than one; their jobs stay",
			takes: takesNode | takesOutput | takesYes, run: runScheduleRm, long: `  lanjobs schedule rm nightly`},
	}}
}

func schedulePath(name, act string) string {
	p := "/v1/schedules/" + url.PathEscape(name)
	if act != "" {
		p += "/" + act
	}
	return p
}

func runScheduleLs(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		l, err := gather(ctx, cl, "/v1/schedules", nil, func(s task.ScheduleView) bool { return labelled(c.opt.selector, s.Labels) })
		if err != nil {
			return answer{}, c.explainDoor(err)
		}
		l.Kind = "ScheduleList"
		a := answer{value: l, items: anys(l.Items), table: c.scheduleTable(l.Items, false), wide: c.scheduleTable(l.Items, true)}
		for _, s := range l.Items {
			a.names = append(a.names, s.Name)
		}
		if len(l.Items) == 0 {
			a.foot = []string{"No schedules. A job file with the key schedule makes one: lanjobs help job.yaml"}
			if len(c.opt.selector) > 0 {
				a.foot = []string{"No such schedules. All: lanjobs schedule ls"}
			}
		}
		return a, nil
	})
}

func (c *call) scheduleTable(all []task.ScheduleView, wide bool) table {
	t := table{head: []string{"SCHEDULE", "STATE", "NEXT", "HERE", "IN", "LAST RUN", "FIRED", "MISSED", "SKIPPED"}}
	if wide {
		t.head = append(t.head, "QUEUE", "BY", "LABELS")
	}
	t.head = append(t.head, "WHEN", "")
	for _, s := range all {
		next, here, in := "-", "-", "-"
		if len(s.Next) > 0 {
			next, here, in = s.Next[0].Local, localTime(s.Next[0].Due), short(s.Next[0].Due.Sub(c.clock.Wall()).Seconds())
		}
		last := cell{text: "-"}
		if len(s.Runs) > 0 {
			last = cell{fmt.Sprintf("%s %s", s.Runs[0].ID, s.Runs[0].State), stateStyle(string(s.Runs[0].State))}
		}
		row := []cell{{text: s.Name}, state(s.State), {text: next}, {text: here}, {text: in}, last, {text: fmt.Sprint(s.Fired)}, {text: fmt.Sprint(s.Missed)}, {text: fmt.Sprint(s.Skipped)}}
		if wide {
			row = append(row, cells(s.Queue, orElse(s.By, "-"), orElse(labelText(s.Labels), "-"))...)
		}
		t.rows = append(t.rows, append(row, cells(s.When, inParens(s.Note))...))
	}
	return t
}

func inParens(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}

// localTime is a moment as the clocks here show it, with its zone, to stand beside one of another zone.
func localTime(t time.Time) string { return t.Local().Format("Mon 2006-01-02 15:04:05 MST") }

func runScheduleShow(ctx context.Context, c *call) error {
	next := c.flags.Int("next")
	if next < 0 || next > 100 {
		return usage(c.path, "--next %d is not from 0 to 100.", next)
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		s := &task.ScheduleView{}
		if err := cl.get(ctx, schedulePath(c.args[0], ""), url.Values{"next": {itoa(next)}}, s); err != nil {
			return answer{}, c.explainDoor(err)
		}
		return c.scheduleAnswer(s), nil
	})
}

var overlapWords = map[task.Overlap]string{
	task.OverlapSkip: "no run while the one before is not over", task.OverlapQueue: "at most one run waits for the end of the one before",
	task.OverlapReplace: "the run before is cancelled", task.OverlapAllow: "runs may overlap",
}

// scheduleAnswer is one schedule in full.
func (c *call) scheduleAnswer(s *task.ScheduleView) answer {
	now := c.clock.Wall()
	head := []string{fmt.Sprintf("%s   %s", s.Name, s.State)}
	add := func(name, value string) {
		if value != "" {
			head = append(head, fmt.Sprintf("  %-10s %s", name, oneLine(value)))
		}
	}
	add("when", s.When)
	add("overlap", fmt.Sprintf("%s: %s", s.Schedule.Overlap, overlapWords[s.Schedule.Overlap]))
	misfire := string(s.Schedule.Misfire)
	if s.Schedule.Misfire != task.MisfireSkip {
		misfire += ", up to " + jobfile.FormatLength(s.Schedule.MisfireGrace) + " late"
	}
	add("misfire", misfire)
	if names := s.Schedule.WakeNames(); len(names) > 0 {
		add("wakes", strings.Join(names, ", "))
	}
	add("queue", fmt.Sprintf("%s, priority %d", s.Queue, s.Priority))
	add("labels", labelText(s.Labels))
	submitted := stamp(s.Created, now)
	if s.By != "" {
		submitted += " by " + s.By
	}
	add("submitted", submitted)
	add("runs", fmt.Sprintf("%d fired, %d missed, %d skipped", s.Fired, s.Missed, s.Skipped))
	if s.Last != nil {
		add("last", s.Last.Local)
	}
	if s.Waiting != nil {
		add("waiting", s.Waiting.Local)
	}
	add("note", s.Note)
	next := table{head: []string{"NEXT", "HERE", "IN"}}
	for _, o := range s.Next {
		next.rows = append(next.rows, cells(o.Local, localTime(o.Due), short(o.Due.Sub(now).Seconds())))
	}
	runs := table{head: []string{"RUN", "STATE", "FOR", "STARTED", "TOOK"}}
	for _, r := range s.Runs {
		planned, started, took := "-", "-", "-"
		if r.ScheduledFor != nil {
			planned = stamp(*r.ScheduledFor, now)
		}
		if r.Started != nil {
			started = stamp(*r.Started, now)
			if r.Ended != nil {
				took = length(r.Ended.Sub(*r.Started).Seconds())
			}
		}
		runs.rows = append(runs.rows, []cell{{text: string(r.ID)}, state(string(r.State)), {text: planned}, {text: started}, {text: took}})
	}
	if len(next.rows)+len(runs.rows) > 0 {
		head = append(head, "")
	}
	return answer{value: s, names: []string{s.Name}, head: head, table: next, more: []table{runs}, gap: true}
}
