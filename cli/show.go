package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func showRow() *command {
	return &command{
		name: "show", operands: "JOB[/STAGE/N]", min: 1, max: 1,
		short: "one job in full; why it waits, machine by machine",
		long: `  lanjobs show score --why        what keeps it from running, and what would change it
  lanjobs show score --dead       its dead shards by their error, and how to run them again
  lanjobs show score/main/3,10-19 --attempts`,
		takes: takesNode | takesOutput | takesWatch,
		flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "shards", Usage: "its shards, alike ones in one row"},
			&urfave.BoolFlag{Name: "attempts", Usage: "each attempt, and how it ended"},
			&urfave.BoolFlag{Name: "dead", Usage: "its dead shards, grouped by their error"},
			&urfave.BoolFlag{Name: "why", Usage: "why something does not run, machine by machine"},
		},
		run: runShow,
	}
}

func runShow(ctx context.Context, c *call) error {
	ref, err := task.ParseRef(c.args[0])
	if err != nil {
		return usage(c.path, "%v", err)
	}
	modes := 0
	for _, name := range []string{"shards", "attempts", "dead", "why"} {
		if c.flags.Bool(name) {
			modes++
		}
	}
	if modes > 1 {
		return usage(c.path, "--shards, --attempts, --dead and --why are views: choose one.")
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		job, err := c.job(ctx, cl, ref.Job)
		if err != nil {
			return answer{}, err
		}
		ref, err := stageOf(job, ref)
		if err != nil {
			return answer{}, err
		}
		switch {
		case c.flags.Bool("attempts"):
			return c.attemptAnswer(ctx, cl, job, ref)
		case c.flags.Bool("dead"):
			return c.deadOfJob(ctx, cl, job)
		case c.flags.Bool("why"):
			return c.whyAnswer(ctx, cl, job, ref)
		case c.flags.Bool("shards"), ref.Stage != "":
			return c.shardAnswer(ctx, cl, job, ref)
		}
		return c.jobAnswer(job), nil
	})
}

// jobAnswer is one job in full.
func (c *call) jobAnswer(j *task.JobView) answer {
	now := c.clock.Wall()
	head := []string{fmt.Sprintf("%s %s   %s", j.Name, j.ID, j.State)}
	add := func(name, value string) {
		if value != "" {
			head = append(head, fmt.Sprintf("  %-10s %s", name, oneLine(value)))
		}
	}
	submitted := stamp(j.Submitted, now)
	if j.By != "" {
		submitted += " by " + j.By
	}
	add("submitted", submitted)
	if j.Started != nil {
		add("started", stamp(*j.Started, now))
	}
	if j.Ended != nil {
		add("ended", stamp(*j.Ended, now)+" after "+length(runSeconds(j)))
	}
	if j.Schedule != "" {
		of := "run of " + j.Schedule
		if j.ScheduledFor != nil {
			of += " for " + stamp(*j.ScheduledFor, now)
		}
		add("schedule", of)
	}
	queue := fmt.Sprintf("%s, priority %d", j.Queue, j.Priority)
	if j.Ahead != nil && j.Beside != nil {
		queue += placeText(*j.Ahead, *j.Beside)
	}
	add("queue", queue)
	add("run time", runTimeText(j))
	add("key", j.Key)
	add("labels", labelText(j.Labels))
	add("reason", j.Reason)
	add("note", jobNote(j))
	t := table{head: []string{"STAGE", "STATE", "DONE", "RUN", "WAIT", "RETRY", "DEAD", "NEEDS"}}
	timed := len(j.Stages) > 1 && j.P99Seconds != nil
	if timed {
		t.head = slices.Insert(t.head, 7, "P50", "P99", "TIMEOUT", "SUGGESTED")
	}
	for _, st := range j.Stages {
		n := st.Shards
		row := []cell{{text: st.Name}, state(st.State), {text: fmt.Sprintf("%d/%d", n.Succeeded, n.Total)},
			{text: itoa(n.Running + n.Assigned)}, {text: itoa(n.Pending + n.Waiting - n.Backoff)}, {text: itoa(n.Backoff)}, {text: itoa(n.Failed)},
			{text: strings.Join(st.Needs, ",")}}
		if timed {
			row = slices.Insert(row, 7, cells(longer(st.P50Seconds), longer(st.P99Seconds), timeoutText(st.TimeoutSeconds), longer(st.SuggestedTimeout))...)
		}
		t.rows = append(t.rows, row)
	}
	return answer{value: j, names: []string{string(j.ID)}, head: append(head, ""), table: t, foot: nextSteps(j)}
}

// placeText is where a job stands in its queue.
func placeText(ahead, beside int) string {
	text := ""
	if ahead > 0 {
		text += fmt.Sprintf("; %s of higher priority %s first", count(ahead, "job"), plural(ahead, "goes", "go"))
	}
	if beside > 0 {
		text += fmt.Sprintf("; shares with %s", plural(beside, "another job", itoa(beside)+" other jobs"))
	}
	if text == "" {
		text = "; next in it"
	}
	return text
}

