package fsm

import (
	"slices"
	"strings"

	"lanjobs/task"
)

// apply records a node's start. What it held and does not hold any more is free at once: it says itself that nothing of
// it runs (I13). Only the first registration of an incarnation frees: a repeat that comes late knows nothing of what was
// granted since, and freeing that would give it a second believer (I1). A lower incarnation than the recorded one is a
// copy of the machine or its past, and is refused.
func (c *RegisterNode) apply(s *State) Result {
	id := c.Info.ID
	if !validID(id) || c.Incarnation == 0 || c.Info.Slots < 1 || c.Info.Slots > task.MaxSlots {
		return refuse(task.ErrInvalid, "", "registration without id, incarnation or slots")
	}
	if !checkInfo(&c.Info) {
		return refuse(task.ErrTooLarge, "", "a node has at most %d labels and shells with %d bytes together", maxLabels, maxLabelBytes)
	}
	place, known := s.nodeAt[id]
	if known {
		if _, problem := s.member(id); problem != nil {
			return Result{Err: problem}
		}
		if old := s.nodes[place]; c.Incarnation < old.Incarnation {
			return refuse(task.ErrConflict, "", "node %s has started again since (incarnation %d, now %d): is its data folder in use twice?", old.Info.Name, c.Incarnation, old.Incarnation)
		}
	} else {
		if s.Cluster.ID != "" {
			return refuse(task.ErrNotAllowed, "", "node %s was never admitted to %q", clip(c.Info.Name, maxIDLength), s.Cluster.Name)
		}
		place = s.addNode(id, &Node{})
	}
	n := s.mutNode(place)
	again := n.Incarnation == c.Incarnation
	if c.Caring {
		n.count(s)
	}
	n.Info, n.Incarnation, n.Reason = ownInfo(c.Info), c.Incarnation, ""
	if n.WorkerOnly {
		n.Info.Voter = false
	}
	if !n.Online {
		n.Online, n.Since = true, s.Wall
	}
	kept, gone := s.heldBy(place, c.Held)
	if !again {
		if c.Caring {
			n.started(s, c.Crashes)
		}
		s.emit(task.Event{Kind: task.EventNodeRegister, Node: id, NodeName: n.Info.Name, Load: &c.Load})
		s.free(gone)
	}
	return Result{Tokens: kept}
}

// checkInfo bounds what a node says of itself.
func checkInfo(n *task.NodeInfo) bool {
	size := len(n.Name) + len(n.OS) + len(n.Arch) + len(n.Version) + len(n.Limits) + len(n.Host) + len(n.RunAs) + len(n.Inhibit)
	for _, texts := range [][]string{n.Shells, n.MACs, n.Refuses} {
		if len(texts) > maxLabels {
			return false
		}
		for _, text := range texts {
			size += len(text)
		}
	}
	return size <= maxLabelBytes && fits(n.Labels, maxLabels, maxLabelBytes-size)
}

// ownInfo copies a node's info, with its labels sorted as readers expect them.
func ownInfo(n task.NodeInfo) task.NodeInfo {
	n.Labels, n.Shells = slices.Clone(n.Labels), slices.Clone(n.Shells)
	n.MACs, n.Refuses = slices.Clone(n.MACs), slices.Clone(n.Refuses)
	slices.SortStableFunc(n.Labels, func(a, b task.KV) int { return strings.Compare(a.Name, b.Name) })
	return n
}

// addNode gives a node its place.
func (s *State) addNode(id task.NodeID, n *Node) int32 {
	place := int32(len(s.nodes))
	n.Info.ID, n.Since = id, s.Wall
	s.nodes = append(s.nodes, n)
	s.nodeAt[id] = place
	s.held = append(s.held, map[task.Token]*Lease{})
	return place
}

