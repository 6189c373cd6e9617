package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func queueGroup() *group {
	return &group{name: "queue", short: "limits and balance of queues", commands: []*command{
		{name: "ls", short: "list queues: what runs, what waits, and the limits", takes: takesNode | takesOutput | takesWatch, run: runQueueLs},
		{name: "show", operands: "QUEUE", min: 1, max: 1, short: "one queue in full", takes: takesNode | takesOutput | takesWatch, run: runQueueShow,
			long: `  lanjobs queue show video      its jobs: lanjobs ls --queue video`},
		{name: "set", operands: "QUEUE", min: 1, max: 1, short: "make a queue, or change its limit and balance", takes: takesNode | takesOutput, run: runQueueSet,
			long: `A job names its queue (queue: video); the queue has to be there before. What runs when a limit is lowered goes on.
  lanjobs queue set video --max 2
  lanjobs queue set cache --balance consistent-hash
Balance is who of the fitting machines gets a shard:
  least-loaded      the one with most room (the default)
  round-robin       one after another
  modulo            shard number modulo number of machines: the same shards to the same machines while none comes or goes
  consistent-hash   the same shard to the same machine, also when others come and go`,
			flags: []urfave.Flag{
				&urfave.IntFlag{Name: "max", Usage: "at most `N` shards of its jobs at once, in the whole cluster; 0 = no limit"},
				&urfave.StringFlag{Name: "balance", Usage: "`HOW`: " + strings.Join(balances(), ", ")},
			}},
		{name: "pause", operands: "QUEUE…", min: 1, max: -1, short: "start nothing more of its jobs; what runs goes on", takes: takesNode | takesOutput, run: holdQueues("pause"),
			long: `  lanjobs queue pause video`},
		{name: "resume", operands: "QUEUE…", min: 1, max: -1, short: "end a pause", takes: takesNode | takesOutput, run: holdQueues("resume"), long: `  lanjobs queue resume video`},
		{name: "rm", operands: "QUEUE…", min: 1, max: -1, short: "remove queues that no unfinished job and no schedule uses; asks for more than one",
			takes: takesNode | takesOutput | takesYes, run: runQueueRm, long: `  lanjobs queue rm video`},
	}}
}

func balances() []string {
	var out []string
	for _, b := range task.Balances {
		out = append(out, string(b))
	}
	return out
}

func queuePath(name, act string) string {
	p := "/v1/queues/" + url.PathEscape(name)
	if act != "" {
		p += "/" + act
	}
	return p
}

func runQueueLs(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		l := task.List[task.QueueView]{}
		if err := cl.get(ctx, "/v1/queues", nil, &l); err != nil {
			return answer{}, c.explainDoor(err)
		}
		a := answer{value: l, items: anys(l.Items), table: queueTable(l.Items, false), wide: queueTable(l.Items, true)}
		for _, q := range l.Items {
			a.names = append(a.names, q.Name)
		}
		return a, nil
	})
}

func queueTable(all []task.QueueView, wide bool) table {
	t := table{head: []string{"QUEUE", "STATE", "RUN", "MAX", "WAIT", "RETRY", "JOBS", "OLDEST", "BALANCE"}}
	if wide {
		t.head = append(t.head, "BY")
	}
	t.head = append(t.head, "")
	for _, q := range all {
		row := []cell{{text: q.Name}, state(q.State), {text: itoa(q.Active)}, {text: maxText(q.Max)}, {text: itoa(q.Pending)}, {text: itoa(q.Backoff)},
			{text: itoa(q.Jobs)}, {text: shorter(q.OldestSeconds)}, {text: string(q.Balance)}}
		if wide {
			row = append(row, cell{text: orElse(q.By, "-")})
		}
		t.rows = append(t.rows, append(row, cell{text: inParens(q.Note)}))
	}
	return t
}

func maxText(n int) string {
	if n == 0 {
		return "-"
	}
	return itoa(n)
}

func runQueueShow(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		q := &task.QueueView{}
		if err := cl.get(ctx, queuePath(c.args[0], ""), nil, q); err != nil {
			return answer{}, c.explainDoor(err)
		}
		return queueAnswer(q), nil
	})
}

