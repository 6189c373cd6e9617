package node

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport"
)

// ErrAmnesia: the Raft store does not hold what this node once acknowledged. A node that votes on with such a store can make a
// committed grant disappear, so it must come back as a new one (I5, I15).
var ErrAmnesia = errors.New("this node's memory of the cluster is lost")

// AmnesiaReason says what is wrong with the store.
type AmnesiaReason string

// The reasons.
const (
	ReasonMissing AmnesiaReason = "missing"          // there is none, or an empty file
	ReasonOther   AmnesiaReason = "another store"    // another node's, or made anew under this one's name
	ReasonBehind  AmnesiaReason = "behind"           // older than what this node once had: a copy or a backup
	ReasonDamaged AmnesiaReason = "damaged"          // it cannot be read
	ReasonNoMark  AmnesiaReason = "without its mark" // nothing tells whether it is whole
)

// AmnesiaError is an ErrAmnesia with its details, for a person.
type AmnesiaError struct {
	Reason AmnesiaReason
	Detail string
	Dir    string
}

func (e *AmnesiaError) Error() string {
	return fmt.Sprintf("%v: the Raft store in %s is %s (%s)", ErrAmnesia, e.Dir, e.Reason, e.Detail)
}

// Unwrap makes it an ErrAmnesia.
func (e *AmnesiaError) Unwrap() error { return ErrAmnesia }

func (c StoreConfig) amnesia(r AmnesiaReason, detail string) error {
	return &AmnesiaError{Reason: r, Detail: detail, Dir: c.dir()}
}

// Keys in the stable store: Raft's own, and the name tag by which a store made anew is told from the old one.
var (
	keyTerm  = []byte("CurrentTerm")
	keyNode  = []byte("lanjobs.node")
	keyStore = []byte("lanjobs.store")
)

// storeMark stands beside the Raft folder, in a file of its own: whose store it is, and how far it had come at the last start,
// snapshot or stop. The index is one that was committed: the log's end may be rolled back by a new leader, what is
// committed never is.
type storeMark struct {
	Node  task.NodeID `json:"node"`
	Store string      `json:"store"`
	Term  uint64      `json:"term"`
	Index uint64      `json:"index"`
}

func (c StoreConfig) markFile() string { return filepath.Join(c.DataDir, "raft.mark") }

// readMark gives nil if there is none.
func readMark(c StoreConfig) (*storeMark, error) {
	b, err := os.ReadFile(c.markFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("raft store: %w", err)
	}
	var m storeMark
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, c.amnesia(ReasonNoMark, fmt.Sprintf("%s is not readable: %v", c.markFile(), err))
	}
	return &m, nil
}

// checkPresence looks for the file before bbolt does: bbolt takes an empty one for a new store without a word.
func checkPresence(c StoreConfig, mark *storeMark) (fresh bool, err error) {
	info, err := os.Stat(c.file())
	switch {
	case err == nil && info.Size() > 0:
		return false, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return false, fmt.Errorf("raft store: %w", err)
	case mark != nil && err != nil:
		return false, c.amnesia(ReasonMissing, "there is no raft.db")
	case mark != nil:
		return false, c.amnesia(ReasonMissing, "raft.db is empty")
	}
	// Snapshots without a log have lost the term and the vote (raft#395).
	if left, _ := filepath.Glob(filepath.Join(c.dir(), "snapshots", "*", "meta.json")); len(left) > 0 {
		return false, c.amnesia(ReasonMissing, "there are snapshots but no raft.db")
	}
	return true, nil
}

// checkMark compares a store with its mark; a new store gets its name tag and mark.
func (s *RaftStores) checkMark(mark *storeMark, have storeState) error {
	switch {
	case mark == nil && (have.last > 0 || have.term > 0):
		return s.amnesia(ReasonNoMark, s.markFile()+" is missing")
	case mark == nil:
		return s.tag()
	case have.id != mark.Store:
		return s.amnesia(ReasonOther, fmt.Sprintf("store %q, not %q", have.id, mark.Store))
	case have.node != string(s.Self) || mark.Node != s.Self:
		return s.amnesia(ReasonOther, fmt.Sprintf("of node %q, this is %q", have.node, s.Self))
	case have.term < mark.Term || have.last < mark.Index:
		return s.amnesia(ReasonBehind, fmt.Sprintf("term %d, index %d; it once had term %d, index %d", have.term, have.last, mark.Term, mark.Index))
	}
	s.mark = *mark
	return s.Mark(have.term, have.snapshot)
}

// tag names a new store. The mark comes last: without it an empty store counts as new, whatever it holds by then.
func (s *RaftStores) tag() error {
	id := rand.Text()
	// bbolt syncs its file, not the folder that names it.
	if err := errors.Join(s.Store.Set(keyNode, []byte(s.Self)), s.Store.Set(keyStore, []byte(id)), s.tagGeneration(), transport.SyncDir(s.dir())); err != nil {
		return fmt.Errorf("name the new raft store: %w", err)
	}
	return s.writeMark(storeMark{Node: s.Self, Store: id})
}

// Mark notes how far the store has come: its term and an index known to be committed. It is called at start, at each snapshot
// and at a clean stop; it syncs, and does nothing if nothing is new.
func (s *RaftStores) Mark(term, committed uint64) error {
	s.marking.Lock()
	defer s.marking.Unlock()
	m := s.mark
	m.Term, m.Index = max(m.Term, term), max(m.Index, committed)
	if m == s.mark {
		return nil
	}
	return s.writeMark(m)
}

// writeMark is called with marking held, or before anybody else knows the stores.
func (s *RaftStores) writeMark(m storeMark) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := transport.WriteFile(s.markFile(), b); err != nil {
		return fmt.Errorf("mark the raft store: %w", err)
	}
	s.mark = m
	return nil
}

// markingSnapshots marks the store at each snapshot, own or installed.
type markingSnapshots struct {
	raft.SnapshotStore
	stores *RaftStores
}

func (m markingSnapshots) Create(v raft.SnapshotVersion, index, term uint64, c raft.Configuration, cIndex uint64, t raft.Transport) (raft.SnapshotSink, error) {
	sink, err := m.SnapshotStore.Create(v, index, term, c, cIndex, t)
	if err != nil {
		return nil, err
	}
	return &markingSink{sink, func() error { return m.stores.Mark(term, index) }}, nil
}

type markingSink struct {
	raft.SnapshotSink
	mark func() error
}

func (m *markingSink) Close() error {
	if err := m.SnapshotSink.Close(); err != nil {
		return err
	}
	return m.mark()
}
