package runner

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"lanjobs/task"
)

// An attempt's log is up to 1+logRing files, LOGS/<execution>.<slot>: slot 0 is the head and is never touched again once
// full, the others are a ring with the tail; what fell out of the ring is gone. Each file starts with a header that says where
// in the output it begins, so that byte offsets mean the same before and after something was dropped.
//
//	header  "LJL1", sequence number, then the offsets of both streams together, stdout, stderr; 8 bytes each, big endian
//	record  stream byte, length as uvarint, bytes: whole lines of one stream, in the order they arrived
const (
	logMagic    = "LJL1"
	logHeader   = len(logMagic) + 4*8
	logRing     = 5
	logHeadSize = task.MaxLogBytes / 2
	logRingSize = task.MaxLogBytes / 2 / logRing
	// logMaxLine is the longest line that is kept whole when the other stream speaks in its middle.
	logMaxLine = 64 << 10
)

// stream is one of a command's two outputs, or both.
type stream uint8

const (
	streamBoth stream = iota
	streamOut
	streamErr
)

// logWriter is used by the two readers of an attempt's pipes and by the guard's poll; mu orders them.
type logWriter struct {
	base string // path without the slot
	x    task.ExecutionID
	pack *logPack

	mu      sync.Mutex
	file    *os.File // nil until there is output
	seq     uint64
	size    int64
	offsets [3]uint64 // by stream; streamBoth is the sum
	partial [3]partialLine
	broken  error  // the disk refused; output is counted as lost from then on
	lost    uint64 // bytes
	scratch []byte
	early   []byte // records of the first moment, not in a file yet
	polls   int
	closed  bool
}

// partialLine is the beginning of a line whose end has not been seen.
type partialLine struct {
	held []byte
	age  int  // polls it has waited
	open bool // a part of this line is already in the file
}

// newLogWriter writes nothing before there is something to write.
func newLogWriter(pack *logPack, x task.ExecutionID) *logWriter {
	return &logWriter{base: filepath.Join(pack.dir, string(x)), x: x, pack: pack}
}

// write takes output as it comes and stores its whole lines. It never fails: a full disk must not stop the command.
func (w *logWriter) write(s stream, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.partial[s]
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole == 0 && len(p.held)+len(data) > logMaxLine {
		whole = len(data)
	}
	if whole > 0 {
		w.record(s, p.held, data[:whole])
		p.held = p.held[:0]
	}
	p.held, p.age = append(p.held, data[whole:]...), 0
}

// flushStale stores a line's beginning that has waited for a whole poll, so that a prompt can be read while it stands there. From
// the second poll on an attempt has files of its own.
func (w *logWriter) flushStale() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if w.polls++; w.polls > 1 {
		w.settle()
	}
	for s := streamOut; s <= streamErr; s++ {
		p := &w.partial[s]
		if p.age++; p.age > 1 && len(p.held) > 0 {
			w.record(s, p.held, nil)
			p.held = p.held[:0]
		}
	}
}

// settle moves the records of the first moment into a file; mu is held.
func (w *logWriter) settle() {
	if len(w.early) == 0 || w.file != nil {
		return
	}
	if err := w.open(); err != nil {
		w.broken = err
		return // tried again, see room
	}
}

// close stores what is left. A log exists afterwards even without output: an empty one differs from none. It returns where it was
// packed, nil if it has files of its own.
func (w *logWriter) close() *packPlace {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := streamOut; s <= streamErr; s++ {
		if held := w.partial[s].held; len(held) > 0 {
			w.record(s, held, nil)
		}
	}
	w.noteLoss()
	w.closed = true
	switch {
	case w.file == nil && w.seq > 0:
		return nil // the disk refused a new file
	case w.file == nil:
		place, err := w.pack.add(w.x, w.head(w.early, [3]uint64{}))
		if err != nil {
			w.lose(err, w.offsets[streamBoth])
			return nil
		}
		return &place
	}
	_ = w.file.Close() // written without buffer: nothing left to lose
	return nil
}

