package cli

import (
	"context"
	"net/url"
	"strconv"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
)

func logsRow() *command {
	return &command{
		name: "logs", operands: "JOB[/STAGE/N[#K]]", min: 1, max: 1,
		short: "output of a job, a stage, a shard or one attempt",
		long: `JOB is an id, the beginning of one, or a name (the newest job of that name). Several shards: JOB/STAGE/3,7,10-19.
The output of several shards has stage/shard in front of each line. #K picks an attempt, otherwise it is the newest one.`,
		takes: takesNode,
		flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the job has ended"},
			&urfave.IntFlag{Name: "tail", Usage: "only the last `N` lines of each attempt"},
			lengthFlag("since", 0, "only attempts that began within the last `TIME`"),
			&urfave.BoolFlag{Name: "stderr", Usage: "standard error only"},
		},
		run: runLogs,
	}
}

func runLogs(ctx context.Context, c *call) error {
	ref, err := task.ParseRef(c.args[0])
	if err != nil {
		return usage(c.path, "%v", err)
	}
	if c.flags.Int("tail") < 0 {
		return usage(c.path, "--tail %d is negative", c.flags.Int("tail"))
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	job, err := c.job(ctx, cl, ref.Job)
	if err != nil {
		return err
	}
	if ref, err = stageOf(job, ref); err != nil {
		return err
	}
	recent, err := c.recent(ctx, cl, job.ID)
	if err != nil {
		return c.explainDoor(err)
	}
	if c.flags.Bool("follow") {
		return c.followLogs(ctx, cl, job, ref, recent)
	}
	if err := c.copyLogs(ctx, cl, job, ref, recent); err != nil {
		return c.explainDoor(err)
	}
	return nil
}

// job fetches a job by what a person calls it.
func (c *call) job(ctx context.Context, cl *client, ref string) (*task.JobView, error) {
	v := &task.JobView{}
	if err := cl.get(ctx, "/v1/jobs/"+url.PathEscape(ref), nil, v); err != nil {
		return nil, c.explainDoor(err)
	}
	return v, nil
}

// stageOf checks the stage of a reference. In a job of one stage, JOB/3 means its shard 3.
func stageOf(job *task.JobView, ref task.Ref) (task.Ref, error) {
	if ref.Stage == "" {
		return ref, nil
	}
	var names []string
	for _, st := range job.Stages {
		if st.Name == ref.Stage {
			return ref, nil
		}
		names = append(names, st.Name)
	}
	if ranges, err := task.ParseRanges(ref.Stage); err == nil && len(names) == 1 && len(ref.Shards) == 0 {
		ref.Stage, ref.Shards = names[0], ranges
		return ref, nil
	}
	e := &exitError{code: exitNotFound, detail: "job " + strconv.Quote(job.Name) + " has no stage " + strconv.Quote(ref.Stage) + ".", cause: task.ErrNotFound}
	if near := nearest(names, ref.Stage); near != "" {
		e.detail += " Did you mean " + strconv.Quote(near) + "?"
	}
	return ref, e
}

// starts are the attempts that began within --since.
type starts struct {
	from   uint64 // index of the first
	shards map[shardKey]bool
}

// recent asks for the attempts that began within --since; nil = no such limit.
func (c *call) recent(ctx context.Context, cl *client, job task.JobID) (*starts, error) {
	since := c.flags.Duration("since")
	if since <= 0 {
		return nil, nil
	}
	q := url.Values{"job": {string(job)}, "kind": {string(task.EventLeaseGrant)}, "since": {seconds(since)}}
	var l task.List[task.Event]
	if err := cl.get(ctx, "/v1/events", q, &l); err != nil {
		return nil, err
	}
	out := &starts{from: l.Index + 1, shards: map[shardKey]bool{}}
	for _, e := range l.Items {
		out.from = min(out.from, e.Index)
		for _, k := range shardsOf(e) {
			out.shards[k] = true
		}
	}
	return out, nil
}

// seconds is how lengths of time are written in queries.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func (c *call) stream() string {
	if c.flags.Bool("stderr") {
		return "stderr"
	}
	return ""
}

// copyLogs prints what there is now, shard by shard.
func (c *call) copyLogs(ctx context.Context, cl *client, job *task.JobView, ref task.Ref, recent *starts) error {
	out := &sink{out: c.stdout}
	one := func(a attempt, prefix bool) error {
		src := &source{sink: out}
		if prefix {
			src.prefix = a.name() + " | "
		}
		l := &logCopy{cl: cl, attempt: a, stream: c.stream(), tail: c.flags.Int("tail")}
		err := l.to(ctx, src)
		if closeErr := src.Close(); err == nil {
			err = closeErr
		}
		return err
	}
	a, single := singleShard(job, ref)
	if single && recent == nil {
		return one(a, false)
	}
	found := 0
	err := eachShard(ctx, cl, job.ID, shardQuery(ref), func(v task.ShardView) error {
		if v.Attempt == 0 || recent != nil && !recent.shards[shardKey{job.ID, v.Stage, v.Shard}] {
			return nil
		}
		found++
		err := one(attempt{job.ID, v.Stage, v.Shard, ref.Attempt}, !single)
		if exitCode(err) == exitNotFound || exitCode(err) == exitUnreachable {
			c.say("lanjobs: no output of %s/%d: %s", v.Stage, v.Shard, sentence(task.Explain(err).Detail))
			return nil
		}
		return err
	})
	if err == nil && found == 0 {
		err = noneOf(ctx, cl, job.ID, ref)
	}
	if err == nil && found == 0 {
		c.say("lanjobs: nothing of %s has run yet. Why: lanjobs show %s --why", c.args[0], job.ID)
	}
	return err
}

// singleShard tells whether a reference means one shard.
func singleShard(job *task.JobView, ref task.Ref) (attempt, bool) {
	a := attempt{job: job.ID, stage: ref.Stage, number: ref.Attempt}
	switch {
	case len(ref.Shards) == 1 && ref.Shards[0].First == ref.Shards[0].Last:
		a.shard = ref.Shards[0].First
		return a, true
	case len(ref.Shards) > 0:
		return a, false
	case ref.Stage == "" && len(job.Stages) == 1:
		a.stage = job.Stages[0].Name
		return a, job.Stages[0].Shards.Total == 1
	}
	for _, st := range job.Stages {
		if st.Name == ref.Stage {
			return a, st.Shards.Total == 1
		}
	}
	return a, false
}

// followLogs prints what there is and what comes, until the job has ended.
func (c *call) followLogs(ctx context.Context, cl *client, job *task.JobView, ref task.Ref, recent *starts) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	outs := []streamOut{{c.stream(), &sink{out: c.stdout}}}
	s := newLogStream(ctx, cl, outs)
	_, single := singleShard(job, ref)
	s.prefix, s.tail, s.fail, s.warn = !single, c.flags.Int("tail"), fail, func(text string) { c.say("%s", text) }
	s.only = func(e task.Event, k shardKey) bool {
		return (ref.Stage == "" || ref.Stage == k.stage) && inRanges(ref.Shards, k.shard) &&
			(ref.Attempt == 0 || ref.Attempt == e.Attempt) && (recent == nil || e.Index >= recent.from)
	}
	_, err := follow(ctx, c.clock, cl, []task.JobID{job.ID}, eventCursor{}, s)
	return err
}

func inRanges(ranges []task.Range, n int) bool {
	if len(ranges) == 0 {
		return true
	}
	for _, r := range ranges {
		if r.First <= n && n <= r.Last {
			return true
		}
	}
	return false
}
