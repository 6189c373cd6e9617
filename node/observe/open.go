package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// oldFile is a file that is no longer written: the events from its first index up to the first of the next file.
type oldFile struct {
	name  string
	first uint64
	since time.Time // when it was put aside, in its name
}

const nameTime = "20060102T150405Z"

func oldName(first uint64, now time.Time) string {
	return fmt.Sprintf("audit-%020d-%s.jsonl", first, now.UTC().Format(nameTime))
}

// parseOldName reads what oldName made; false for any other file.
func parseOldName(name string) (oldFile, bool) {
	rest, ok1 := strings.CutPrefix(name, "audit-")
	rest, ok2 := strings.CutSuffix(rest, ".jsonl")
	index, at, ok3 := strings.Cut(rest, "-")
	first, err1 := strconv.ParseUint(index, 10, 64)
	since, err2 := time.Parse(nameTime, at)
	return oldFile{name: name, first: first, since: since}, ok1 && ok2 && ok3 && err1 == nil && err2 == nil
}

// openFile finds the files of an audit log and where it ended.
func openFile(c Config) (*file, Position, error) {
	f := &file{cfg: c, born: c.Clock.Wall()}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, Position{}, err
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil, Position{}, err
	}
	for _, e := range entries {
		if o, ok := parseOldName(e.Name()); ok {
			f.old = append(f.old, o)
		}
	}
	slices.SortFunc(f.old, func(a, b oldFile) int { return strings.Compare(a.name, b.name) })
	if n := len(f.old); n > 0 {
		f.born = f.old[n-1].since
	}
	last, err := f.recover()
	f.index = last.Index
	return f, last, err
}

// recover makes the current file end with a whole line and gives the position that the log has reached.
func (f *file) recover() (Position, error) {
	path := filepath.Join(f.cfg.Dir, currentName)
	s, err := inspect(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return f.lastOld()
	case err != nil:
		return Position{}, err
	}
	if len(f.old) == 0 && s.modified.Before(f.born) {
		f.born = s.modified
	}
	if s.damaged {
		f.cfg.Log.Warn("audit log is damaged; it is put aside and a new file begun", "path", path, "bytes_good", s.good)
		if err := f.setAside(path, s); err != nil {
			return Position{}, err
		}
	} else {
		f.size, f.first = s.good, s.first
	}
	if s.last == (Position{}) {
		return f.lastOld()
	}
	return s.last, nil
}

// setAside keeps a damaged file: as an old one if any line of it can be read.
func (f *file) setAside(path string, s survey) error {
	now := f.cfg.Clock.Wall()
	if s.first == 0 {
		return os.Rename(path, path+".damaged-"+now.UTC().Format(nameTime))
	}
	return f.aside(s.first, now)
}

// lastOld is the last position in the newest old file that has one.
func (f *file) lastOld() (Position, error) {
	for i := len(f.old) - 1; i >= 0; i-- {
		file, err := os.Open(filepath.Join(f.cfg.Dir, f.old[i].name))
		if err != nil {
			return Position{}, err
		}
		var last Position
		found := false
		err = eachLineBackward(file, func(line []byte) bool {
			last, found = parsePosition(line)
			return !found
		})
		err = errors.Join(err, file.Close())
		if found || err != nil {
			return last, err
		}
	}
	return Position{}, nil
}

// survey is what a file holds.
type survey struct {
	first    uint64   // index of its first event
	last     Position // of the last event before the first damage
	good     int64    // bytes up to there
	damaged  bool     // whole lines follow the damage; else it is only a torn end
	modified time.Time
}

// inspect reads a whole file. A line counts only if everything before it is sound: after a power cut any part of what was
// not synced may be missing.
func inspect(path string) (s survey, err error) {
	file, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return s, err
	}
	s.modified = info.ModTime()
	r := newLineReader(file, 0)
	broken := false
	for {
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		at, ok := parsePosition(line)
		ok = ok && json.Valid(line)
		if ok && s.first == 0 {
			s.first = at.Index
		}
		switch {
		case broken:
			s.damaged = s.damaged || ok
		case ok && s.last.Less(at):
			s.last, s.good = at, r.offset
		default:
			broken = true
		}
	}
}

// parsePosition reads the beginning of a line that appendLine wrote.
func parsePosition(line []byte) (Position, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"index":`))
	if !ok || !bytes.HasSuffix(line, []byte("}")) {
		return Position{}, false
	}
	index, rest, ok1 := number(rest)
	rest, ok2 := bytes.CutPrefix(rest, []byte(`,"n":`))
	n, rest, ok3 := number(rest)
	ok = ok1 && ok2 && ok3 && len(rest) > 0 && (rest[0] == ',' || rest[0] == '}')
	return Position{index, int(n)}, ok
}

func number(b []byte) (v uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && i < 19 && '0' <= b[i] && b[i] <= '9' {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	return v, b[i:], i > 0
}
