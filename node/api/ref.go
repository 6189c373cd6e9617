package api

import (
	"fmt"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// findJob finds the job that a person means: by its id, by its name (the newest that is called so), or by the beginning of
// an id that no other has.
func (v *view) findJob(ref string) (*fsm.Job, error) {
	if j := v.Job(task.JobID(ref)); j != nil {
		return j, nil
	}
	var named *fsm.Job
	var begins []*fsm.Job
	v.JobsNewestFirst(func(j *fsm.Job) bool {
		if j.Spec.Name == ref {
			named = j
			return false
		}
		if len(ref) > 1 && len(begins) <= maxNamed && strings.HasPrefix(string(j.ID), ref) {
			begins = append(begins, j)
		}
		return true
	})
	switch {
	case named != nil:
		return named, nil
	case len(begins) == 1:
		return begins[0], nil
	case len(begins) > 1:
		var texts []string
		for _, j := range begins {
			texts = append(texts, fmt.Sprintf("%s (%s)", j.ID, j.Spec.Name))
		}
		return nil, invalid(shown(ref)+" is the beginning of more than one id: "+some(texts, maxNamed, ", "), "write more of it")
	}
	return nil, v.noJob(ref)
}

// maxSuggested is how many of the newest jobs a suggestion looks at.
const maxSuggested = 1000

// noJob says that there is no such job, and which one was probably meant.
func (v *view) noJob(ref string) error {
	var words []string
	newest := map[string]*fsm.Job{}
	n := 0
	v.JobsNewestFirst(func(j *fsm.Job) bool {
		for _, w := range []string{j.Spec.Name, string(j.ID)} {
			if newest[w] == nil {
				newest[w] = j
				words = append(words, w)
			}
		}
		n++
		return n < maxSuggested
	})
	detail := "no job " + shown(ref) + "."
	if j := newest[task.Nearest(words, ref)]; j != nil {
		detail += fmt.Sprintf(" Did you mean %q (%s, %s)?", j.Spec.Name, j.ID, j.State)
	}
	return task.NewProblem(task.ErrNotFound, detail, "All jobs: lanjobs ls")
}

// findNode finds a machine by id, name, or the beginning of an id that no other has. One that has left is found by its
// id, and by its name if no member has that.
func (v *view) findNode(ref string) (*fsm.Node, error) {
	if n := v.Node(task.NodeID(ref)); n != nil {
		return n, nil
	}
	var named, begins, left []*fsm.Node
	for _, n := range v.Nodes() {
		switch {
		case n.Gone != "" && n.Info.Name == ref:
			left = append(left[:0], n)
		case n.Gone != "":
		case n.Info.Name == ref:
			named = append(named, n)
		case len(ref) > 1 && strings.HasPrefix(string(n.Info.ID), ref):
			begins = append(begins, n)
		}
	}
	for _, found := range [][]*fsm.Node{named, begins, left} {
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			var texts []string
			for _, n := range found {
				texts = append(texts, string(n.Info.ID)+" ("+nodeName(n)+")")
			}
			return nil, invalid(shown(ref)+" is more than one machine: "+some(texts, maxNamed, ", "), "write the id")
		}
	}
	var names []string
	v.present(func(n *fsm.Node) { names = append(names, nodeName(n)) })
	detail := "no node " + shown(ref) + "."
	if near := task.Nearest(names, ref); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	return nil, task.NewProblem(task.ErrNotFound, detail, "All machines: lanjobs node ls")
}
