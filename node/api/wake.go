package api

import (
	"context"
	"fmt"
	"slices"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/task"
	"lanjobs/transport"
)

// wakeNode answers POST /v1/nodes/{ref}/wake: every member that answers sends the packets of Wake-on-LAN. It commits nothing, so any
// member can do it while nobody leads, which is when it is needed most.
func (a *API) wakeNode(ctx context.Context, q *request) (*reply, error) {
	var macs []string
	var from []task.NodeID
	out := transport.WakeView{From: []transport.WakeSender{}}
	err := a.onNode(q, func(v *view, n *fsm.Node) error {
		out.Node = v.node(n)
		macs = slices.Clone(n.Info.MACs)
		if n.Gone != "" {
			return task.NewProblem(task.ErrConflict, nodeName(n)+" is no longer a member.", "")
		}
		if len(macs) == 0 {
			return task.NewProblem(task.ErrConflict, fmt.Sprintf("no network card of %s is known, so no packet can wake it.", nodeName(n)),
				"A machine tells of its cards when it registers; one inside a container has none.")
		}
		v.present(func(o *fsm.Node) {
			if o.Info.ID != n.Info.ID && o.Incarnation > 0 {
				from = append(from, o.Info.ID)
			}
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(from) == 0 {
		return nil, task.NewProblem(task.ErrConflict, "there is no other machine that could wake it.", "")
	}
	for _, r := range leader.Rouse(ctx, a.clock, a.cfg.Peers, from, macs) {
		s := transport.WakeSender{ID: r.Node, Networks: r.Sent}
		a.look(q, func(v *view) { s.Name = v.nameOf(r.Node) })
		if r.Err != nil {
			s.Problem = task.Explain(r.Err).Detail
		} else {
			out.Sent++
		}
		out.From = append(out.From, s)
	}
	if out.Sent == 0 {
		return nil, task.NewProblem(task.ErrConflict, fmt.Sprintf("no machine could send a packet: %s: %s", out.From[0].Name, out.From[0].Problem),
			"Packets go to the broadcast addresses of IPv4 networks.")
	}
	return ok(out)
}

// wakesWhom refuses a schedule that is to wake a machine which the cluster does not have: nobody would notice when it matters.
func (v *view) wakesWhom(spec *task.Spec) error {
	if spec.Schedule == nil {
		return nil
	}
	for _, name := range spec.Schedule.WakeNames() {
		known := false
		var names []string
		v.present(func(n *fsm.Node) {
			known = known || nodeName(n) == name
			names = append(names, nodeName(n))
		})
		if known {
			continue
		}
		detail := "schedule.wake: there is no node " + shown(name) + "; nothing was submitted."
		if near := task.Nearest(names, name); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", near)
		}
		return invalid(detail, "All machines: lanjobs node ls")
	}
	return nil
}
