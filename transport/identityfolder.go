package transport

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"lanjobs/task"
)

// Two nodes under one id would both hold the same leases and vote twice; where the cluster is one machine only, each would lead it.
// A copy on another machine shows in the machine's fingerprint, one on the same machine in the place that it names: a folder that
// was moved has left that place, a copied one has not.

// InPlace tells whether the identity was last used in this data folder. Save it if not: the folder was moved.
func (i *Identity) InPlace(dataDir string) bool { return i.Folder == wholePath(dataDir) }

// copyOf gives the folder on this machine that dataDir is a copy of, "" if it is the only one.
func (i *Identity) copyOf(dataDir string) string {
	if i.Folder == "" || i.InPlace(dataDir) {
		return ""
	}
	here, err := os.Stat(dataDir)
	there, err2 := os.Stat(i.Folder)
	if err != nil || err2 != nil || os.SameFile(here, there) { // the same by another way: a mount, a link
		return ""
	}
	text, err := os.ReadFile(filepath.Join(i.Folder, identityFile))
	var other Identity
	if err != nil || json.Unmarshal(text, &other) != nil || other.NodeID != i.NodeID {
		return ""
	}
	return i.Folder
}

// wholePath is a folder's absolute path without links, as far as that can be told.
func wholePath(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

func copied(dataDir string, i *Identity) *task.Problem {
	return task.NewProblem(task.ErrConflict,
		fmt.Sprintf("this data folder was copied from another machine: %s is node %q (%s), and a node runs on one machine only.", dataDir, i.Name, i.NodeID),
		"As a node of its own: set this copy aside, or use another folder with --data-dir, then lanjobs join MACHINE")
}

func copiedHere(dataDir, original string, i *Identity) *task.Problem {
	return task.NewProblem(task.ErrConflict,
		fmt.Sprintf("this data folder is a copy: %s and %s are both node %q (%s), and a node has one folder only.", dataDir, original, i.Name, i.NodeID),
		"If "+original+" is given up, rename or remove it, then try again. As a node of its own: use another folder with --data-dir, then lanjobs join MACHINE")
}