// heldBy parts the leases of a node into those that it names, oldest first, and the others, in no order.
func (s *State) heldBy(place int32, named []task.Token) (kept, gone []task.Token) {
	names := make(map[task.Token]bool, len(named))
	for _, t := range named {
		names[t] = true
	}
	for t := range s.held[place] {
		if names[t] {
			kept = append(kept, t)
		} else {
			gone = append(gone, t)
		}
	}
	slices.Sort(kept)
	return kept, gone
}

// free ends leases whose node says that it runs them no more.
func (s *State) free(gone []task.Token) {
	slices.Sort(gone)
	for _, t := range gone {
		l := s.leases[t]
		j := s.mutJob(l.Seq)
		sh := s.mutShard(j, l.Ref.Stage, l.Ref.Shard)
		o := task.Outcome{End: task.EndNodeRestarted}
		s.released.add(s, j, l.Ref, sh, o.String())
		s.endAttempt(j, l.Ref.Stage, l.Ref.Shard, sh, o, nil)
	}
}

func (c *SetOnline) apply(s *State) Result {
	place, problem := s.member(c.Node)
	if problem != nil {
		return Result{Err: problem}
	}
	if s.nodes[place].Online == c.Online {
		return Result{}
	}
	n := s.mutNode(place)
	if c.Caring {
		n.count(s)
	}
	n.Online, n.Since, n.Reason = c.Online, s.Wall, clip(c.Reason, task.MaxMessageLength)
	kind := task.EventNodeOffline
	switch {
	case c.Online:
		kind = task.EventNodeOnline
	case n.Reason == task.ReasonAsleep:
		kind = task.EventNodeSleep
	}
	s.emit(task.Event{Kind: kind, Node: c.Node, NodeName: n.Info.Name, Reason: n.Reason})
	return Result{}
}

// apply is an admin act. Removing a node frees none of its leases: it may be cut off and working, so they run out (I1).
func (c *SetNode) apply(s *State) Result {
	place, problem := s.member(c.Node)
	if problem != nil {
		return Result{Err: problem}
	}
	n := *s.nodes[place]
	e := task.Event{Node: c.Node, NodeName: n.Info.Name, Reason: clip(c.Reason, task.MaxMessageLength), By: clip(c.By, task.MaxMessageLength)}
	switch c.Action {
	case NodeDrain:
		n.Draining, n.DrainUntil, e.Kind = true, s.Clock.Add(length(c.After)), task.EventNodeDrain
	case NodeResume:
		n.Draining, n.DrainUntil, e.Kind = false, 0, task.EventNodeResume
	case NodeLabel:
		if !fits(c.Labels, maxLabels, maxLabelBytes) {
			return refuse(task.ErrTooLarge, "", "a node has at most %d labels with %d bytes together", maxLabels, maxLabelBytes)
		}
		for _, kv := range c.Labels {
			n.Extra = setKV(n.Extra, kv)
		}
		if !fits(n.Extra, maxLabels, maxLabelBytes) {
			return refuse(task.ErrTooLarge, "", "a node has at most %d labels with %d bytes together", maxLabels, maxLabelBytes)
		}
		e.Kind, e.Reason = task.EventNodeRegister, "labels"
	case NodeRemove, NodeLeave:
		n.Gone, n.Online, n.Since, e.Kind = c.Action, false, s.Wall, task.EventNodeRemove
		if c.Action == NodeLeave {
			e.Kind = task.EventNodeLeave
		}
	case NodeClear:
		n.Care.Unstable, n.Care.Crashes, e.Kind = false, 0, task.EventNodeClear
	case NodePromote, NodeDemote, NodeAuto:
		n.Care.Seat, e.Kind, e.To = c.Action, task.EventNodeRole, string(c.Action)
		if c.Action == NodeAuto {
			n.Care.Seat = ""
		}
	default:
		return refuse(task.ErrInvalid, "", "unknown act %q on a node", clip(string(c.Action), maxIDLength))
	}
	*s.mutNode(place) = n
	s.emit(e)
	if n.Gone != "" {
		s.failGoneOf(c.Node)
	}
	return Result{}
}
