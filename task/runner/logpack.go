package runner

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"lanjobs/task"
)

// Making a file costs more than many a short command. Attempts that end within a moment and print little therefore share files,
// LOGS/pack.<token>.<guard>, each a list of entries:
//
//	length of the execution id as uvarint, the id, length of the log as uvarint, the log as its slot 0 would be
//
// The token in the name is that of its first entry. Tokens grow with time, and only short attempts come here, so the right pack for
// an execution is nearly always the last one whose name is not above it, or the next: no index is needed.
const (
	packPrefix = "pack."
	packSize   = 1 << 20
	packSearch = 8 // packs looked through at most
	// packEntry is how much output an attempt may have to be packed; what is longer, or lives past two polls, gets files of its own.
	packEntry = 8 << 10
)

// logPack is the pack that a guard is filling.
type logPack struct {
	dir, guard string

	mu   sync.Mutex
	file *os.File
	name string
	size int64
	buf  []byte
}

// packPlace is where an attempt's log lies.
type packPlace struct {
	Name string `json:"name"`
	At   int64  `json:"at"`
}

// add appends one attempt's log in one write.
func (p *logPack) add(x task.ExecutionID, log []byte) (packPlace, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil || p.size > packSize {
		if err := p.next(x); err != nil {
			return packPlace{}, err
		}
	}
	p.buf = binary.AppendUvarint(p.buf[:0], uint64(len(x)))
	p.buf = append(p.buf, x...)
	p.buf = binary.AppendUvarint(p.buf, uint64(len(log)))
	p.buf = append(p.buf, log...)
	place := packPlace{p.name, p.size}
	n, err := p.file.Write(p.buf)
	if err != nil {
		if n > 0 { // half an entry would hide all later ones
			err = errors.Join(err, p.file.Truncate(p.size))
		}
		return packPlace{}, err
	}
	p.size += int64(n)
	return place, nil
}

func (p *logPack) next(x task.ExecutionID) error {
	if p.file != nil {
		closeQuietly(p.file)
		p.file = nil
	}
	name := packPrefix + strings.TrimPrefix(string(x), "x") + "." + p.guard
	f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	p.file, p.name, p.size = f, name, info.Size()
	return nil
}

// openPacked finds an attempt's log in the packs.
func openPacked(dir string, x task.ExecutionID) (segment, error) {
	names, err := packsNear(dir, x)
	if err != nil {
		return segment{}, err
	}
	for _, name := range names {
		seg, err := searchPack(filepath.Join(dir, name), x)
		if err == nil || !errors.Is(err, task.ErrNotFound) {
			return seg, err
		}
	}
	return segment{}, task.ErrNotFound
}

// packsNear orders the packs by how likely they hold an execution: the nearest one that began before it, then the nearest that began
// after it, and so on in turns. An attempt may end after one that began later and has opened the next pack, so that its own token
// is lower than that in the name; and of packs that began before it there may be any number, one for each guard there ever was.
func packsNear(dir string, x task.ExecutionID) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	want, _ := packToken(string(x))
	type candidate struct {
		name string
		far  uint64
	}
	var before, after []candidate
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), packPrefix)
		first, _, _ := strings.Cut(rest, ".")
		token, err := packToken(first)
		switch {
		case !ok || err != nil:
		case token <= want:
			before = append(before, candidate{e.Name(), want - token})
		default:
			after = append(after, candidate{e.Name(), token - want})
		}
	}
	nearest := func(a, b candidate) int { return cmp.Compare(a.far, b.far) }
	slices.SortFunc(before, nearest)
	slices.SortFunc(after, nearest)
	var names []string
	for i := range max(len(before), len(after)) {
		for _, list := range [][]candidate{before, after} {
			if i < len(list) && len(names) < packSearch {
				names = append(names, list[i].name)
			}
		}
	}
	return names, nil
}

func packToken(s string) (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(s, "x"), 36, 64)
}

func searchPack(path string, x task.ExecutionID) (segment, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return segment{}, task.ErrNotFound // swept meanwhile
	}
	if err != nil {
		return segment{}, err
	}
	defer closeQuietly(f)
	return findEntry(bufio.NewReaderSize(f, 64<<10), x)
}

// readPlace reads an entry whose place is known.
func readPlace(dir string, p packPlace, x task.ExecutionID) (segment, error) {
	f, err := os.Open(filepath.Join(dir, p.Name))
	if err != nil {
		return segment{}, err
	}
	defer closeQuietly(f)
	if _, err := f.Seek(p.At, io.SeekStart); err != nil {
		return segment{}, err
	}
	return findEntry(bufio.NewReaderSize(f, packEntry), x)
}

// findEntry reads on until the entry of x. An entry cut short ends the search.
func findEntry(r *bufio.Reader, x task.ExecutionID) (segment, error) {
	missing := fmt.Errorf("execution %s: %w", x, task.ErrNotFound)
	for {
		id, err := readCounted(r, 64)
		if err != nil {
			return segment{}, missing
		}
		if string(id) != string(x) {
			if err := skipCounted(r); err != nil {
				return segment{}, missing
			}
			continue
		}
		log, err := readCounted(r, 2*packEntry+logHeader)
		if err != nil {
			return segment{}, missing
		}
		return readSegmentHead(bytes.NewReader(log))
	}
}

func readCounted(r *bufio.Reader, limit int) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > uint64(limit) {
		return nil, task.ErrTooLarge
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

func skipCounted(r *bufio.Reader) error {
	n, err := binary.ReadUvarint(r)
	if err == nil {
		_, err = r.Discard(int(min(n, 2*packSize)))
	}
	return err
}