func queueAnswer(q *task.QueueView) answer {
	head := []string{fmt.Sprintf("%s   %s", q.Name, q.State)}
	add := func(name, value string) {
		if value != "" {
			head = append(head, fmt.Sprintf("  %-10s %s", name, oneLine(value)))
		}
	}
	running := count(q.Active, "shard")
	if q.Max > 0 {
		running = fmt.Sprintf("%d of at most %d shards", q.Active, q.Max)
	}
	add("running", running)
	waiting := count(q.Pending, "shard")
	if q.Backoff > 0 {
		waiting += fmt.Sprintf(", %d more until their retry time", q.Backoff)
	}
	add("waiting", waiting)
	add("jobs", fmt.Sprintf("%d not finished", q.Jobs))
	if q.OldestSeconds != nil {
		add("oldest", "waits for "+length(*q.OldestSeconds))
	}
	add("balance", string(q.Balance))
	add("changed by", q.By)
	add("note", q.Note)
	return answer{value: q, names: []string{q.Name}, head: append(head, "", "its jobs: lanjobs ls --queue "+q.Name)}
}

func runQueueSet(ctx context.Context, c *call) error {
	body := transport.QueueBody{}
	if c.flags.IsSet("max") {
		n := c.flags.Int("max")
		if n < 0 {
			return usage(c.path, "--max %d is negative; 0 means no limit.", n)
		}
		body.Max = &n
	}
	if c.flags.IsSet("balance") {
		word, err := oneOf("--balance", c.flags.String("balance"), balances())
		if err != nil {
			return usage(c.path, "%v", err)
		}
		balance := task.Balance(word)
		body.Balance = &balance
	}
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	made := exitCode(cl.get(ctx, queuePath(c.args[0], ""), nil, &task.QueueView{})) == exitNotFound
	q := &task.QueueView{}
	if err := cl.patch(ctx, queuePath(c.args[0], ""), body, q); err != nil {
		return c.explainDoor(err)
	}
	limit := "no limit"
	if q.Max > 0 {
		limit = fmt.Sprintf("at most %s at once", count(q.Max, "shard"))
	}
	verb := "queue"
	if made {
		verb = "new queue"
	}
	return c.done(q, []string{q.Name}, "%s %s: %s, %s", verb, q.Name, limit, q.Balance)
}

// queues looks all names up before anything is changed.
func (c *call) queues(ctx context.Context) ([]task.QueueView, *client, error) {
	cl, err := c.ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []task.QueueView
	for _, name := range c.args {
		v := task.QueueView{}
		if err := cl.get(ctx, queuePath(name, ""), nil, &v); err != nil {
			return nil, nil, c.explainDoor(err)
		}
		out = append(out, v)
	}
	return out, cl, nil
}

// holdQueues is pause and resume.
func holdQueues(act string) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		all, cl, err := c.queues(ctx)
		if err != nil {
			return err
		}
		var views []task.QueueView
		for _, q := range all {
			v := &task.QueueView{}
			if err := cl.post(ctx, queuePath(q.Name, act), struct{}{}, v); err != nil {
				return c.explainDoor(err)
			}
			views = append(views, *v)
			if c.machine() {
				continue
			}
			said := fmt.Sprintf("queue %s is paused (%d running). Undo: lanjobs queue resume %s", v.Name, v.Active, v.Name)
			if act == "resume" {
				said = fmt.Sprintf("queue %s goes on", v.Name)
			}
			if err := c.done(nil, []string{v.Name}, "%s", said); err != nil {
				return err
			}
		}
		if c.machine() {
			return c.show(answer{value: oneOrList("QueueList", views)})
		}
		return nil
	}
}

func runQueueRm(ctx context.Context, c *call) error {
	all, cl, err := c.queues(ctx)
	if err != nil {
		return err
	}
	if len(all) > 1 {
		if err := c.confirm(fmt.Sprintf("Remove %d queues?", len(all))); err != nil {
			return err
		}
	}
	for _, q := range all {
		if err := cl.delete(ctx, queuePath(q.Name, ""), nil, nil); err != nil {
			return c.explainDoor(err)
		}
		if !c.machine() {
			if err := c.done(nil, []string{q.Name}, "queue %s is removed", q.Name); err != nil {
				return err
			}
		}
	}
	if c.machine() {
		return c.show(answer{value: oneOrList("QueueList", all)})
	}
	return nil
}
