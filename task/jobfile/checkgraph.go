package jobfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lanjobs/task"
)

// graph checks names and needs: each need exists, and following them never leads back.
func (c *checker) graph(stages []task.StageSpec) {
	index := map[string]int{}
	for i, s := range stages {
		c.stage = i
		c.name("stage", s.Name)
		if j, ok := index[s.Name]; ok {
			c.fault(fmt.Sprintf("stage name %s is given twice", quote(s.Name)), "the other one is stage "+strconv.Itoa(j+1), "name")
			continue
		}
		index[s.Name] = i
	}
	const fresh, open, done = 0, 1, 2
	state := make([]int, len(stages))
	var path []int
	var visit func(i int)
	visit = func(i int) {
		if n := len(stages[i].Needs); n > task.MaxStages {
			c.stage, state[i] = i, done
			c.fault(fmt.Sprintf("%d needs, more than %d", n, task.MaxStages), "", "needs")
			return
		}
		state[i] = open
		path = append(path, i)
		for n, need := range stages[i].Needs {
			j, ok := index[need]
			c.stage = i
			field := fmt.Sprintf("needs[%d]", n)
			switch {
			case !ok:
				c.fault(fmt.Sprintf("needs %s, which is not there", quote(need)), didYouMean(stageNames(stages), need), field)
			case slices.Contains(stages[i].Needs[:n], need):
				c.fault(fmt.Sprintf("needs %s twice", quote(need)), "", field)
			case state[j] == open:
				c.fault("a cycle: "+cycle(stages, path[slices.Index(path, j):]), "one of them must not need the next", field)
			case state[j] == fresh:
				visit(j)
			}
		}
		path = path[:len(path)-1]
		state[i] = done
	}
	for i := range stages {
		if state[i] == fresh {
			visit(i)
		}
	}
	c.stage = -1
}

func cycle(stages []task.StageSpec, path []int) string {
	var b strings.Builder
	for _, i := range path {
		b.WriteString(stages[i].Name + " needs ")
	}
	return b.String() + stages[path[0]].Name
}

func stageNames(stages []task.StageSpec) []string {
	var out []string
	for _, s := range stages {
		out = append(out, s.Name)
	}
	return out
}
