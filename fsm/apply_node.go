package fsm

import (
	"bytes"
	"slices"

	"lanjobs/task"
)

// apply gives a state its cluster, once; its jobs stay.
func (c *InitCluster) apply(s *State) Result {
	if s.Cluster.ID != "" {
		return refuse(task.ErrConflict, "", "this machine already belongs to %q", s.Cluster.Name)
	}
	s.Cluster = Cluster{ID: c.ID, Name: c.Name, CACert: bytes.Clone(c.CACert), CAKey: bytes.Clone(c.CAKey), GossipKey: bytes.Clone(c.GossipKey)}
	s.emit(task.Event{Kind: task.EventClusterInit, Reason: c.Name, By: c.By})
	return Result{}
}

func (c *Elected) apply(s *State) Result {
	s.Leader, s.Term = c.Node, c.Term
	e := task.Event{Kind: task.EventLeaderElected, Node: c.Node}
	if n := s.Node(c.Node); n != nil {
		e.NodeName = n.Info.Name
	}
	s.emit(e)
	return Result{}
}

// apply records a node's start. What it held and does not hold any more is free at once: it says itself that nothing of
// it runs (I13). A lower incarnation than the recorded one is a copy of the machine or its past, and is refused.
func (c *RegisterNode) apply(s *State) Result {
	id := c.Info.ID
	if id == "" || c.Incarnation == 0 || c.Info.Slots < 1 || c.Info.Slots > task.MaxSlots {
		return refuse(task.ErrInvalid, "", "registration without id, incarnation or slots")
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
			return refuse(task.ErrNotAllowed, "", "node %s was never admitted to %q", c.Info.Name, s.Cluster.Name)
		}
		place = s.addNode(id)
	}
	n := s.mutNode(place)
	again := n.Incarnation == c.Incarnation
	n.Info, n.Incarnation, n.Reason = c.Info, c.Incarnation, ""
	if n.WorkerOnly {
		n.Info.Voter = false
	}
	if !n.Online {
		n.Online, n.Since = true, s.Wall
	}
	if !again {
		s.emit(task.Event{Kind: task.EventNodeRegister, Node: id, NodeName: n.Info.Name, Load: &c.Load})
	}
	kept := s.freeUnheld(place, c.Held)
	return Result{Tokens: kept}
}

func (s *State) addNode(id task.NodeID) int32 {
	place := int32(len(s.nodes))
	s.nodes = append(s.nodes, &Node{Info: task.NodeInfo{ID: id}, Since: s.Wall})
	s.nodeAt[id] = place
	s.held = append(s.held, map[task.Token]*Lease{})
	return place
}

// freeUnheld ends the leases of a node that it does not name, and gives back those that it rightly names.
func (s *State) freeUnheld(place int32, named []task.Token) []task.Token {
	var kept, gone []task.Token
	for t := range s.held[place] {
		if slices.Contains(named, t) {
			kept = append(kept, t)
		} else {
			gone = append(gone, t)
		}
	}
	slices.Sort(kept)
	slices.Sort(gone)
	for _, t := range gone {
		l := s.leases[t]
		j := s.mutJob(l.Seq)
		sh := s.mutShard(j, l.Ref.Stage, l.Ref.Shard)
		o := task.Outcome{End: task.EndNodeRestarted}
		s.released.add(s, j, l.Ref, sh, o.String())
		s.endAttempt(j, l.Ref.Stage, l.Ref.Shard, sh, o, nil)
	}
	return kept
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
	n.Online, n.Since, n.Reason = c.Online, s.Wall, c.Reason
	kind := task.EventNodeOffline
	if c.Online {
		kind = task.EventNodeOnline
	}
	s.emit(task.Event{Kind: kind, Node: c.Node, NodeName: n.Info.Name, Reason: c.Reason})
	return Result{}
}

