package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// machine is what plan says of one machine, with what this package knows besides. It may be wrong by a moment and decides nothing.
type machine struct {
	id     task.NodeID
	name   string
	keeps  plan.Kind
	why    string   // after the name: "is full (2/2)"
	fix    string   // what a person could do
	nearly []string // of requirements that it does not meet: "has gpu=yes"
}

// kindQuiet is a machine with room that should have asked for work long ago: it may have died, and nobody knows yet. A machine that
// is well and has room asks again at once.
const (
	kindQuiet  plan.Kind = "quiet"
	quietAfter           = 5 * time.Second
)

// plan is what is known now in the form that plan asks for.
func (v *view) plan() *plan.View {
	if v.planned == nil && v.leads {
		v.planned = v.sessions.View(v.State)
	}
	if v.planned == nil {
		v.planned = &plan.View{State: v.State, Now: v.Clock, Self: v.leader, Stranger: true}
	}
	return v.planned
}

// machines says what keeps each machine from shards of a stage.
func (v *view) machines(queue string, spec *task.StageSpec) []machine {
	key := queue + " " + needsKey(spec)
	out, known := v.judged[key]
	if !known {
		out = v.worded(plan.Fits(v.plan(), queue, spec), spec)
		v.judged[key] = out
	}
	return out
}

// needsKey is equal for stages that ask the same of machines.
func needsKey(spec *task.StageSpec) string {
	return fmt.Sprint(requirements(spec.Require), spec.Paths, spec.Programs, spec.User, spec.AsksShell(), spec.Resources, spec.Broadcast)
}

// worded adds to plan's reasons about machines what only this member can tell.
func (v *view) worded(rs []plan.Reason, spec *task.StageSpec) []machine {
	out := make([]machine, 0, len(rs))
	for _, r := range rs {
		n := v.Node(r.Node)
		m := machine{id: r.Node, name: nodeName(n), keeps: r.Kind, why: r.Text, fix: r.Change}
		if v.orphan && !unable(r.Kind) && v.silent(n) { // nobody has recorded it
			m.keeps, m.why, m.fix = plan.KindSilent, "is silent", "wake or start it"
		}
		switch m.keeps {
		case plan.KindRequire:
			info := n.Labelled()
			m.nearly = v.nearly(task.Unmatched(spec.Require, &info), &info)
			if len(m.nearly) > 0 {
				m.why += " (" + strings.Join(m.nearly, ", ") + ")"
			} else if strings.HasPrefix(m.fix, "lanjobs node label") { // it may lack the label only
				m.fix = "if it does: " + m.fix
			}
		case plan.KindAsked:
			if seen, ok := v.seen(r.Node); ok && seen.Ago >= quietAfter {
				m.keeps, m.fix = kindQuiet, "start or wake it"
				m.why = fmt.Sprintf("does not ask for work, last heard of %s ago: after %s it counts as silent, and others take its shards",
					short(seen.Ago), shortMillis(plan.RegistrationTTL))
			}
		case plan.KindSilent:
			m.why += v.silentFor(n)
		case plan.KindAsleep:
			m.why += " for " + short(v.ago(n.Since))
		}
		out = append(out, m)
	}
	return v.namedOther(out)
}

// namedOther tells which machine the leader leaves its work to.
func (v *view) namedOther(ms []machine) []machine {
	for i := range ms {
		if ms[i].keeps != plan.KindLeads {
			continue
		}
		for _, o := range ms {
			if o.keeps != plan.KindLeads && !unable(o.keeps) {
				ms[i].why = strings.Replace(ms[i].why, "another machine", o.name, 1)
				break
			}
		}
	}
	return ms
}

// unable tells whether a machine cannot run a shard however long the shard waits for a busy one.
func unable(k plan.Kind) bool {
	switch k {
	case plan.KindRequire, plan.KindRefuses, plan.KindTooSmall, plan.KindUnborn, plan.KindSilent, plan.KindAsleep, plan.KindUnstable, plan.KindDraining, plan.KindLacks:
		return true
	}
	return false
}

