package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lanjobs/transport"
)

// asideKept is how many lost Raft folders are kept for a person to look at.
const asideKept = 2

// SetAside moves the Raft folder and its mark out of the way, to raft.lost-N, and keeps the last two such folders. The node must
// take a new id before it joins again.
func SetAside(dataDir string) (string, error) {
	numbers, err := asideNumbers(dataDir)
	if err != nil {
		return "", fmt.Errorf("set the raft store aside: %w", err)
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	c := StoreConfig{DataDir: dataDir}
	to := asideDir(dataDir, next)
	if err := os.Rename(c.dir(), to); errors.Is(err, os.ErrNotExist) {
		err = os.MkdirAll(to, 0o700)
		if err != nil {
			return "", fmt.Errorf("set the raft store aside: %w", err)
		}
	} else if err != nil {
		return "", fmt.Errorf("set the raft store aside: %w", err)
	}
	// The folder first: a mark without a folder is still amnesia, a folder without its mark too.
	if err := os.Rename(c.markFile(), filepath.Join(to, "raft.mark")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("set the raft store aside: %w", err)
	}
	for _, n := range numbers[:max(0, len(numbers)+1-asideKept)] {
		if err := os.RemoveAll(asideDir(dataDir, n)); err != nil {
			return "", fmt.Errorf("delete an old raft store: %w", err)
		}
	}
	return to, transport.SyncDir(dataDir)
}

func asideDir(dataDir string, n int) string {
	return filepath.Join(dataDir, fmt.Sprintf("raft.lost-%d", n))
}

// asideNumbers lists the folders set aside so far, oldest first.
func asideNumbers(dataDir string) ([]int, error) {
	entries, err := os.ReadDir(dataDir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if text, ok := strings.CutPrefix(e.Name(), "raft.lost-"); ok {
			if n, err := strconv.Atoi(text); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
