package cli

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"lanjobs/task"
)

// deadAnswer shows dead letters, those that ended alike in one row, with the command that gives them new attempts (R29).
func (c *call) deadAnswer(ctx context.Context, cl *client, q url.Values) (answer, error) {
	var l task.List[task.DeadGroup]
	if err := cl.get(ctx, "/v1/dead", q, &l); err != nil {
		return answer{}, c.explainDoor(err)
	}
	a := answer{value: l, items: anys(l.Items), table: table{head: []string{"JOB", "ID", "STAGE", "DEAD", "SHARDS", "ERROR", "ON", "AGAIN"}}}
	for _, g := range l.Items {
		a.table.rows = append(a.table.rows, []cell{{text: g.Name}, {text: string(g.Job)}, {text: g.Stage}, {itoa(g.Count), red}, {text: g.Shards}, {text: g.Error},
			{text: g.Node}, {text: g.Retry}})
		a.names = append(a.names, strings.TrimPrefix(g.Retry, "lanjobs retry "))
	}
	if len(l.Items) == 0 {
		a.foot = []string{"No dead shards."}
	}
	return a, nil
}

// deadOfJob is deadAnswer of one job, with the end of the output of one shard of each kind.
func (c *call) deadOfJob(ctx context.Context, cl *client, job *task.JobView) (answer, error) {
	a, err := c.deadAnswer(ctx, cl, url.Values{"job": {string(job.ID)}})
	if err != nil {
		return a, err
	}
	l := a.value.(task.List[task.DeadGroup])
	for i, g := range l.Items {
		if g.Tail == "" || i >= tailsShown {
			continue
		}
		a.foot = append(a.foot, "", fmt.Sprintf("end of the output of %s/%d (%s):", g.Stage, g.Example, g.Error))
		for line := range strings.SplitSeq(strings.TrimRight(g.Tail, "\n"), "\n") {
			a.foot = append(a.foot, "  "+oneLine(line))
		}
	}
	if len(l.Items) > 0 {
		a.foot = append(a.foot, "", "all of them again, from their checkpoints: lanjobs retry "+string(job.ID)+" --dead")
	}
	return a, nil
}
