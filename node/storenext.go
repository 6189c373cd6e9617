package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"

	"lanjobs/transport"
)

// A Raft store belongs to one history of its cluster (transport.GenerationNumber). identity.json says which one counts: writing
// its generation is the moment at which a machine changes over, and what the stores lack of that is done at the next opening.
//
//	the store is of an earlier history, nothing waits beside it   it is set aside, an empty one begins: the log comes from the others
//	the store is of an earlier history, raft.next is of this one   it is set aside, raft.next takes its place: a recovery
//	raft.next is of any other history                              a recovery that was never begun: it is deleted

// keyGeneration is the tag of a store's history; a store without one is of the first.
var keyGeneration = []byte("lanjobs.generation")

func (c StoreConfig) nextDir() string { return filepath.Join(c.DataDir, "raft.next") }

// readyFile says, as the last thing written, that a prepared history is whole, and of which generation.
const readyFile = "ready"

// adoptNext puts a prepared history in the place of the store, if this machine has changed over to it. It may be cut at any
// point and is then finished at the next opening.
func (c StoreConfig) adoptNext() error {
	text, err := os.ReadFile(filepath.Join(c.nextDir(), readyFile))
	generation, bad := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	switch {
	case errors.Is(err, os.ErrNotExist) || err == nil && (bad != nil || generation != c.Generation):
		if err := os.RemoveAll(c.nextDir()); err != nil {
			return fmt.Errorf("delete a history that was not begun: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("raft store: %w", err)
	}
	next := StoreConfig{DataDir: c.nextDir()}
	if _, err := os.Stat(next.dir()); err == nil {
		if _, err := os.Stat(c.dir()); err == nil {
			if _, err := SetAside(c.DataDir); err != nil {
				return err
			}
		}
		if err := os.Rename(next.dir(), c.dir()); err != nil {
			return fmt.Errorf("begin the new history: %w", err)
		}
	}
	if err := os.Rename(next.markFile(), c.markFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("begin the new history: %w", err)
	}
	if err := transport.SyncDir(c.DataDir); err != nil {
		return fmt.Errorf("begin the new history: %w", err)
	}
	return os.RemoveAll(c.nextDir())
}

// errEarlier: the store is of an earlier history than this machine.
var errEarlier = errors.New("the raft store is of an earlier generation of the cluster")

// checkGeneration compares the store's tag with what this machine is.
func (s *RaftStores) checkGeneration() error {
	tag, err := optional(s.Store.Get(keyGeneration))
	if err != nil {
		return s.amnesia(ReasonDamaged, err.Error())
	}
	has := uint64(1)
	if len(tag) == 8 {
		has = max(binary.BigEndian.Uint64(tag), 1)
	}
	switch want := max(s.Generation, 1); {
	case has < want:
		return errEarlier
	case has > want:
		return s.amnesia(ReasonOther, fmt.Sprintf("of generation %d, this node is of %d", transport.GenerationNumber(has), transport.GenerationNumber(want)))
	}
	return nil
}

// tagGeneration marks a new store; one of the first history carries no tag, as ever.
func (s *RaftStores) tagGeneration() error {
	if s.Generation <= 1 {
		return nil
	}
	return s.Store.Set(keyGeneration, binary.BigEndian.AppendUint64(nil, s.Generation))
}

// writeNext prepares a history for the node of a data folder that is not running: a log that begins with a state as of index and
// term, and has this node as its one voter. c.Generation is the new one. Nothing counts before the identity says so.
func writeNext(c StoreConfig, state raft.FSMSnapshot, index, term uint64) (err error) {
	if err := os.RemoveAll(c.nextDir()); err != nil {
		return fmt.Errorf("prepare a new history: %w", err)
	}
	next := c
	next.DataDir = c.nextDir()
	stores, err := OpenStores(next)
	if err != nil {
		return fmt.Errorf("prepare a new history: %w", err)
	}
	err = errors.Join(stores.begin(state, index, term), stores.Close())
	if err == nil {
		err = transport.WriteFile(filepath.Join(c.nextDir(), readyFile), strconv.AppendUint(nil, c.Generation, 10))
	}
	if err == nil {
		err = transport.SyncDir(c.DataDir)
	}
	if err != nil {
		return fmt.Errorf("prepare a new history: %w", errors.Join(err, os.RemoveAll(c.nextDir())))
	}
	return nil
}

// begin writes the snapshot with which an empty store starts.
func (s *RaftStores) begin(state raft.FSMSnapshot, index, term uint64) error {
	self := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(s.Self), Address: raft.ServerAddress(s.Self)}}}
	// The transport is only asked how to write addresses in a form of long ago.
	_, trans := raft.NewInmemTransport(raft.ServerAddress(s.Self))
	sink, err := s.Snapshots.Create(raft.SnapshotVersionMax, index, term, self, index, trans)
	if err != nil {
		return err
	}
	if err := state.Persist(sink); err != nil { // it cancels the sink itself
		return err
	}
	return s.Store.SetUint64(keyTerm, term)
}
