package runner

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"lanjobs/task"
)

// LogQuery asks for a piece of an attempt's output (R38).
type LogQuery struct {
	Execution task.ExecutionID
	Stream    string // "stdout", "stderr", or "" for both in the order they arrived
	From      int64  // byte offset in that stream; what was dropped counts, markers do not
	Limit     int    // most bytes wanted; 0 = 1 MiB
	Tail      int    // the last so many lines instead of From
	Hold      task.Millis
}

// LogPiece is a piece of output. Where something was dropped between the kept head and tail, Data holds a line that says how
// much, and Next jumps over it.
type LogPiece struct {
	Data []byte
	Next int64 // offset of what follows
	Done bool  // the attempt has ended and nothing follows
}

const (
	logDefaultLimit = 1 << 20
	logPoll         = 100 * time.Millisecond
)

// ReadLog reads output while an attempt runs and after. With Hold it waits that long for more than nothing. An attempt that
// this machine has no log of is task.ErrNotFound.
func (r *Runner) ReadLog(ctx context.Context, q LogQuery) (LogPiece, error) {
	s, ok := map[string]stream{"": streamBoth, "stdout": streamOut, "stderr": streamErr}[q.Stream]
	if !ok {
		return LogPiece{}, fmt.Errorf("stream %q is neither stdout nor stderr: %w", q.Stream, task.ErrInvalid)
	}
	until := r.clock.Awake() + q.Hold.Duration()
	for {
		running := r.isRunning(q.Execution) // asked before reading: what was written up to the end is then seen
		p, err := readLogPiece(r.logDir(), q, s)
		if errors.Is(err, task.ErrNotFound) && running {
			err = nil // nothing printed yet
		}
		p.Done = p.Done && !running
		if err != nil || len(p.Data) > 0 || p.Done || r.clock.Awake() >= until {
			return p, err
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-r.clock.After(logPoll):
		}
	}
}

// readLogPiece reads what the disk has; Done means that the end of it was reached.
func readLogPiece(dir string, q LogQuery, s stream) (LogPiece, error) {
	segments, err := openSegments(dir, q.Execution)
	if err != nil {
		return LogPiece{}, err
	}
	defer closeSegments(segments)
	limit := min(cmp.Or(max(q.Limit, 0), logDefaultLimit), 4*logDefaultLimit)
	if q.Tail <= 0 {
		return copyLog(segments, s, max(q.From, 0), limit)
	}
	end, err := logEnd(segments, s)
	if err != nil {
		return LogPiece{}, err
	}
	p, err := copyLog(segments, s, max(end-int64(limit), 0), 2*limit)
	p.Data = lastLines(p.Data, q.Tail)
	return p, err
}

// segment is one open file of a log, or its part of a pack.
type segment struct {
	src   io.ReadSeeker
	seq   uint64
	start [3]int64
}

func openSegments(dir string, x task.ExecutionID) ([]segment, error) {
	if !plainName(string(x)) {
		return nil, fmt.Errorf("execution id %q: %w", x, task.ErrInvalid)
	}
	base := filepath.Join(dir, string(x))
	var out []segment
	for slot := range 1 + logRing {
		f, err := os.Open(logPath(base, slot))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			closeSegments(out)
			return nil, err
		}
		seg, err := readSegmentHead(f)
		if err != nil { // created a moment ago, header still missing
			_ = f.Close()
			continue
		}
		out = append(out, seg)
	}
	if len(out) == 0 {
		seg, err := openPacked(dir, x)
		if err != nil {
			return nil, fmt.Errorf("output of %s on this machine: %w", x, err)
		}
		return []segment{seg}, nil
	}
	slices.SortFunc(out, func(a, b segment) int { return cmp.Compare(a.seq, b.seq) })
	return out, nil
}

func readSegmentHead(f io.ReadSeeker) (segment, error) {
	var head [logHeader]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return segment{}, err
	}
	if string(head[:len(logMagic)]) != logMagic {
		return segment{}, errors.New("not a log file")
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(head[len(logMagic)+8*i:]) }
	return segment{f, at(0), [3]int64{int64(at(1)), int64(at(2)), int64(at(3))}}, nil
}

func closeSegments(segments []segment) {
	for _, s := range segments {
		if f, ok := s.src.(*os.File); ok {
			closeQuietly(f)
		}
	}
}

// copyLog collects up to limit bytes of a stream from an offset on.
func copyLog(segments []segment, s stream, from int64, limit int) (LogPiece, error) {
	c := logCopy{piece: LogPiece{Next: from}, stream: s, left: int64(limit)}
	for i, seg := range segments {
		if i+1 < len(segments) && segments[i+1].start[s] <= c.piece.Next {
			continue // all of it lies before what is wanted
		}
		if start := seg.start[s]; c.piece.Next < start {
			c.piece.Data = fmt.Appendf(c.piece.Data, "[lanjobs: %d bytes of output not kept]\n", start-c.piece.Next)
			c.piece.Next = start
		}
		full, err := c.segment(seg)
		if err != nil || full {
			return c.piece, err
		}
	}
	c.piece.Done = true
	return c.piece, nil
}

// logCopy is one run of copyLog.
type logCopy struct {
	piece  LogPiece
	stream stream
	left   int64 // bytes still wanted
}

// segment copies from one file and tells whether there is more than was wanted.
func (c *logCopy) segment(seg segment) (full bool, err error) {
	pos := seg.start[c.stream]
	err = eachRecord(seg, c.stream, func(r *bufio.Reader, n int64) error {
		skip := min(max(c.piece.Next-pos, 0), n)
		if _, err := r.Discard(int(skip)); err != nil {
			return err
		}
		want := min(n-skip, c.left)
		if want > 0 {
			at := len(c.piece.Data)
			c.piece.Data = append(c.piece.Data, make([]byte, want)...)
			if _, err := io.ReadFull(r, c.piece.Data[at:]); err != nil {
				c.piece.Data = c.piece.Data[:at] // still being written
				return err
			}
			c.piece.Next += want
			c.left -= want
		}
		pos += n
		if skip+want < n {
			full = true
			return io.EOF
		}
		return nil
	})
	return full, err
}

// eachRecord calls use for every complete record of the stream, with a reader that stands at its n bytes and must be left
// behind them. The end of the file, also in the middle of a record, ends it without an error.
func eachRecord(seg segment, s stream, use func(r *bufio.Reader, n int64) error) error {
	r := bufio.NewReaderSize(seg.src, 64<<10)
	for {
		kind, err := r.ReadByte()
		var n uint64
		if err == nil {
			n, err = binary.ReadUvarint(r)
		}
		if err == nil && (s == streamBoth || s == stream(kind)) {
			err = use(r, int64(n))
		} else if err == nil {
			_, err = r.Discard(int(n))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
