package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
)

// listNodes answers GET /v1/nodes: the members, with all=1 also those that have left. It has few items and no pages.
func (a *API) listNodes(_ context.Context, q *request) (*reply, error) {
	all, err := q.flag("all")
	if err != nil {
		return nil, err
	}
	out := task.List[task.NodeView]{Kind: "NodeList", Items: []task.NodeView{}}
	a.lookAtNodes(q, func(v *view) {
		out.Index = v.Index
		for _, n := range v.Nodes() {
			if all || n.Gone == "" {
				out.Items = append(out.Items, v.node(n))
			}
		}
	})
	return ok(out)
}

// onNode gives f the machine of the path.
func (a *API) onNode(q *request, f func(*view, *fsm.Node) error) error {
	var err error
	a.lookAtNodes(q, func(v *view) {
		var n *fsm.Node
		if n, err = v.findNode(q.value("ref")); err == nil {
			err = f(v, n)
		}
	})
	return err
}

// getNode answers GET /v1/nodes/{ref}.
func (a *API) getNode(_ context.Context, q *request) (*reply, error) {
	var out task.NodeView
	if err := a.onNode(q, func(v *view, n *fsm.Node) error { out = v.node(n); return nil }); err != nil {
		return nil, err
	}
	return ok(out)
}

// setNode commits an act on the machine of the path and shows it as it then is.
func (a *API) setNode(ctx context.Context, q *request, c fsm.SetNode, allowed func(*view, *fsm.Node) error) (*reply, error) {
	done := false
	err := a.onNode(q, func(v *view, n *fsm.Node) error {
		c.Node, c.By = n.Info.ID, q.by
		if n.Gone != "" && c.Action == fsm.NodeRemove {
			done = true // by an earlier try of this request, or by somebody else: it is what was asked for
			return nil
		}
		if n.Gone != "" {
			return task.NewProblem(task.ErrConflict, nodeName(n)+" is no longer a member.", "")
		}
		if allowed != nil {
			return allowed(v, n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !done {
		if _, err := a.propose(ctx, &c); err != nil {
			return nil, err
		}
	}
	var out task.NodeView
	a.lookAtNodes(q, func(v *view) {
		if n := v.Node(c.Node); n != nil {
			out = v.node(n)
		}
	})
	return ok(out)
}

// maxDrain bounds how long running attempts may go on at a draining machine.
const maxDrain = 30 * 24 * time.Hour

// drainNode answers POST /v1/nodes/{ref}/drain (R36).
func (a *API) drainNode(ctx context.Context, q *request) (*reply, error) {
	var b transport.DrainBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	after, ok := secondsOf(b.DeadlineSeconds)
	if !ok || after > maxDrain {
		return nil, invalid(fmt.Sprintf("deadline_seconds %v is not from 0 to %.0f", b.DeadlineSeconds, maxDrain.Seconds()), "")
	}
	if !oneLine(b.Reason, task.MaxMessageLength) {
		return nil, invalid(fmt.Sprintf("reason is not one line of at most %d bytes", task.MaxMessageLength), "")
	}
	return a.setNode(ctx, q, fsm.SetNode{Action: fsm.NodeDrain, After: task.MillisOf(after), Reason: b.Reason}, nil)
}

// resumeNode answers POST /v1/nodes/{ref}/resume.
func (a *API) resumeNode(ctx context.Context, q *request) (*reply, error) {
	return a.setNode(ctx, q, fsm.SetNode{Action: fsm.NodeResume}, nil)
}

// clearNode answers POST /v1/nodes/{ref}/clear (R45). A machine that is not unstable only has its crashes forgotten.
func (a *API) clearNode(ctx context.Context, q *request) (*reply, error) {
	return a.setNode(ctx, q, fsm.SetNode{Action: fsm.NodeClear}, nil)
}

// maxLabels bounds one request to set labels.
const maxLabels = 64

// labelNode answers POST /v1/nodes/{ref}/label. A label that no requirement could name is refused.
func (a *API) labelNode(ctx context.Context, q *request) (*reply, error) {
	var b transport.LabelBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	if len(b.Set) == 0 || len(b.Set) > maxLabels {
		return nil, invalid(fmt.Sprintf("%d labels are not from 1 to %d", len(b.Set), maxLabels), `as in {"set": [{"name": "gpu", "value": "true"}]}`)
	}
	for i, kv := range b.Set {
		if slices.ContainsFunc(b.Set[:i], func(o task.KV) bool { return o.Name == kv.Name }) {
			return nil, invalid("label "+shown(kv.Name)+" is given twice", "")
		}
		if automatic(kv.Name) {
			return nil, invalid("label "+shown(kv.Name)+" is set by lanjobs itself", "")
		}
		text := kv.Name
		if kv.Value != "" {
			text += "=" + kv.Value
		}
		r, ok := jobfile.ParseRequirement(text)
		if !ok || r.Label != kv.Name || kv.Value != "" && (r.Op != task.OpEqual || r.Values[0] != kv.Value) {
			return nil, invalid("label "+shown(text)+" is not allowed", "a name has letters, digits and - _ . /, a value no spaces around it and none of = ! < > ( ) ,")
		}
	}
	return a.setNode(ctx, q, fsm.SetNode{Action: fsm.NodeLabel, Labels: b.Set}, nil)
}

// roleActs are the words of a RoleBody.
var roleActs = map[string]fsm.NodeAction{"voter": fsm.NodePromote, "worker": fsm.NodeDemote, "auto": fsm.NodeAuto}

// setRole answers POST /v1/nodes/{ref}/role. The number of voters stays the cluster's own business: an even one would be worse.
func (a *API) setRole(ctx context.Context, q *request) (*reply, error) {
	var b transport.RoleBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	act, known := roleActs[b.Role]
	if !known {
		return nil, invalid("role "+shown(b.Role)+" is not voter, worker or auto", "")
	}
	return a.setNode(ctx, q, fsm.SetNode{Action: act}, func(_ *view, n *fsm.Node) error {
		if act == fsm.NodePromote && (n.WorkerOnly || !n.Info.Voter) {
			return task.NewProblem(task.ErrConflict, nodeName(n)+" joined with --worker: it keeps no log and cannot vote.",
				"On "+nodeName(n)+": lanjobs leave, then join again without --worker")
		}
		return nil
	})
}

// removeNode answers DELETE /v1/nodes/{ref}: the machine is shut out at once (R46). With force=1 also when that would leave
// too few voters that answer.
func (a *API) removeNode(ctx context.Context, q *request) (*reply, error) {
	force, err := q.flag("force")
	if err != nil {
		return nil, err
	}
	return a.setNode(ctx, q, fsm.SetNode{Action: fsm.NodeRemove}, func(v *view, n *fsm.Node) error {
		m := v.members[n.Info.ID]
		switch {
		case n.Info.ID == v.leader:
			return task.NewProblem(task.ErrConflict, nodeName(n)+" leads now and cannot be removed from afar.", "On "+nodeName(n)+": lanjobs leave")
		case m.Role != RoleVoter || force:
			return nil
		}
		answering := v.voters.answering
		if m.Away == 0 {
			answering--
		}
		if rest := v.voters.voters - 1; answering*2 <= rest {
			return task.NewProblem(task.ErrConflict, fmt.Sprintf("without %s only %d of %s would answer, and nothing could be changed any more.", nodeName(n), answering, plural(rest, "voter", "voters")),
				"Wake the silent ones or remove one of them first.")
		}
		return nil
	})
}

// automatic are labels that nobody can set.
func automatic(label string) bool { return label == "node" || label == "os" || label == "arch" }
