package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"lanjobs/fsm"
	"lanjobs/task"
)

// A newer lanjobs may have written what this one does not know: a field that is skipped where it should decide something would
// make this machine part from the others. So all that is stored says its form, and an older binary refuses it before it has
// changed anything (R47).

// newerData is what a person is told.
func newerData(version, dir, by, what string) *task.Problem {
	if by == "" {
		by = "a newer version"
	} else {
		by = "lanjobs " + by
	}
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("this is lanjobs %s, and %s was written by %s: %s. Nothing was changed.", version, dir, by, what),
		"Use that version or a newer one here, or upgrade the cluster one minor version at a time: lanjobs help upgrade")
}

// errNewer: something is of a later form than this binary knows.
var errNewer = errors.New("of a later form than this version knows")

// checkForms refuses a folder that holds anything of a later form. The folder's lock is held.
func (m *machine) checkForms() error {
	err := checkReadable(m.storeConfig())
	if !errors.Is(err, fsm.ErrUnknownCommand) {
		return nil // damage is judged where the stores are opened
	}
	return newerData(m.cfg.Version, m.cfg.DataDir, m.store.writtenBy(), fmt.Sprintf("the log of the cluster holds what %s does not know (%v)", m.cfg.Version, err))
}

// checkReadable looks, without changing anything, whether this binary knows all that a start would read: the newest snapshot and
// the entries after it.
func checkReadable(c StoreConfig) error {
	index, err := readableSnapshot(filepath.Join(c.dir(), "snapshots"))
	if err != nil {
		return err
	}
	if info, err := os.Stat(c.file()); err != nil || info.Size() == 0 {
		return nil
	}
	return guarded(func() error { return readableLog(c.file(), index) })
}

// readableSnapshot gives the index of the newest snapshot, 0 without any.
func readableSnapshot(dir string) (newest uint64, err error) {
	metas, err := filepath.Glob(filepath.Join(dir, "*", "meta.json"))
	if err != nil {
		return 0, err
	}
	folder := ""
	for _, name := range metas {
		var meta struct{ Index uint64 }
		if text, err := os.ReadFile(name); err == nil && json.Unmarshal(text, &meta) == nil && meta.Index > newest && filepath.Ext(filepath.Dir(name)) != ".tmp" {
			newest, folder = meta.Index, filepath.Dir(name)
		}
	}
	if folder == "" {
		return 0, nil
	}
	f, err := os.Open(filepath.Join(folder, "state.bin"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make([]byte, 32)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	return newest, fsm.SnapshotReadable(head[:n])
}

// readableLog decodes the entries after a snapshot.
func readableLog(path string, after uint64) error {
	opts := boltOptions()
	opts.ReadOnly = true
	log, err := raftboltdb.New(raftboltdb.Options{Path: path, BoltOptions: opts, MsgpackUseNewTimeFormat: true})
	if err != nil {
		return err
	}
	defer log.Close()
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := log.LastIndex()
	if err != nil {
		return err
	}
	for i := max(first, after+1, 1); i <= last; i++ {
		var e raft.Log
		if err := log.GetLog(i, &e); err != nil {
			return err
		}
		if e.Type != raft.LogCommand {
			continue
		}
		if _, err := fsm.DecodeBatch(e.Data); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return nil
}
