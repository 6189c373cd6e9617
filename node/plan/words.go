package plan

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
)

// say puts a machine's reason into words.
func (p *placer) say(r *Reason, c *cursor, m *member) {
	spec := &c.job.Spec.Stages[c.pick.stage]
	slots := fmt.Sprintf("(%d/%d)", m.held, m.info.Slots)
	switch r.Kind {
	case "":
		r.Text = "has room " + slots + ": takes it next"
	case KindRequire:
		lacking := task.Unmatched(spec.Require, m.info)
		r.Text, r.Change = "does not meet "+requirements(lacking), labelling(p.nameOf(m.node), lacking)
		if name := wantedNode(lacking); name != "" && !p.isMember(name) {
			r.Text, r.Change = r.Text+", and no machine is called "+name, "their names: lanjobs node ls"
		}
	case KindRefuses:
		r.Text, r.Change = "refuses queue "+c.job.Queue(), "start it without that: lanjobs serve --refuse-queue \"\" on "+p.nameOf(m.node)
	case KindTooSmall:
		what := m.tooSmall(&c.fit.need)
		whole, free := map[string]int{"cpu": m.info.CPUs * 1000, "memory": m.info.MemoryMB, "disk": m.diskMB()}[what], ""
		r.Change = "less in the job file's resources, or a bigger machine"
		if what == "disk" {
			free, r.Change = " free", "make room on it, or less in the job file's resources"
		}
		r.Text = fmt.Sprintf("is too small: the shard asks for %s %s, it has %s to give (of %s%s, %d %% stays free)",
			what, amount(what, c.fit.need.of(what)), amount(what, m.share(whole)), amount(what, whole), free, m.reserve())
	case KindUnborn:
		r.Text, r.Change = "was admitted but has not started yet", "start lanjobs on it"
	case KindSilent:
		r.Text, r.Change = "is silent", "wake or start it"
	case KindUnstable:
		r.Text = fmt.Sprintf("crashed %d times in a row: it gets nothing new", Crashed(m.node))
		r.Change = "lanjobs node clear " + p.nameOf(m.node)
	case KindAsleep:
		r.Text, r.Change = "is asleep", "wake it: lanjobs node wake "+p.nameOf(m.node)
	case KindDraining:
		r.Text, r.Change = "is draining", "lanjobs node resume "+p.nameOf(m.node)
	case KindUnheard:
		r.Text = "has not been heard of since the leader leads"
	case KindLacks:
		r.Text, r.Change = "did not have "+p.Lacks.of(spec, m.id)+" a moment ago", "mount or install it there"
	case KindLeads:
		r.Text = "leads, and runs nothing while another machine can"
	case KindPinned:
		r.Text = "has a shard of its own: this one is for " + p.nameOfID(c.job.PinnedTo(c.pick.stage, c.pick.shard))
	case KindFailed:
		r.Text = "had trouble with it: it waits for another machine"
	case KindBelongs:
		r.Text = fmt.Sprintf("is not its machine: by %s it belongs to %s", c.queue.Balance, p.nameOf(c.fit.seats[p.ownerOf(c)].node))
	case KindFull:
		r.Text = "is full " + slots
	case KindResources:
		what, give, taken := m.lacking(&c.fit.need)
		r.Text = fmt.Sprintf("has too little %s left: the shard asks for %s, it has %s to give%s", what, amount(what, c.fit.need.of(what)), amount(what, give), takers(what, m.claimed.of(what), taken))
	case KindAsked:
		r.Text = "has room " + slots + " and is about to ask for work"
	case KindOther:
		r.Text = "has room " + slots + ", another machine is taken first"
	}
}

// takers says who has what is taken of a resource: jobs by what they have booked, and whatever else runs on the machine.
func takers(what string, jobs, taken int) (text string) {
	if jobs > 0 {
		text = "; jobs have booked " + amount(what, jobs)
	}
	if taken > jobs {
		text += "; other programs use " + amount(what, taken-jobs)
	}
	return text
}

// Crashed is how often an unstable machine has crashed in a row. The count is taken back by calm, being unstable is not.
func Crashed(n *fsm.Node) int { return max(n.Care.Crashes, task.UnstableAfter) }

func requirements(rs []task.Requirement) string {
	texts := make([]string, len(rs))
	for i, r := range rs {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

// wantedNode is the one machine that requirements name, "" if they do not.
func wantedNode(lacking []task.Requirement) string {
	for _, r := range lacking {
		if r.Label == "node" && r.Op == task.OpEqual {
			return r.Values[0]
		}
	}
	return ""
}

// isMember tells whether a machine has a name.
func (p *placer) isMember(name string) bool {
	return slices.ContainsFunc(p.members, func(m *member) bool { return m.info.Name == name })
}

// labelling is the command that would make a machine meet requirements, "" if none can.
func labelling(name string, lacking []task.Requirement) string {
	words := []string{"lanjobs node label", name}
	for _, r := range lacking {
		switch {
		case strings.HasPrefix(r.Label, task.UserLabel): // the machine says so of itself: a label from afar changes nothing
			return "lanjobs serve --allow-user " + strings.TrimPrefix(r.Label, task.UserLabel) + " on " + name
		case r.Label == "node" || r.Label == "os" || r.Label == "arch" || r.Op == task.OpNotEqual:
			return ""
		case r.Op == task.OpExists:
			words = append(words, r.Label+"=true")
		default:
			words = append(words, r.Label+"="+r.Values[0])
		}
	}
	return strings.Join(words, " ")
}

// nameOf is what people call a node.
func (v *View) nameOf(n *fsm.Node) string {
	if n.Info.Name != "" {
		return n.Info.Name
	}
	return string(n.Info.ID)
}

func (v *View) nameOfID(id task.NodeID) string {
	if n := v.State.Node(id); n != nil {
		return v.nameOf(n)
	}
	return string(id)
}

// seconds writes a length for a sentence: 8s, 1m30s.
func seconds(m task.Millis) string {
	return ((m + task.Second - 1) / task.Second * task.Second).Duration().String()
}
