package api

import (
	"fmt"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// obstacle is what keeps a machine from taking a shard of a stage. The order is that of asking: what cannot be at all
// comes before what will pass.
type obstacle uint8

const (
	canRun   obstacle = iota
	unmet             // a requirement
	unborn            // admitted, never started
	gone              // silent
	draining          //
	unheard           // not since the leader leads: it has not asked for work yet
	leading           // runs nothing while another machine can (R18)
	full              //
)

// machine is one machine as a stage sees it.
type machine struct {
	name   string
	id     task.NodeID
	keeps  obstacle
	why    string   // "is full (2/2)"; with canRun: "has room (1/2)"
	load   float64  // leases per slot
	fix    string   // what a person could do
	nearly []string // unmet: "has gpu=yes"
}

// machines judges every machine for a stage, by the rules that plan places by. What is said here may be wrong by a moment;
// it decides nothing.
func (v *view) machines(spec *task.StageSpec) []machine {
	key := requirements(spec.Require)
	out, known := v.judged[key]
	if !known {
		out = v.judge(spec)
		v.judged[key] = out
	}
	return out
}

func (v *view) judge(spec *task.StageSpec) []machine {
	var out []machine
	v.present(func(n *fsm.Node) {
		info := n.Labelled()
		m := machine{name: nodeName(n), id: n.Info.ID, load: float64(v.Held(n.Info.ID)) / float64(max(n.Info.Slots, 1))}
		held := fmt.Sprintf("(%d/%d)", v.Held(n.Info.ID), n.Info.Slots)
		lacking := task.Unmatched(spec.Require, &info)
		switch {
		case len(lacking) > 0:
			m.keeps, m.why, m.fix, m.nearly = unmet, "does not meet "+requirements(lacking), labelFix(m.name, lacking), v.nearly(lacking, &info)
			if len(m.nearly) > 0 {
				m.why += " (" + strings.Join(m.nearly, ", ") + ")"
			} else if m.fix != "" {
				m.fix = "if it does: " + m.fix
			}
		case n.Incarnation == 0:
			m.keeps, m.why, m.fix = unborn, "was admitted but has not started yet", "start lanjobs on it"
		case v.silent(n):
			m.keeps, m.why, m.fix = gone, "is silent"+v.silentFor(n), "wake or start it"
		case n.Draining:
			m.keeps, m.why, m.fix = draining, "is draining", "lanjobs node resume "+m.name
		case !v.heard(n):
			m.keeps, m.why = unheard, "has not been heard of since "+v.nameOf(v.leader)+" leads"
		case n.Info.ID == v.leader && v.otherFits(spec, n.Info.ID) != "":
			m.keeps, m.why = leading, "leads, and runs nothing while "+v.otherFits(spec, n.Info.ID)+" can"
		case v.Held(n.Info.ID) >= n.Info.Slots:
			m.keeps, m.why = full, "is full "+held
		default:
			m.why = "has room " + held
		}
		out = append(out, m)
	})
	return out
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

// otherFits names a machine other than id that is here and could run the stage, busy or not; "" = there is none.
func (v *view) otherFits(spec *task.StageSpec, id task.NodeID) (name string) {
	v.present(func(n *fsm.Node) {
		info := n.Labelled()
		if name == "" && n.Info.ID != id && v.takesWork(n) && len(task.Unmatched(spec.Require, &info)) == 0 {
			name = nodeName(n)
		}
	})
	return name
}

// heard tells whether a machine has been heard in this term; who does not lead does not know and takes it for granted.
func (v *view) heard(n *fsm.Node) bool {
	if !v.leads {
		return true
	}
	_, ok := v.seen(n.Info.ID)
	return ok
}

func (v *view) takesWork(n *fsm.Node) bool {
	return v.heard(n) && n.Online && !n.Draining && n.Gone == "" && n.Incarnation > 0
}

func requirements(rs []task.Requirement) string {
	var texts []string
	for _, r := range rs {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, ", ")
}

// automatic are labels that nobody can set.
func automatic(label string) bool { return label == "node" || label == "os" || label == "arch" }

// labelFix is the command that would make a machine fit, if a label can.
func labelFix(name string, lacking []task.Requirement) string {
	words := []string{"lanjobs node label", name}
	for _, r := range lacking {
		switch {
		case automatic(r.Label) || r.Op == task.OpNotEqual:
			return ""
		case r.Op == task.OpExists:
			words = append(words, r.Label+"=true")
		default:
			words = append(words, r.Label+"="+r.Values[0])
		}
	}
	return strings.Join(words, " ")
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
			if near := nearest(names, r.Label); near != "" {
				value, _ = info.Label(near)
				out = append(out, "has "+near+"="+value)
			}
		}
	}
	return out
}

func anyRoom(ms []machine) bool { return countOf(ms, canRun) > 0 }

func countOf(ms []machine, keeps ...obstacle) (n int) {
	for _, m := range ms {
		for _, k := range keeps {
			if m.keeps == k {
				n++
			}
		}
	}
	return n
}

// maxNamed is how many machines one sentence names.
const maxNamed = 3

// obstacles is why no machine takes a stage: "gpu=true, 0 of 4 (pc-win has gpu=yes)", "node=nas is full (2/2)",
// "nas is full (2/2), pc-win is draining".
func obstacles(ms []machine, require []task.Requirement) string {
	lacking := countOf(ms, unmet)
	var texts, names []string
	for _, m := range ms {
		names = append(names, m.name)
		switch {
		case m.keeps == unmet && lacking == len(ms):
			for _, n := range m.nearly {
				texts = append(texts, m.name+" "+n)
			}
		case m.keeps != unmet:
			texts = append(texts, m.name+" "+m.why)
		}
	}
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

func nearestNode(names []string, require []task.Requirement) string {
	for _, r := range require {
		if r.Label == "node" && r.Op == task.OpEqual {
			return nearest(names, r.Values[0])
		}
	}
	return ""
}
