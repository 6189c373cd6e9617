//go:build unix

package runner

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const usersSupported = true

// giveTree makes a directory and all in it the owner's.
func (o owner) giveTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return o.give(path)
	})
}

// credential is what the child becomes before it runs anything.
func (u *taskUser) credential() *syscall.Credential {
	if u == nil {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
}

// may tells whether a file's mode gives the user a right: 4 = read, 1 = enter or execute. Access lists beyond the mode do not count.
func (u *taskUser) may(info fs.FileInfo, right fs.FileMode) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case !ok:
		return false
	case st.Uid == u.UID:
		return mode&(right<<6) != 0
	case st.Gid == u.GID || slices.Contains(u.Groups, st.Gid):
		return mode&(right<<3) != 0
	}
	return mode&right != 0
}

// mayRead tells whether the user could read a file by itself: the file, and every directory on the way.
func (u *taskUser) mayRead(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true // reading it fails with the better words
	}
	info, err := os.Stat(real)
	if err != nil || !u.may(info, 4) {
		return false
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(real)} {
		if u.barred(dir) != "" {
			return false
		}
	}
	return true
}

// barred is the first directory on the way to one, itself included, that the user may not enter; "" = none.
func (u *taskUser) barred(dir string) string {
	if parent := filepath.Dir(dir); parent != dir {
		if at := u.barred(parent); at != "" {
			return at
		}
	}
	if info, err := os.Stat(dir); err == nil && !u.may(info, 1) {
		return dir
	}
	return ""
}

// barredAt is barred for the folder above the node's data folder: that one and what is in it are opened by the node itself.
func (u *taskUser) barredAt(runnerDir string) string {
	return u.barred(filepath.Dir(filepath.Dir(runnerDir)))
}

// openToUsers lets other users pass through the runner's folders to what is theirs. They can list none of them.
func (r *Runner) openToUsers() error {
	for _, dir := range []string{r.cfg.Dir, filepath.Join(r.cfg.Dir, "attempt"), r.sockets} {
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
	}
	return nil
}
