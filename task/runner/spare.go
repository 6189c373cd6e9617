package runner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// spareDirs keeps private directories that their attempts left empty, for others: making one costs the file system ten times what a
// rename does.
type spareDirs struct {
	dir  string
	mu   sync.Mutex
	free []string
	made int
}

// maxSpares is more than the slots of most nodes.
const maxSpares = 64

func openSpares(dir string) (*spareDirs, error) {
	s := &spareDirs{dir: dir}
	if err := os.RemoveAll(dir); err != nil { // an earlier life's: at most maxSpares empty ones
		return s, err
	}
	return s, os.Mkdir(dir, 0o700)
}

// take makes path a fresh private directory.
func (s *spareDirs) take(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		spare := s.free[n-1]
		s.free = s.free[:n-1]
		if os.Rename(spare, path) == nil {
			return nil
		}
	}
	return os.Mkdir(path, 0o700)
}

// give keeps the directory if it is as fresh as it was, and tells whether it did.
func (s *spareDirs) give(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeDir|0o700 || !empty(path) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) >= maxSpares {
		return false
	}
	s.made++
	spare := filepath.Join(s.dir, strconv.Itoa(s.made))
	if os.Rename(path, spare) != nil {
		return false
	}
	s.free = append(s.free, spare)
	return true
}

func empty(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer closeQuietly(d)
	_, err = d.Readdirnames(1)
	return errors.Is(err, io.EOF)
}
