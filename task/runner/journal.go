package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"lanjobs/task"
)

// journal is a guard's memory on disk: what it started and how it ended, until the agent has forgotten it. One process
// writes it: the guard while it lives, after that the agent. It is appended without sync: it must survive the death of agent
// and guard, while a power cut ends the tasks themselves. Lines:
//
//	G {hello}        the guard that writes it
//	S x {record}     x was taken on; record is the agent's, opaque here
//	E x {exit}       x has ended
//	F x              x is forgotten
type journal struct {
	path string
	file *os.File
	size int64
	live map[task.ExecutionID]*journalEntry
	head []byte
	torn bool // the last line is incomplete: the disk was full
}

type journalEntry struct {
	record []byte
	exit   *exitRecord
}

// journalSlack is how much of a journal may be history before it is written anew with what is still live.
const journalSlack = 1 << 20

func createJournal(path string, h *hello) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	card, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	j := &journal{path: path, file: f, live: map[task.ExecutionID]*journalEntry{}, head: fmt.Appendf(nil, "G %s\n", card)}
	return j, j.append(j.head)
}

// openJournal reads a dead guard's journal and goes on writing it. A last line cut short by the guard's death is dropped.
func openJournal(path string) (*journal, *hello, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{path: path, file: f, live: map[task.ExecutionID]*journalEntry{}}
	h := &hello{}
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, errors.Join(err, f.Close())
		}
		j.size += int64(len(line))
		j.replay(bytes.TrimSuffix(line, []byte("\n")), h)
	}
	if err := f.Truncate(j.size); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return j, h, nil
}

func (j *journal) replay(line []byte, h *hello) {
	kind, rest, _ := bytes.Cut(line, []byte(" "))
	id, body, _ := bytes.Cut(rest, []byte(" "))
	x := task.ExecutionID(id)
	switch string(kind) {
	case "G":
		j.head = append(bytes.Clone(line), '\n')
		_ = json.Unmarshal(rest, h) // a card that cannot be read only means that the guard cannot be asked
	case "S":
		j.live[x] = &journalEntry{record: bytes.Clone(body)}
	case "E":
		var rec exitRecord
		if e := j.live[x]; e != nil && json.Unmarshal(body, &rec) == nil {
			e.exit = &rec
		}
	case "F":
		delete(j.live, x)
	}
}

func (j *journal) started(x task.ExecutionID, record []byte) error {
	j.live[x] = &journalEntry{record: record}
	return j.append(startLine(x, record))
}

func (j *journal) ended(x task.ExecutionID, rec *exitRecord) error {
	if e := j.live[x]; e != nil {
		e.exit = rec
	}
	return j.append(exitLine(x, rec))
}

func (j *journal) forget(x task.ExecutionID) error {
	if j.live[x] == nil {
		return nil
	}
	delete(j.live, x)
	var failed error
	if j.size > journalSlack && j.size > 2*j.liveBytes() {
		if failed = j.rewrite(); failed == nil {
			return nil
		}
	}
	return errors.Join(failed, j.append(fmt.Appendf(nil, "F %s\n", x)))
}

func (j *journal) append(line []byte) error {
	if err := j.reopen(); err != nil {
		return err
	}
	if j.torn {
		line = append([]byte("\n"), line...)
	}
	n, err := j.file.Write(line)
	j.size += int64(n)
	j.torn = n < len(line) && (n > 0 || j.torn)
	return err
}

// reopen opens the file again if rewrite could not.
func (j *journal) reopen() (err error) {
	if j.file == nil {
		j.file, err = openToAppend(j.path)
	}
	return err
}

// openToAppend gives no file with an error.
func openToAppend(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
}

func (j *journal) liveBytes() int64 {
	n := 0
	for _, e := range j.live {
		n += len(e.record)
	}
	return int64(n)
}

// rewrite replaces the file in one step, so that a death in the middle leaves the old one. If it fails the old one is written on.
func (j *journal) rewrite() error {
	buf := bytes.Clone(j.head)
	for x, e := range j.live {
		buf = append(buf, startLine(x, e.record)...)
		if e.exit != nil {
			buf = append(buf, exitLine(x, e.exit)...)
		}
	}
	next := j.path + unfinished
	err := os.WriteFile(next, buf, 0o600)
	if err == nil {
		if j.file != nil { // Windows replaces no open file
			_ = j.file.Close() // written without buffer: nothing left to lose
			j.file = nil
		}
		err = os.Rename(next, j.path)
	}
	if err != nil {
		_ = os.Remove(next)
		return err
	}
	j.size, j.torn = int64(len(buf)), false
	return j.reopen()
}

// close ends writing; a journal that holds nothing any more is removed.
func (j *journal) close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	if len(j.live) == 0 {
		err = errors.Join(err, os.Remove(j.path))
	}
	return err
}

func startLine(x task.ExecutionID, record []byte) []byte {
	return fmt.Appendf(nil, "S %s %s\n", x, strings.ReplaceAll(string(record), "\n", " "))
}

func exitLine(x task.ExecutionID, rec *exitRecord) []byte {
	body, _ := json.Marshal(rec) // plain fields: cannot fail
	return fmt.Appendf(nil, "E %s %s\n", x, body)
}
