package transport

import (
	"errors"
	"io/fs"
	"os"
)

// ownFolder only looks whether the folder is there: data folders lie in the user's profile, which others cannot write to.
func ownFolder(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return ErrNoNode
	}
	return nil
}
