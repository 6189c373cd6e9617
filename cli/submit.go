package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
)

func submitRow() *command {
	return &command{
		name: "submit", operands: "FILE…|-", min: 1, max: -1,
		short: "hand in jobs; prints their ids",
		long: `Standard output is the id of each job and nothing else, hints go to standard error: id=$(lanjobs submit job.yaml).
A file with the key schedule makes a schedule, or changes the one of its name; its name is printed instead, and when it runs next.
All files are checked before the first one is handed in; several go in one request, each by itself: one that the cluster refuses
holds no other up. Without a node on this machine one is started in the background
("this machine only": no network); --no-start refuses instead.`,
		takes: takesNode | takesOutput | takesWait | takesDryRun,
		flags: []urfave.Flag{
			&urfave.StringFlag{Name: "key", Usage: "idempotency `KEY`: a second submit with it returns the first job"},
			&urfave.StringSliceFlag{Name: "set", Usage: "set `env.NAME=VALUE` in all stages"},
			&urfave.BoolFlag{Name: "no-start", Usage: "do not start a node"},
		},
		run: runSubmit,
	}
}

func runSubmit(ctx context.Context, c *call) error {
	specs, err := c.loadAll(c.args)
	if err != nil {
		return err
	}
	if key := c.flags.String("key"); key != "" {
		if len(specs) > 1 {
			return usage(c.path, "--key names one job, here are %d files", len(specs))
		}
		specs[0].IdempotencyKey = key
		if faults := jobfile.Check(specs[0], c.clock.Wall()); len(faults) > 0 {
			return usage(c.path, "--key %s: %s.", key, faults[0].Message)
		}
	}
	if c.opt.wait && slices.ContainsFunc(specs, func(s *task.Spec) bool { return s.Schedule != nil }) {
		return usage(c.path, "--wait waits for a job; a job file with the key schedule makes none yet. Run it now: lanjobs schedule trigger NAME --wait")
	}
	if c.opt.dryRun {
		return c.dryRun(ctx, specs)
	}
	cl, err := c.connectOrStart(ctx, c.flags.Bool("no-start"))
	if err != nil {
		return err
	}
	ids, err := c.submitAll(ctx, cl, specs)
	if err != nil || !c.opt.wait {
		return err
	}
	return c.followToEnd(ctx, cl, ids, eventCursor{})
}

// submitAll hands jobs in, and shows what was accepted also when others were refused.
func (c *call) submitAll(ctx context.Context, cl *client, specs []*task.Spec) ([]task.JobID, error) {
	var ids []task.JobID
	var replies []task.SubmitReply
	use := func(r *task.SubmitReply) error {
		if r.ID != "" {
			ids = append(ids, r.ID)
		}
		replies = append(replies, *r)
		return c.showSubmitted(r)
	}
	fault := c.handIn(ctx, cl, specs, use)
	if c.machine() && len(replies) > 0 {
		if err := c.show(answer{value: oneOrList("SubmitList", replies)}); err != nil {
			return ids, err
		}
	}
	return ids, fault
}

// loadAll reads and checks all files; every fault of every file is told at once.
func (c *call) loadAll(names []string) ([]*task.Spec, error) {
	set, err := setPairs(c.path, c.flags.StringSlice("set"))
	if err != nil {
		return nil, err
	}
	var specs []*task.Spec
	var texts []string
	for _, name := range names {
		spec, faults, err := c.load(name, set)
		switch {
		case err != nil && c.gone.Err() != nil:
			return nil, err
		case err != nil:
			texts = append(texts, unreadable(name, err))
		case len(faults) > 0:
			texts = append(texts, strings.TrimRight(jobfile.Render(name, faults), "\n"))
		}
		specs = append(specs, spec)
	}
	if len(texts) > 0 {
		return nil, &exitError{code: exitUsage, bare: true, detail: strings.Join(texts, "\n"), cause: task.ErrInvalid}
	}
	return specs, nil
}

func setPairs(path string, words []string) (map[string]string, error) {
	out := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || !strings.HasPrefix(name, "env.") || name == "env." {
			return nil, usage(path, "--set %q: write --set env.NAME=VALUE", word)
		}
		out[name] = value
	}
	return out, nil
}

// submitSpec hands in one job.
func submitSpec(ctx context.Context, cl *client, spec *task.Spec, dry bool) (*task.SubmitReply, error) {
	body, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	r := request{method: "POST", path: "/v1/jobs", kind: transport.ContentTypeSpec, body: body}
	reply := &task.SubmitReply{}
	if dry {
		r.query = url.Values{"dry_run": {"1"}}
		return reply, cl.patiently(ctx, readPatience, r, reply)
	}
	return reply, cl.write(ctx, r, reply)
}

// dryRun checks without a node what can be checked here, and asks a node, if one is here, about the rest.
func (c *call) dryRun(ctx context.Context, specs []*task.Spec) error {
	cl := c.client()
	for i, spec := range specs {
		c.say("%s: %s is valid (%s, %s); nothing was submitted.", c.args[i], spec.Name, count(len(spec.Stages), "stage"), shardCount(spec))
		reply, err := submitSpec(ctx, cl, spec, true)
		switch {
		case exitCode(err) == exitNoNode || exitCode(err) == exitUnreachable:
			c.say("No node was asked whether a machine can run it.")
		case err != nil:
			return c.explainDoor(err)
		case reply.Note != "":
			c.say("lanjobs: %s.", strings.TrimRight(reply.Note, "."))
		}
	}
	if c.machine() {
		return c.show(answer{value: oneOrList("SpecList", specs)})
	}
	return nil
}

func count(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, plural(n, noun, noun+"s"))
}

// oneOrList is one view by itself, several in an envelope.
func oneOrList[T any](kind string, items []T) any {
	if len(items) == 1 {
		return items[0]
	}
	return list(kind, 0, items)
}
