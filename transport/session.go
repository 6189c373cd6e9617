package transport

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"lanjobs/task"
)

// Session names one stay of a node in the cluster's gossip: a counter that grows with every start and every change of
// address, kept by the node, and a random part that tells a copied data folder from its original. The highest session of
// a node is the one that counts (R2).
type Session struct {
	Counter uint64
	Random  uint32
}

// Less orders sessions of one node.
func (s Session) Less(o Session) bool {
	return s.compare(o) < 0
}

// compare is Less for sorting.
func (s Session) compare(o Session) int {
	return cmp.Or(cmp.Compare(s.Counter, o.Counter), cmp.Compare(s.Random, o.Random))
}

// IsZero tells the session that nobody has.
func (s Session) IsZero() bool { return s == Session{} }

func (s Session) String() string { return fmt.Sprintf("%d-%08x", s.Counter, s.Random) }

// MarshalText writes a session as String does.
func (s Session) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads it.
func (s *Session) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSession(string(b))
	return err
}

// ParseSession reads what String wrote.
func ParseSession(text string) (Session, error) {
	counter, random, ok := strings.Cut(text, "-")
	c, err1 := strconv.ParseUint(counter, 10, 64)
	r, err2 := strconv.ParseUint(random, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return Session{}, fmt.Errorf("session %q is not COUNTER-RANDOM", text)
	}
	return Session{Counter: c, Random: uint32(r)}, nil
}

// gossipName is the name under which a session is known to memberlist. A known name at a new address would be refused for
// 40 s and more; a new name is taken at once, and the old one dies out.
func gossipName(id task.NodeID, s Session) string { return string(id) + "/" + s.String() }

// parseGossipName splits it again; false for a name that no lanjobs node has.
func parseGossipName(name string) (task.NodeID, Session, bool) {
	id, text, ok := strings.Cut(name, "/")
	if !ok || id == "" {
		return "", Session{}, false
	}
	s, err := ParseSession(text)
	return task.NodeID(id), s, err == nil
}