// apply is an admin act. Removing a node frees none of its leases: it may be cut off and working, so they run out (I1).
func (c *SetNode) apply(s *State) Result {
	place, problem := s.member(c.Node)
	if problem != nil {
		return Result{Err: problem}
	}
	n := s.mutNode(place)
	e := task.Event{Node: c.Node, NodeName: n.Info.Name, Reason: c.Reason, By: c.By}
	switch c.Action {
	case NodeDrain:
		n.Draining, n.DrainUntil, e.Kind = true, s.Clock.Add(max(c.After, 0)), task.EventNodeDrain
	case NodeResume:
		n.Draining, n.DrainUntil, e.Kind = false, 0, task.EventNodeResume
	case NodeLabel:
		for _, kv := range c.Labels {
			n.Extra = setKV(n.Extra, kv)
		}
		e.Kind, e.Reason = task.EventNodeRegister, "labels"
	case NodeRemove, NodeLeave:
		n.Gone, n.Online, n.Since, e.Kind = c.Action, false, s.Wall, task.EventNodeRemove
		if c.Action == NodeLeave {
			e.Kind = task.EventNodeLeave
		}
	default:
		return refuse(task.ErrInvalid, "", "unknown act %q on a node", c.Action)
	}
	s.emit(e)
	return Result{}
}

func (c *CreateToken) apply(s *State) Result {
	if len(c.Hash) == 0 || c.ID == "" || c.Uses < 1 || c.TTL <= 0 {
		return refuse(task.ErrInvalid, "", "a join token needs an id, a hash, a lifetime and at least one use")
	}
	for _, t := range s.tokens {
		if t.ID == c.ID {
			return Result{} // repeated
		}
	}
	s.tokens = append(s.liveTokens(), &JoinToken{ID: c.ID, Hash: bytes.Clone(c.Hash), Until: s.Led + c.TTL, Uses: c.Uses, Worker: c.Worker, By: c.By})
	s.emit(task.Event{Kind: task.EventTokenCreate, Reason: c.ID, TTL: c.TTL, By: c.By})
	return Result{}
}

// liveTokens drops what has ended; a fresh slice, since readers may hold the old one.
func (s *State) liveTokens() []*JoinToken {
	var out []*JoinToken
	for _, t := range s.tokens {
		if t.Uses > 0 && t.Until > s.Led {
			out = append(out, t)
		}
	}
	return out
}

func (c *RemoveToken) apply(s *State) Result {
	for i, t := range s.tokens {
		if t.ID == c.ID {
			s.tokens = slices.Delete(slices.Clone(s.tokens), i, i+1)
			s.emit(task.Event{Kind: task.EventTokenRemove, Reason: c.ID, By: c.By})
			return Result{}
		}
	}
	return refuse(task.ErrNotFound, "", "no join token %s", c.ID)
}

// apply spends one use of a token for a new member. A repeat by the same node costs nothing.
func (c *AdmitNode) apply(s *State) Result {
	if s.Cluster.ID == "" {
		return refuse(task.ErrConflict, "Run lanjobs init there first.", "this machine is not part of a cluster")
	}
	i := slices.IndexFunc(s.tokens, func(t *JoinToken) bool { return bytes.Equal(t.Hash, c.TokenHash) })
	if len(c.TokenHash) > 0 && i < 0 {
		return refuse(task.ErrNotAllowed, "On a member: lanjobs token create", "this token is not known here: used up, withdrawn, or of another cluster")
	}
	if place, known := s.nodeAt[c.Node]; known {
		if s.nodes[place].Gone != "" {
			return refuse(task.ErrNotAllowed, "Join under a new identity: lanjobs join PEER --replace", "node %s was removed from %q", s.nodes[place].Info.Name, s.Cluster.Name)
		}
		return Result{Existed: true}
	}
	worker := c.Worker
	e := task.Event{Kind: task.EventNodeJoin, Node: c.Node, NodeName: c.Name}
	if i >= 0 {
		t := *s.tokens[i]
		if t.Uses < 1 || t.Until <= s.Led {
			return refuse(task.ErrNotAllowed, "On a member: lanjobs token create", "this token has ended (tokens last 1h, 1 use, unless made otherwise)")
		}
		t.Uses--
		s.tokens = slices.Clone(s.tokens)
		s.tokens[i] = &t
		worker = worker || t.Worker
		e.By, e.Reason = t.By, "token "+t.ID
		s.emit(task.Event{Kind: task.EventTokenUse, Reason: t.ID, Node: c.Node, NodeName: c.Name})
	}
	place := s.addNode(c.Node)
	n := s.mutNode(place)
	n.Info.Name, n.WorkerOnly = c.Name, worker
	s.emit(e)
	return Result{}
}

func (c *NewGeneration) apply(s *State) Result {
	s.Generation++
	s.nextToken = 0
	s.emit(task.Event{Kind: task.EventClusterInit, Reason: "generation " + itoa(int(s.Generation)) + ": " + c.Reason, By: c.By})
	return Result{}
}
