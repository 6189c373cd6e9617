package observe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"lanjobs/task"
)

// file is the log as it lies on disk: the file being written, the old ones beside it, and the lines on their way there.
// The caller of its methods holds Audit.writing, but for open.
type file struct {
	cfg Config

	names  sync.RWMutex // held for writing while files change their names; guards f's name, first and old
	first  uint64       // index of the first event in the current file, 0 = it has none
	old    []oldFile    // oldest first
	f      *os.File     // nil: to be opened
	size   int64        // of the current file's whole lines
	torn   bool         // something that is no whole line follows them
	named  bool         // names changed since the last sync
	born   time.Time    // when the current file was begun, this machine's wall clock
	buf    []byte       // whole lines
	stamp  stamp
	bufTop uint64 // index of the first event in buf
	index  uint64 // of the event added last

	wrote   time.Duration // Awake() of the last write tried
	refused error         // by the disk, at the last try
	rotate  time.Duration // not before
	lost    lost
}

// lost are events that the disk refused and memory had no room for.
type lost struct {
	n           int
	first, last Position
	wall        int64
}

const (
	currentName = "audit.jsonl"
	rotateRetry = time.Minute
)

// stale tells whether lines have waited long enough for a write without a pause.
func (f *file) stale() bool {
	return len(f.buf) > 0 && f.cfg.Clock.Awake()-f.wrote >= flushEvery
}

// add puts one event's line among those to be written.
func (f *file) add(e *task.Event) {
	if e.Index != f.index { // an entry's events stay together: a file begins with a new index
		f.rotateIfDue()
	}
	f.index = e.Index
	if len(f.buf) >= flushBytes && (f.refused == nil || f.stale()) {
		_, _ = f.flush() // told in the log; the lines are still here
	}
	if f.lost.n > 0 || len(f.buf) >= maxPending {
		f.lose(e)
		return
	}
	if len(f.buf) == 0 {
		f.bufTop = e.Index
	}
	f.buf = f.stamp.appendLine(f.buf, e)
}

func (f *file) lose(e *task.Event) {
	if f.lost.n == 0 {
		f.lost.first = At(e)
	}
	f.lost.n++
	f.lost.last, f.lost.wall = At(e), e.Wall
}

// flush writes the lines that wait. wrote tells that there is something new to read. After an error they still wait.
func (f *file) flush() (wrote bool, err error) {
	if len(f.buf) == 0 {
		return false, nil
	}
	f.wrote = f.cfg.Clock.Awake()
	if err := f.write(f.buf); err != nil {
		if f.refused == nil {
			f.cfg.Log.Error("audit log cannot be written; events wait in memory", "path", f.cfg.Dir, "error", err)
		}
		f.refused = err
		return false, err
	}
	f.names.Lock()
	if f.first == 0 {
		f.first = f.bufTop
	}
	f.names.Unlock()
	f.buf = f.buf[:0]
	if f.refused != nil {
		f.cfg.Log.Info("audit log is written again", "lost", f.lost.n)
	}
	f.refused = nil
	if f.lost.n > 0 {
		f.tellLost()
		_, err = f.flush()
	}
	return true, err
}

// tellLost puts a line in the place of events that are not in the file.
func (f *file) tellLost() {
	l := f.lost
	f.lost = lost{}
	f.bufTop = l.last.Index
	f.buf = f.stamp.appendLine(f.buf, &task.Event{Index: l.last.Index, N: l.last.N, Wall: l.wall, Kind: EventGap,
		Reason: fmt.Sprintf("%d events from %s to %s could not be written: see the audit logs of other members", l.n, l.first, l.last)})
}

// write appends to the current file. What was written only in part is taken back: half a line would spoil the next.
func (f *file) write(lines []byte) error {
	if f.f == nil {
		if err := f.reopen(); err != nil {
			return err
		}
	}
	if f.torn {
		if err := f.f.Truncate(f.size); err != nil {
			return err
		}
		f.torn = false
	}
	n, err := f.f.Write(lines)
	if err != nil {
		f.torn = n > 0
		return err
	}
	f.size += int64(n)
	return nil
}

func (f *file) sync() error {
	if f.f == nil {
		return nil
	}
	if err := f.f.Sync(); err != nil {
		return err
	}
	if f.named {
		f.named = false
		syncDir(f.cfg.Dir)
	}
	return nil
}

// syncDir makes new names last through a power cut, where the system can: Windows does it by itself.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // refused by some file systems; then there is nothing more to do
		_ = d.Close()
	}
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}

// reopen opens the current file for appending.
func (f *file) reopen() error {
	file, err := os.OpenFile(filepath.Join(f.cfg.Dir, currentName), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.f, f.torn, f.named = file, info.Size() > f.size, true
	return nil
}

// rotateIfDue begins a new file when the current one is large or old enough. A failure (a reader has it open, on Windows)
// changes nothing but the moment of the next try.
func (f *file) rotateIfDue() {
	now := f.cfg.Clock.Wall()
	if now.Before(f.born) {
		f.born = now // the clock was set back
	}
	full := f.size+int64(len(f.buf)) >= f.cfg.MaxBytes
	if f.size == 0 || !full && now.Sub(f.born) < f.cfg.MaxAge || f.cfg.Clock.Awake() < f.rotate {
		return
	}
	if _, err := f.flush(); err != nil {
		return
	}
	if err := f.turn(now); err != nil {
		f.rotate = f.cfg.Clock.Awake() + rotateRetry
		f.cfg.Log.Debug("audit log not rotated", "error", err)
	}
}

// turn puts the current file among the old ones, begins a new one and removes the oldest.
func (f *file) turn(now time.Time) error {
	if err := errors.Join(f.sync(), f.close()); err != nil {
		return err
	}
	f.names.Lock()
	defer f.names.Unlock()
	if err := f.aside(f.first, now); err != nil {
		return err
	}
	f.first, f.size, f.born = 0, 0, now
	for len(f.old) > f.cfg.Keep {
		if err := os.Remove(filepath.Join(f.cfg.Dir, f.old[0].name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // it stays in the list and is tried again
		}
		f.old = f.old[1:]
	}
	return nil
}

// aside gives the current file an old one's name.
func (f *file) aside(first uint64, now time.Time) error {
	o := oldFile{name: oldName(first, now), first: first, since: now}
	if err := os.Rename(filepath.Join(f.cfg.Dir, currentName), filepath.Join(f.cfg.Dir, o.name)); err != nil {
		return err
	}
	f.old = append(f.old[:len(f.old):len(f.old)], o)
	return nil
}