// silentFor is " for 4m, asleep?", as far as it is known.
func (v *view) silentFor(n *fsm.Node) string {
	text := ""
	if seen, ok := v.seen(n.Info.ID); ok {
		text = " for " + short(seen.Ago)
	} else if n.Since > 0 {
		text = " for " + short(v.ago(n.Since))
	}
	if sleeper(n) {
		text += ", asleep?"
	}
	return text
}

func requirements(rs []task.Requirement) string {
	var texts []string
	for _, r := range rs {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ", ")
}

// nearly says what a machine has in the place of what is asked for: the label with another value, or a label of nearly
// that name.
func (v *view) nearly(lacking []task.Requirement, info *task.NodeInfo) []string {
	var out []string
	for _, r := range lacking {
		value, has := info.Label(r.Label)
		switch {
		case r.Label == "node":
		case has:
			out = append(out, "has "+r.Label+"="+value)
		default:
			var names []string
			for _, kv := range info.Labels {
				names = append(names, kv.Name)
			}
			if near := task.Nearest(names, r.Label); near != "" {
				value, _ = info.Label(near)
				out = append(out, "has "+near+"="+value)
			}
		}
	}
	return out
}

// takes tells whether a machine takes a shard now, or with its next question for work.
func (m *machine) takes() bool {
	return m.keeps == "" || m.keeps == plan.KindAsked || m.keeps == plan.KindOther
}

func anyRoom(ms []machine) bool {
	for i := range ms {
		if ms[i].takes() {
			return true
		}
	}
	return false
}

// anyFits tells whether a machine can run it, if not now then when it has room.
func anyFits(ms []machine) bool {
	for i := range ms {
		if !unable(ms[i].keeps) {
			return true
		}
	}
	return false
}

// maxNamed is how many machines one sentence names.
const maxNamed = 3

// obstacles is why no machine takes a stage: "gpu=true, 0 of 4 (pc-win has gpu=yes)", "node=nas is full (2/2)",
// "nas is full (2/2), pc-win is draining". The leader, which only stands back for the others, comes last.
func obstacles(ms []machine, require []task.Requirement) string {
	ms = slices.Clone(ms)
	slices.SortStableFunc(ms, func(a, b machine) int { return cmp.Compare(rank(a.keeps), rank(b.keeps)) })
	lacking := 0
	for _, m := range ms {
		if m.keeps == plan.KindRequire {
			lacking++
		}
	}
	var names []string
	var said alikes
	for _, m := range ms {
		names = append(names, m.name)
		switch {
		case m.keeps == plan.KindRequire && lacking == len(ms):
			for _, n := range m.nearly {
				said.add(m.name, n)
			}
		case m.keeps != plan.KindRequire:
			said.add(m.name, m.why)
		}
	}
	texts := said.texts()
	wanted := requirements(require)
	switch {
	case len(ms) == 0:
		return "the cluster has none"
	case lacking == len(ms):
		text := fmt.Sprintf("%s, 0 of %d", wanted, len(ms))
		if len(texts) > 0 {
			text += " (" + some(texts, maxNamed, ", ") + ")"
		} else if near := nearestNode(names, require); near != "" {
			text += fmt.Sprintf(" (did you mean node=%s?)", near)
		}
		return text
	case lacking == 0:
		return some(texts, maxNamed, ", ")
	case len(require) == 1 && require[0].Label == "node" && require[0].Op == task.OpEqual:
		return "node=" + some(texts, maxNamed, ", ")
	}
	return wanted + ": " + some(texts, maxNamed, ", ")
}

// rank orders machines in a sentence: first those that will have room, then those that need a hand, then the leader.
func rank(k plan.Kind) int {
	switch {
	case k == plan.KindLeads:
		return 2
	case unable(k):
		return 1
	}
	return 0
}

func nearestNode(names []string, require []task.Requirement) string {
	for _, r := range require {
		if r.Label == "node" && r.Op == task.OpEqual {
			return task.Nearest(names, r.Values[0])
		}
	}
	return ""
}
