package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// shardGroup is shards that look alike.
type shardGroup struct {
	stage  string
	shards []int
	row    []cell
}

var shardHead = []string{"STAGE", "SHARDS", "STATE", "NODE", "ATTEMPT", "LEASE LEFT", "CHECKPOINT", "PROGRESS"}

// shardAnswer shows a job's shards, those that look alike in one row. For programs each stands by itself.
func (c *call) shardAnswer(ctx context.Context, cl *client, job *task.JobView, ref task.Ref) (answer, error) {
	var groups []*shardGroup
	byKey := map[string]*shardGroup{}
	var items []task.ShardView
	keep := c.machine() || c.opt.output == "name"
	wide := c.opt.output == "wide"
	q := shardQuery(ref)
	q.Set("why", "1")
	err := eachShard(ctx, cl, job.ID, q, func(v task.ShardView) error {
		if keep {
			items = append(items, v)
			return nil
		}
		row := shardRow(v)
		if wide {
			row = append(row, cell{text: pieceText(v)})
		}
		key := v.Stage + "\x00" + rowText(row)
		g := byKey[key]
		if g == nil {
			g = &shardGroup{stage: v.Stage, row: row}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.shards = append(g.shards, v.Shard)
		return nil
	})
	if err == nil && len(groups)+len(items) == 0 {
		err = noneOf(ctx, cl, job.ID, ref)
	}
	if err != nil {
		return answer{}, c.explainDoor(err)
	}
	a := answer{value: list("ShardList", 0, items), items: anys(items), table: table{head: shardHead}}
	if wide {
		a.table.head = append(slices.Clone(shardHead), "PIECE")
	}
	for _, v := range items {
		a.names = append(a.names, fmt.Sprintf("%s/%s/%d", job.ID, v.Stage, v.Shard))
	}
	for _, g := range groups {
		slices.Sort(g.shards)
		a.table.rows = append(a.table.rows, append(cells(g.stage, task.FormatRanges(g.shards)), g.row...))
	}
	return a, nil
}

func rowText(row []cell) string {
	words := make([]string, len(row))
	for i, c := range row {
		words[i] = c.text
	}
	return strings.Join(words, "\x00")
}

// shardRow is what tells shards apart: of a done one nothing but its state.
func shardRow(v task.ShardView) []cell {
	s := state(v.State)
	switch v.State {
	case "succeeded", "cancelled", "waiting", "skipped":
		if v.Skipped != "" {
			return append([]cell{s}, cells("", "", "", "", "not run again: its key had succeeded in "+string(v.Skipped))...)
		}
		return append([]cell{s}, cells("", "", "", "", v.Why)...)
	case "pending":
		return append([]cell{s}, cells("-", "-", "-", checkpointText(v), v.Why)...)
	case "backoff":
		words := "retry"
		if v.RetrySeconds != nil {
			words = "retry in " + short(*v.RetrySeconds)
		}
		if v.Last != "" {
			words += ": " + v.Last
		}
		return append([]cell{s}, cells("-", attemptsText(v), "-", checkpointText(v), words)...)
	case "failed":
		return append([]cell{s}, cells(orElse(v.NodeName, "-"), attemptsText(v), "", checkpointText(v), v.Last)...)
	}
	left := "-"
	if v.LeaseSeconds != nil {
		left = length(*v.LeaseSeconds)
	}
	return append([]cell{s}, cells(orElse(v.NodeName, "-"), itoa(v.Attempt), left, checkpointText(v), v.Progress)...)
}

// pieceText is what a shard works on: its item, its range (the end exclusive), the machine it is for.
func pieceText(v task.ShardView) string {
	switch {
	case v.Range != nil:
		return fmt.Sprintf("%d-%d", v.Range.Start, v.Range.End)
	case v.Item != "":
		return v.Item
	case v.Pinned != "":
		return "only on " + orElse(v.NodeName, string(v.Pinned))
	}
	return ""
}

// attemptsText is how many of the attempts allowed are used up.
func attemptsText(v task.ShardView) string { return fmt.Sprintf("%d of %d", v.Failures, v.Attempts) }

func checkpointText(v task.ShardView) string {
	switch {
	case v.CheckpointSeq == 0:
		return "-"
	case v.CheckpointAge != nil:
		return fmt.Sprintf("%d (%s ago)", v.CheckpointSeq, short(*v.CheckpointAge))
	}
	return fmt.Sprint(v.CheckpointSeq)
}
