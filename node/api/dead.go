package api

import (
	"context"
	"fmt"

	"lanjobs/fsm"
	"lanjobs/task"
)

// maxDeadLooks bounds how many shards one list of dead letters looks at while the state is held still.
const maxDeadLooks = 2_000_000

// listDead answers GET /v1/dead: the dead letters, those of a stage that ended alike together (R29).
func (a *API) listDead(_ context.Context, q *request) (*reply, error) {
	f, err := a.jobFilter(q)
	if err != nil {
		return nil, err
	}
	f.dead = true
	limit, err := q.page()
	if err != nil {
		return nil, err
	}
	out := task.List[task.DeadGroup]{Kind: "DeadList", Items: []task.DeadGroup{}}
	a.look(q, func(v *view) {
		out.Index = v.Index
		var only *fsm.Job
		if ref := q.query.Get("job"); ref != "" {
			if only, err = v.findJob(ref); err != nil {
				return
			}
		}
		looks := 0
		each := func(j *fsm.Job) bool {
			if f.match(j) {
				out.Items = append(out.Items, v.dead(j, &looks)...)
			}
			return len(out.Items) < limit && looks < maxDeadLooks
		}
		if only != nil {
			each(only)
		} else {
			v.JobsNewestFirst(each)
		}
		out.Items = out.Items[:min(len(out.Items), limit)]
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// dead gathers a job's dead shards by stage and by how the last attempt ended.
func (v *view) dead(j *fsm.Job, looks *int) []task.DeadGroup {
	var out []task.DeadGroup
	for i := range j.Stages {
		st := &j.Stages[i]
		left := int(st.Counts[task.ShardFailed])
		at := map[string]int{}
		shards := map[string]*ranges{}
		for k := 0; k < st.Len() && left > 0 && *looks < maxDeadLooks; k++ {
			*looks++
			sh := st.At(k)
			if sh.State != task.ShardFailed {
				continue
			}
			left--
			text, tail := deadError(sh)
			n, known := at[text]
			if !known {
				if len(at) >= maxReasons {
					text = "further errors"
					if n, known = at[text]; !known {
						tail = ""
					}
				}
				if !known {
					n = len(out)
					at[text] = n
					shards[text] = &ranges{}
					out = append(out, task.DeadGroup{Job: j.ID, Name: j.Spec.Name, Stage: j.Spec.Stages[i].Name, Error: text, Example: k, Node: nodeName(v.NodeByPlace(sh.Node)), Tail: tail})
				}
			}
			shards[text].add(k)
			out[n].Count++
		}
		for text, n := range at {
			g := &out[n]
			g.Shards = shards[text].String()
			g.Retry = fmt.Sprintf("lanjobs retry %s/%s/%s", j.ID, g.Stage, g.Shards)
			if len(at) == 1 || shards[text].cut {
				g.Retry = fmt.Sprintf("lanjobs retry %s/%s", j.ID, g.Stage)
			}
		}
	}
	return out
}

// deadError is how a dead shard's last attempt ended, and the end of its output.
func deadError(sh *fsm.Shard) (text, tail string) {
	h := sh.History()
	if len(h) == 0 {
		return "not recorded", ""
	}
	o := &h[len(h)-1].Outcome
	text = o.String()
	if o.Message != "" && o.End != task.EndStartFailed && o.End != task.EndUnmet { // there it is in the outcome's words
		text += ": " + o.Message
	}
	return text, o.Tail
}