// runTimeText is how long shards took, and for a job of one stage the timeout that follows from it (R30).
func runTimeText(j *task.JobView) string {
	if j.P50Seconds == nil || j.P99Seconds == nil {
		return ""
	}
	text := fmt.Sprintf("P50 %s, P99 %s", length(*j.P50Seconds), length(*j.P99Seconds))
	if len(j.Stages) == 1 && j.SuggestedTimeout != nil {
		text += fmt.Sprintf("; timeout %s, suggested %s (2 to 3 times P99)", timeoutText(j.Stages[0].TimeoutSeconds), length(*j.SuggestedTimeout))
	}
	return text
}

func timeoutText(seconds float64) string {
	if seconds == 0 {
		return "none"
	}
	return length(seconds)
}

// longer is length, or "-".
func longer(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return length(*seconds)
}

// nextSteps names the commands that fit the job's state.
func nextSteps(j *task.JobView) []string {
	switch {
	case j.State == task.JobFailed:
		return []string{"", fmt.Sprintf("how it failed: lanjobs show %s --dead · again: lanjobs retry %s --dead", j.ID, j.ID)}
	case !j.State.Final() && j.Shards.Running+j.Shards.Assigned == 0:
		return []string{"", fmt.Sprintf("why it waits: lanjobs show %s --why", j.ID)}
	case !j.State.Final():
		return []string{"", fmt.Sprintf("its shards: lanjobs show %s --shards · its output: lanjobs logs %s -f", j.ID, j.ID)}
	}
	return nil
}

func (c *call) attemptAnswer(ctx context.Context, cl *client, job *task.JobView, ref task.Ref) (answer, error) {
	q := shardQuery(ref)
	q.Set("attempts", "1")
	t := table{head: []string{"SHARD", "ATTEMPT", "NODE", "STATE", "TIME", "FENCE", "COUNTS", "HOW IT ENDED"}}
	var items []task.AttemptView
	err := eachShard(ctx, cl, job.ID, q, func(v task.ShardView) error {
		for _, a := range v.History {
			if ref.Attempt > 0 && a.Attempt != ref.Attempt {
				continue
			}
			items = append(items, a)
			counts := "no"
			if a.Counted {
				counts = "yes"
			}
			t.rows = append(t.rows, []cell{{text: fmt.Sprintf("%s/%d", a.Stage, a.Shard)}, {text: itoa(a.Attempt)}, {text: orElse(a.NodeName, "-")}, state(a.State),
				{text: length(a.Seconds)}, {text: fmt.Sprint(a.Token)}, {text: counts}, {text: a.Reason}})
		}
		return nil
	})
	if err == nil && len(items) == 0 {
		err = noneOf(ctx, cl, job.ID, ref)
	}
	if err != nil {
		return answer{}, c.explainDoor(err)
	}
	a := answer{value: list("AttemptList", 0, items), items: anys(items), table: t}
	for _, item := range items {
		a.names = append(a.names, fmt.Sprintf("%s/%s/%d#%d", job.ID, item.Stage, item.Shard, item.Attempt))
	}
	if len(items) == 0 {
		a.foot = []string{"No attempt yet. Why: lanjobs show " + string(job.ID) + " --why"}
	}
	if n := len(items); n > 0 && n <= tailsShown {
		a.foot = tails(items)
	}
	return a, nil
}

// tailsShown is up to how many attempts the end of the output is shown with them.
const tailsShown = 3

// tails is the end of the output of failed attempts, as it was kept in their records.
func tails(items []task.AttemptView) []string {
	var out []string
	for _, a := range items {
		if a.Tail == "" {
			continue
		}
		out = append(out, "", fmt.Sprintf("end of the output of %s/%d#%d:", a.Stage, a.Shard, a.Attempt))
		for line := range strings.SplitSeq(strings.TrimRight(a.Tail, "\n"), "\n") {
			out = append(out, "  "+oneLine(line))
		}
	}
	return out
}

func (c *call) whyAnswer(ctx context.Context, cl *client, job *task.JobView, ref task.Ref) (answer, error) {
	var l task.List[transport.WhyView]
	if err := cl.get(ctx, "/v1/jobs/"+url.PathEscape(string(job.ID))+"/why", shardQuery(ref), &l); err != nil {
		return answer{}, c.explainDoor(err)
	}
	a := answer{value: l, items: anys(l.Items), table: table{head: []string{"SHARDS", "NODE", "WHY", "WHAT WOULD CHANGE IT"}}}
	for _, w := range l.Items {
		shards := w.Stage
		if w.Shards != "" {
			shards += "/" + w.Shards
		}
		a.table.rows = append(a.table.rows, cells(shards, orElse(w.Node, "-"), w.Why, w.Fix))
		a.names = append(a.names, w.Why)
	}
	if len(l.Items) == 0 {
		a.foot = []string{fmt.Sprintf("Nothing of %s is kept from running.", job.ID)}
	}
	return a, nil
}