// record is called with mu held. Both parts make one record.
func (w *logWriter) record(s stream, a, b []byte) {
	n := len(a) + len(b)
	if w.broken != nil && w.lost > 0 {
		w.noteLoss()
	}
	rec := append(w.scratch[:0], byte(s))
	rec = binary.AppendUvarint(rec, uint64(n))
	rec = append(append(rec, a...), b...)
	w.scratch = rec
	w.put(s, rec, uint64(n))
	last := a
	if len(b) > 0 {
		last = b
	}
	w.partial[s].open = last[len(last)-1] != '\n'
}

func (w *logWriter) put(s stream, rec []byte, n uint64) {
	if w.file == nil && w.seq == 0 && w.polls < 2 && len(w.early)+len(rec) <= packEntry {
		w.early = append(w.early, rec...)
		w.offsets[s] += n
		w.offsets[streamBoth] += n
		return
	}
	if err := w.room(int64(len(rec))); err != nil {
		w.lose(err, n)
		return
	}
	k, err := w.file.Write(rec)
	if err != nil {
		// A record that is only half there would make the rest of the file unreadable.
		if k > 0 {
			err = fmt.Errorf("%w; %w", err, w.file.Truncate(w.size))
		}
		w.lose(err, n)
		return
	}
	w.size += int64(k)
	w.offsets[s] += n
	w.offsets[streamBoth] += n
}

func (w *logWriter) lose(err error, n uint64) {
	w.broken = err
	w.lost += n
}

// noteLoss tries to say in the log itself that a part is missing; once that works the disk takes output again.
func (w *logWriter) noteLoss() {
	if w.lost == 0 {
		return
	}
	text := fmt.Sprintf("[lanjobs: %d bytes of output could not be stored: %v]\n", w.lost, w.broken)
	rec := append(binary.AppendUvarint([]byte{byte(streamErr)}, uint64(len(text))), text...)
	lost := w.lost
	w.broken, w.lost = nil, 0
	w.put(streamErr, rec, uint64(len(text)))
	if w.broken != nil {
		w.lost = lost
	}
}

// room makes sure that a file is open with space for n more bytes. A file ends between lines, unless a line is very long.
func (w *logWriter) room(n int64) error {
	if w.file == nil {
		return w.open()
	}
	limit := int64(logRingSize)
	if w.seq == 0 {
		limit = logHeadSize
	}
	inLine := w.partial[streamOut].open || w.partial[streamErr].open
	if w.size+n <= limit || w.size == int64(logHeader) || inLine && w.size+n <= limit+2*logMaxLine {
		return nil
	}
	_ = w.file.Close() // written without buffer; a network's disk may tell of its trouble only here, and the next file is another
	w.file = nil
	w.seq++
	return w.open()
}

func (w *logWriter) open() error {
	slot := 0
	if w.seq > 0 {
		slot = 1 + int((w.seq-1)%logRing)
	}
	path := logPath(w.base, slot)
	if w.seq > logRing {
		// Removed, not overwritten: whoever reads the old one keeps it. Where that is refused (Windows) he loses it.
		_ = os.Remove(path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	start := w.offsets
	if w.seq == 0 {
		start = [3]uint64{}
	}
	head := w.head(w.early, start)
	if _, err := f.Write(head); err != nil {
		return fmt.Errorf("%w; %w", err, f.Close())
	}
	w.file, w.size, w.early = f, int64(len(head)), nil
	return nil
}

// head is the beginning of a file, with the records that go into it first.
func (w *logWriter) head(first []byte, start [3]uint64) []byte {
	head := append(make([]byte, 0, logHeader+len(first)), logMagic...)
	head = binary.BigEndian.AppendUint64(head, w.seq)
	for _, at := range start {
		head = binary.BigEndian.AppendUint64(head, at)
	}
	return append(head, first...)
}

func logPath(base string, slot int) string { return fmt.Sprintf("%s.%d", base, slot) }
