package runner

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lanjobs/task"
)

// keptLog is all files of one attempt's output, or a pack.
type keptLog struct {
	x     task.ExecutionID // "" = a pack
	files []string
	bytes int64
	last  time.Time // of writing, wall clock: only the age for housekeeping hangs on it
}

// packYoung: a pack that was written to a moment ago may be written to again.
const packYoung = 10 * time.Minute

// Sweep removes logs of ended attempts: those older than keepAge, then the oldest until at most keepBytes remain.
func (r *Runner) Sweep(keepBytes int64, keepAge time.Duration) error {
	logs, err := listLogs(r.logDir())
	if err != nil {
		return err
	}
	now := r.clock.Wall()
	logs = slices.DeleteFunc(logs, func(l keptLog) bool {
		return l.x == "" && now.Sub(l.last) < packYoung || l.x != "" && r.isRunning(l.x)
	})
	var errs []error
	for _, l := range expendable(logs, keepBytes, now, keepAge) {
		for _, name := range l.files {
			errs = append(errs, os.Remove(filepath.Join(r.logDir(), name)))
		}
	}
	return errors.Join(errs...)
}

// clockJump: no wall clock that is right shows a pause of so long between two logs of a machine that works. Its clock was wrong, is
// wrong, or it was off; in none of these cases do the older ones go by their age all at once.
const clockJump = 365 * 24 * time.Hour

// expendable chooses what goes. Ages count from now; those of logs before a jump count from the latest of them.
func expendable(logs []keptLog, keepBytes int64, now time.Time, keepAge time.Duration) []keptLog {
	slices.SortFunc(logs, func(a, b keptLog) int { return cmp.Or(b.last.Compare(a.last), cmp.Compare(a.x, b.x)) }) // newest first
	var out []keptLog
	var total int64
	before := now
	for _, l := range logs {
		if before.Sub(l.last) > clockJump {
			now = l.last
		}
		before = l.last
		total += l.bytes
		if total > keepBytes || now.Sub(l.last) > keepAge {
			out = append(out, l)
		}
	}
	return out
}

func listLogs(dir string) ([]keptLog, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	byID := map[string]*keptLog{}
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), ".")
		isPack := strings.HasPrefix(e.Name(), packPrefix)
		if isPack {
			id = e.Name()
		}
		info, err := e.Info()
		if err != nil {
			continue // removed meanwhile
		}
		l := byID[id]
		if l == nil {
			l = &keptLog{}
			if !isPack {
				l.x = task.ExecutionID(id)
			}
			byID[id] = l
		}
		l.files = append(l.files, e.Name())
		l.bytes += info.Size()
		if info.ModTime().After(l.last) {
			l.last = info.ModTime()
		}
	}
	out := make([]keptLog, 0, len(byID))
	for _, l := range byID {
		out = append(out, *l)
	}
	return out, nil
}
