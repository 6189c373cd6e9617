package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// shards checks how many there are and what each is about. Where the number is fixed only when the stage opens, it is 0.
func (c *checker) shards(s *task.StageSpec) {
	open := s.Broadcast || s.ShardsFrom != ""
	sources := 0
	for _, given := range []bool{s.Broadcast, s.ShardsFrom != "", s.Range != nil, len(s.Items) > 0} {
		if given {
			sources++
		}
	}
	switch {
	case sources > 1:
		c.fault("broadcast, shards.from, shards.range and shard items exclude each other", "", "shards", "broadcast")
		return
	case open && s.Shards != 0:
		c.fault(fmt.Sprintf("%d shards are given, but their number is fixed when the stage opens", s.Shards), "", "shards")
	case !open && s.Range == nil:
		c.between("shards", s.Shards, 1, task.MaxShards)
	}
	if n := len(s.Items); n > 0 && n != s.Shards {
		c.fault(fmt.Sprintf("%d shards with %d items", s.Shards, n), "", "shards")
	}
	for i, v := range s.Items {
		c.argument("shards.items", i, v)
	}
	c.span(s)
	c.weights(s, open)
	if s.Parallelism < 0 || s.Parallelism > task.MaxShards || !open && s.Parallelism > max(s.Shards, 0) {
		most := s.Shards
		if open {
			most = task.MaxShards
		}
		c.fault(fmt.Sprintf("parallelism %d is not from 0 to the number of shards, %d", s.Parallelism, most), "0 = as many as fit", "parallelism", "shards")
	}
	switch ok := s.Success; {
	case ok.Percent < 0 || ok.Percent > 100 || ok.Count < 0 || ok.Count > task.MaxShards || ok.Percent > 0 && ok.Count > 0:
		c.fault("success.at_least is neither 1% to 100% nor a count", "", "success.at_least")
	case !open && ok.Count > s.Shards:
		c.fault(fmt.Sprintf("success.at_least %d is more than there are shards, %d", ok.Count, s.Shards), "", "success.at_least", "shards")
	}
}

// span checks a range and the size of its pieces.
func (c *checker) span(s *task.StageSpec) {
	r := s.Range
	if r == nil {
		return
	}
	switch n := r.Shards(); {
	case r.Start < 0 || r.Start >= r.End || r.End > task.MaxRange:
		c.fault(fmt.Sprintf("shards.range from %d to before %d is not a range", r.Start, r.End), fmt.Sprintf("from 0 to at most %d", int64(task.MaxRange)-1), "shards.range")
	case r.Size < 1 || r.Size > task.MaxRange:
		c.fault(fmt.Sprintf("shards.size %d is not from 1 on", r.Size), "", "shards.size")
	case n > task.MaxShards:
		c.fault(fmt.Sprintf("shards.size %d makes %d shards of the range, more than %d", r.Size, n, task.MaxShards),
			fmt.Sprintf("write size: %d or more", (r.End-r.Start-1)/task.MaxShards+1), "shards.size", "shards.range")
	case n != int64(s.Shards):
		c.fault(fmt.Sprintf("%d shards with a range of %d pieces", s.Shards, n), "", "shards")
	}
}

// weights checks that there is one for each shard.
func (c *checker) weights(s *task.StageSpec, open bool) {
	switch n := len(s.Weights); {
	case n == 0:
		return
	case open:
		c.fault("shards.weights need shards whose number is known at submit", "let the earlier stage write the biggest first: shards are granted in order", "shards.weights")
		return
	case n != s.Shards:
		c.fault(fmt.Sprintf("%d shards with %d weights", s.Shards, n), "one weight for each shard, in order", "shards.weights", "shards")
	}
	for i, w := range s.Weights {
		if w < 1 || w > task.MaxWeight {
			c.fault(fmt.Sprintf("shards.weights %d is not from 1 to %d", w, task.MaxWeight), "", fmt.Sprintf("shards.weights[%d]", i))
			return // there may be a million
		}
	}
}

// from checks shards.from: which output of which stage, and that the stage is over when this one opens.
func (c *checker) from(stages []task.StageSpec, i int) {
	from := stages[i].ShardsFrom
	if from == "" {
		return
	}
	const how = "as in shards: {from: init.parts}, for the output parts of the stage init"
	stage, output, ok := strings.Cut(from, ".")
	index := slices.IndexFunc(stages, func(s task.StageSpec) bool { return s.Name == stage })
	switch {
	case !ok || stage == "" || !validOutput(output):
		c.fault(fmt.Sprintf("shards.from %s is not stage.output", quote(from)), how, "shards.from")
	case index == i:
		c.fault(fmt.Sprintf("shards.from %s is an output of this stage itself", quote(from)), how, "shards.from")
	case index < 0:
		c.fault(fmt.Sprintf("shards.from %s: there is no stage %s", quote(from), quote(stage)), didYouMean(stageNames(stages), stage), "shards.from")
	case !comesBefore(stages, index, i):
		hint := fmt.Sprintf("add needs: [%s]", stage)
		if comesBefore(stages, i, index) {
			hint = "it comes after this one"
		}
		c.fault(fmt.Sprintf("shards.from %s: the stage %s need not be over when this one opens", quote(from), quote(stage)), hint, "shards.from", "needs")
	}
}

// comesBefore tells whether stage b needs stage a, at once or through others.
func comesBefore(stages []task.StageSpec, a, b int) bool {
	index := map[string]int{}
	for i, s := range stages {
		index[s.Name] = i
	}
	seen := make([]bool, len(stages))
	var visit func(i int) bool
	visit = func(i int) bool {
		if seen[i] || len(stages[i].Needs) > task.MaxStages {
			return false
		}
		seen[i] = true
		return slices.ContainsFunc(stages[i].Needs, func(need string) bool {
			j, ok := index[need]
			return ok && (j == a || visit(j))
		})
	}
	return visit(b)
}

// validOutput holds for the names under which a task may register an output.
func validOutput(s string) bool {
	return s != "" && len(s) <= task.MaxNameLength && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("_-.", r)
	})
}
