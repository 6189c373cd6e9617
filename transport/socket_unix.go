//go:build unix

package transport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ownFolder refuses a folder for the socket in which somebody else could put a socket of theirs: the short paths lie in folders
// where everybody may make one of that name first. Root may use a user's.
func ownFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoNode
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (%w)", ErrSocketPermission, err)
	case err != nil:
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if uid := os.Getuid(); uid != 0 && int(st.Uid) != uid {
		return fmt.Errorf("%w: %s", ErrSocketPermission, dir)
	}
	return nil
}
