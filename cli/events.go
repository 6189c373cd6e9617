package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
)

func eventsRow() *command {
	return &command{
		name: "events", short: "what happened in the cluster, one line each", takes: takesNode | takesOutput,
		long: `Of the last hour, or all of one --job, unless --since says otherwise. The renewals of leases are left out without --audit or
--kind. -o json writes JSON lines.`,
		flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on with what happens"},
			&urfave.StringFlag{Name: "job", Usage: "only of `JOB`"},
			&urfave.StringFlag{Name: "node", Usage: "only of `NODE`"},
			&urfave.StringFlag{Name: "kind", Usage: "only `KINDS`: lease.grant,lease.expire …"},
			&urfave.StringFlag{Name: "since", Usage: "only of the last `TIME` (1h, 7d), or since a moment (2026-11-29T12:00:00Z)"},
			&urfave.BoolFlag{Name: "audit", Usage: "every event, with fences and deadlines"},
		},
		run: runEvents,
	}
}

func runEvents(ctx context.Context, c *call) error {
	switch c.opt.output {
	case "name":
		return usage(c.path, "events have no names: -o table, wide, json or yaml")
	case "wide", "table", "json", "yaml":
	}
	q := url.Values{}
	for _, name := range []string{"job", "node", "kind"} {
		if v := c.flags.String(name); v != "" {
			q.Set(name, v)
		}
	}
	switch since := c.flags.String("since"); {
	case since != "":
		q.Set("since", since)
	case q.Get("job") == "":
		q.Set("since", seconds(eventsSince))
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	p := &eventPrinter{c: c, all: c.flags.Bool("audit") || c.flags.String("kind") != ""}
	if c.flags.Bool("follow") {
		return c.followEvents(ctx, cl, q, p)
	}
	if err := new(eventCursor).read(ctx, cl, q, p.print); err != nil {
		return c.explainDoor(err)
	}
	if !p.printed {
		c.say("lanjobs: no such events%s.", ofWhat(c, q))
	}
	return nil
}

// ofWhat repeats what was asked for: a typing error in a name finds nothing either.
func ofWhat(c *call, q url.Values) string {
	text := ""
	for _, name := range []string{"job", "node", "kind"} {
		if v := c.flags.String(name); v != "" {
			text += fmt.Sprintf(" of %s %q", name, v)
		}
	}
	if since := c.flags.String("since"); since != "" {
		return text + " since " + since
	}
	if q.Get("since") != "" {
		return text + " in the last " + short(eventsSince.Seconds()) + "; earlier ones: --since 7d"
	}
	return text
}

// eventsSince is how far back events go if nobody says so.
const eventsSince = time.Hour

// followEvents reads the stream of events; when it is cut, it goes on after the last one that was printed.
func (c *call) followEvents(ctx context.Context, cl *client, q url.Values, p *eventPrinter) error {
	q.Set("follow", "1")
	told := false
	for {
		err := c.streamEvents(ctx, cl, q, p)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !cl.passing(err):
			return c.explainDoor(err)
		case err != nil && !told:
			told = true
			c.say("lanjobs: %s Waiting.", sentence(task.Explain(err).Detail))
		case err == nil:
			told = false
		}
		if after := p.cursor.after(); after != "" {
			q.Set("after", after)
			q.Del("since")
		}
		if wait(ctx, c.clock, time.Second) != nil {
			return context.Cause(ctx)
		}
	}
}

// streamEvents prints one stream until it ends.
func (c *call) streamEvents(ctx context.Context, cl *client, q url.Values, p *eventPrinter) error {
	resp, err := cl.open(ctx, "/v1/events", q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil // a last line without an end is half an event
		}
		if err != nil {
			return fmt.Errorf("%w (%v)", errCut, err)
		}
		var e task.Event
		if json.Unmarshal(line, &e) != nil || e.Kind == "" {
			continue // a sign of life
		}
		if err := p.print(e); err != nil {
			return err
		}
	}
}

// eventPrinter writes events once each.
type eventPrinter struct {
	c       *call
	all     bool
	printed bool
	cursor  eventCursor
}

func (p *eventPrinter) print(e task.Event) error {
	if !p.cursor.pass(e) {
		return nil
	}
	if !p.all && (e.Kind == task.EventLeaseRenew || e.Kind == task.EventLeaseConfirm) {
		return nil
	}
	p.printed = true
	if p.c.machine() {
		return p.writeForPrograms(e)
	}
	return p.c.out().print(p.line(e))
}

func (p *eventPrinter) writeForPrograms(e task.Event) error {
	if p.c.opt.output == "json" {
		return writeJSON(p.c.stdout, e, "")
	}
	text, err := toYAML(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.c.stdout, "---\n%s", text)
	return err
}

// line is an event for a person: "12:04:11  lease.expire  transcode/segments/9#1  mini-2  lease ended unrenewed".
func (p *eventPrinter) line(e task.Event) string {
	s := p.c.out()
	when := "-"
	if e.Wall > 0 {
		when = stamp(time.UnixMilli(e.Wall), p.c.clock.Wall())
	}
	words := []string{when, s.paint(eventStyle(e.Kind), fmt.Sprintf("%-15s", e.Kind))}
	if subject := eventSubject(e); subject != "" {
		words = append(words, subject)
	}
	if e.NodeName != "" {
		words = append(words, e.NodeName)
	}
	words = append(words, eventFacts(e, p.c.flags.Bool("audit") || p.c.opt.output == "wide")...)
	return s.text(strings.TrimRight(strings.Join(words, "  "), " "))
}

func eventStyle(k task.EventKind) style {
	switch k {
	case task.EventLeaseExpire, task.EventLeaseRefuse, task.EventNodeOffline:
		return red
	case task.EventLeaderElected, task.EventStop, task.EventNodeDrain:
		return yellow
	}
	return plain
}

func eventSubject(e task.Event) string {
	out := orElse(e.JobName, string(e.Job))
	if e.Stage != "" {
		out += "/" + e.Stage
	}
	if e.Shards != "" {
		out += "/" + e.Shards
	}
	if e.Attempt > 0 {
		out += "#" + itoa(e.Attempt)
	}
	return out
}

// eventFacts are the rest, in full or as much as a person wants to see in passing.
func eventFacts(e task.Event, full bool) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if e.From != "" || e.To != "" {
		add("%s → %s", orElse(e.From, "-"), orElse(e.To, "-"))
	}
	if e.Seq > 0 {
		add("checkpoint %d (%d bytes)", e.Seq, e.Bytes)
	}
	if e.Reason != "" {
		add("%s", oneLine(e.Reason))
	}
	if e.By != "" {
		add("by %s", oneLine(e.By))
	}
	if !full {
		return out
	}
	switch {
	case e.LastToken > 0:
		add("fences %d-%d", e.Token, e.LastToken)
	case e.Token > 0:
		add("fence %d", e.Token)
	}
	if e.Execution != "" {
		add("execution %s", e.Execution)
	}
	if e.TTL > 0 {
		add("for %s", length(e.TTL.Duration().Seconds()))
	}
	add("index %d.%d", e.Index, e.N)
	return out
}
