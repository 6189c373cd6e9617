package fsm

import (
	"bytes"
	"slices"
	"strconv"

	"lanjobs/task"
)

// apply gives a state its cluster, once; its jobs stay.
func (c *InitCluster) apply(s *State) Result {
	if !validID(c.ID) || len(c.Name) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a cluster needs an id and a name of at most %d bytes", maxIDLength)
	}
	if s.Cluster.ID == c.ID {
		return Result{Existed: true}
	}
	if s.Cluster.ID != "" {
		return refuse(task.ErrConflict, "", "this machine already belongs to %q", s.Cluster.Name)
	}
	s.Cluster = Cluster{ID: c.ID, Name: c.Name, CACert: bytes.Clone(c.CACert), CAKey: bytes.Clone(c.CAKey), GossipKey: bytes.Clone(c.GossipKey)}
	s.emit(task.Event{Kind: task.EventClusterInit, Reason: c.Name, By: clip(c.By, task.MaxMessageLength)})
	return Result{}
}

func (c *Elected) apply(s *State) Result {
	if len(c.Node) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a node id has at most %d bytes", maxIDLength)
	}
	s.Leader, s.Term = c.Node, c.Term
	e := task.Event{Kind: task.EventLeaderElected, Node: c.Node}
	if n := s.Node(c.Node); n != nil {
		e.NodeName = n.Info.Name
	}
	s.emit(e)
	return Result{}
}

// apply begins a generation: every token from now on is higher than any that was given before, also by a history that was
// lost.
func (c *NewGeneration) apply(s *State) Result {
	next := max(s.Generation+1, c.AtLeast)
	if next > maxGeneration {
		return refuse(task.ErrInvalid, "", "there is no generation %d", next)
	}
	s.Generation, s.nextToken = next, 0
	s.emit(task.Event{Kind: task.EventClusterInit, Reason: "generation " + strconv.FormatUint(next, 10) + ": " + clip(c.Reason, task.MaxMessageLength), By: clip(c.By, task.MaxMessageLength)})
	return Result{}
}

func (c *CreateToken) apply(s *State) Result {
	if len(c.Hash) == 0 || len(c.Hash) > maxIDLength || !validID(c.ID) || c.Uses < 1 || c.TTL <= 0 {
		return refuse(task.ErrInvalid, "", "a join token needs an id, a hash, a lifetime and at least one use")
	}
	for _, t := range s.tokens {
		if t.ID == c.ID && bytes.Equal(t.Hash, c.Hash) {
			return Result{Existed: true}
		}
		if t.ID == c.ID || bytes.Equal(t.Hash, c.Hash) {
			return refuse(task.ErrConflict, "", "there is another join token %s", t.ID)
		}
	}
	if c.Role != "" && !c.Role.Valid() {
		return refuse(task.ErrInvalid, "", "no role %q: viewer, operator or admin", clip(string(c.Role), maxIDLength))
	}
	t := &JoinToken{Role: c.Role, ID: c.ID, Hash: bytes.Clone(c.Hash), Until: s.Led + length(c.TTL), Uses: c.Uses, Worker: c.Worker, By: clip(c.By, task.MaxMessageLength)}
	s.tokens = append(s.liveTokens(), t)
	s.emit(task.Event{Kind: task.EventTokenCreate, Reason: t.ID, TTL: length(c.TTL), By: t.By})
	return Result{}
}

// liveTokens drops what has ended. One that is used up stays until then, for a repeat of its last use. It is a fresh slice,
// since readers may hold the old one.
func (s *State) liveTokens() []*JoinToken {
	var out []*JoinToken
	for _, t := range s.tokens {
		if t.Until > s.Led {
			out = append(out, t)
		}
	}
	return out
}

func (c *RemoveToken) apply(s *State) Result {
	for i, t := range s.tokens {
		if t.ID == c.ID {
			s.tokens = slices.Delete(slices.Clone(s.tokens), i, i+1)
			s.emit(task.Event{Kind: task.EventTokenRemove, Reason: c.ID, By: clip(c.By, task.MaxMessageLength)})
			return Result{}
		}
	}
	return refuse(task.ErrNotFound, "", "no join token %s", clip(c.ID, maxIDLength))
}

// apply spends one use of a token for a new member. A repeat by the node that the token has admitted costs nothing; any
// other token admits no member again, and no other key, or its bearer could have a certificate in another's name.
func (c *AdmitNode) apply(s *State) Result {
	if s.Cluster.ID == "" {
		return refuse(task.ErrConflict, "Run lanjobs init there first.", "this machine is not part of a cluster")
	}
	if !validID(c.Node) || len(c.Name) > maxIDLength || len(c.Key) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a node needs an id and a name of at most %d bytes", maxIDLength)
	}
	i := -1
	if len(c.TokenHash) > 0 {
		i = slices.IndexFunc(s.tokens, func(t *JoinToken) bool { return bytes.Equal(t.Hash, c.TokenHash) && t.Until > s.Led && t.Role == "" })
		if i < 0 {
			return refuse(task.ErrNotAllowed, tokenHint, "this token is not known here: it has ended (tokens last 1h, 1 use, unless made otherwise), was withdrawn, or is of another cluster")
		}
	}
	if place, known := s.nodeAt[c.Node]; known {
		n := s.nodes[place]
		if n.Gone != "" {
			return refuse(task.ErrNotAllowed, newIdentityHint, "node %s was removed from %q", n.Info.Name, s.Cluster.Name)
		}
		if i >= 0 && n.Admitted != s.tokens[i].ID {
			return refuse(task.ErrConflict, newIdentityHint, "node %s is a member of %q already", n.Info.Name, s.Cluster.Name)
		}
		if len(n.Key) > 0 && !bytes.Equal(n.Key, c.Key) {
			return refuse(task.ErrConflict, newIdentityHint, "node %s is a member of %q already, with another key", n.Info.Name, s.Cluster.Name)
		}
		return Result{Existed: true}
	}
	n := &Node{Info: task.NodeInfo{Name: c.Name}, WorkerOnly: c.Worker, Key: bytes.Clone(c.Key)}
	e := task.Event{Kind: task.EventNodeJoin, Node: c.Node, NodeName: c.Name}
	if i >= 0 {
		t := *s.tokens[i]
		if t.Uses < 1 {
			return refuse(task.ErrNotAllowed, tokenHint, "this token is used up (tokens have 1 use unless made otherwise)")
		}
		t.Uses--
		s.tokens = slices.Clone(s.tokens)
		s.tokens[i] = &t
		n.Admitted, n.WorkerOnly = t.ID, n.WorkerOnly || t.Worker
		e.By, e.Reason = t.By, "token "+t.ID
		s.emit(task.Event{Kind: task.EventTokenUse, Reason: t.ID, Node: c.Node, NodeName: c.Name})
	}
	s.addNode(c.Node, n)
	s.emit(e)
	return Result{}
}

const (
	tokenHint       = "On a member: lanjobs token create"
	newIdentityHint = "Join under a new identity: lanjobs join PEER --replace"
)
