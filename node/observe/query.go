package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"lanjobs/task"
)

// Query gives the events that a filter asks for, in order. more tells that the limit left some out.
func (a *Audit) Query(ctx context.Context, f Filter) (events []task.Event, more bool, err error) {
	a.writing.Lock()
	a.take()
	a.flush() // what the disk refuses cannot be read yet
	a.writing.Unlock()
	w := f.prepare()
	if f.Tail && f.Limit > 0 {
		return a.tail(ctx, w)
	}
	err = a.scan(ctx, a.begin(w), w, func(e task.Event) bool {
		if more = f.Limit > 0 && len(events) == f.Limit; !more {
			events = append(events, e)
		}
		return !more
	})
	return events, more, err
}

// Follow gives what a filter asks for and goes on with what is new until ctx ends or use fails. Its pace is the reader's:
// events wait on disk, and when some were removed before they were read, an EventGap says so.
func (a *Audit) Follow(ctx context.Context, f Filter, use func([]task.Event) error) error {
	w := f.prepare()
	c := a.begin(w)
	for {
		changed := a.bell.Changed() // before looking: what is written after the look rings this one
		for more := true; more; {
			var group []task.Event
			more = false
			err := a.scan(ctx, c, w, func(e task.Event) bool {
				group = append(group, e)
				more = len(group) == followGroup
				return !more
			})
			if err == nil && len(group) > 0 {
				err = use(group)
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const followGroup = 256

// cursor is how far a reader has come.
type cursor struct {
	file   uint64 // first index of the file it reads; 0 = the first there is
	offset int64  // behind the line read last
	at     Position
}

// begin stands at the file in which a filter's first event may be.
func (a *Audit) begin(w *want) *cursor {
	return &cursor{at: w.After, file: a.file.holding(w.After.Index)}
}

// scan reads on from a cursor until use, which has taken what it was given, wants no more, or there is no more.
func (a *Audit) scan(ctx context.Context, c *cursor, w *want, use func(task.Event) bool) error {
	for {
		file, s, err := a.file.open(c.file)
		if file == nil || err != nil {
			return err
		}
		if s.first != c.file {
			gap := c.file != 0 || c.at.Index > 0 && s.pruned && c.at.Index+1 < s.first
			c.file, c.offset = s.first, 0
			if gap && !use(gapBefore(c.at, s.first)) {
				return file.Close()
			}
		}
		done, err := c.read(ctx, file, s, w, use)
		if err = errors.Join(err, file.Close()); err != nil || done {
			return err
		}
		if s.next == 0 {
			return nil
		}
		c.file, c.offset = s.next, 0
	}
}

// gapBefore tells a reader that files he had not read yet were removed.
func gapBefore(at Position, first uint64) task.Event {
	return task.Event{Index: first, N: -1, Kind: EventGap, Reason: fmt.Sprintf("events after %s up to entry %d are no longer kept on this member", at, first-1)}
}

// read goes through the lines of one file; done tells that use wants no more.
func (c *cursor) read(ctx context.Context, file *os.File, s span, w *want, use func(task.Event) bool) (done bool, err error) {
	r := newLineReader(file, c.offset)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return true, context.Cause(ctx)
		}
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return true, err
		}
		c.offset = r.offset
		at, ok := parsePosition(line)
		if !ok || !c.at.Less(at) || s.next != 0 && at.Index >= s.next {
			continue // damaged, read before, or standing in the next file again
		}
		c.at = at
		if e, ok := w.matchLine(line); ok && !use(e) {
			return true, nil
		}
	}
}

// tail gives the newest events that match.
func (a *Audit) tail(ctx context.Context, w *want) (events []task.Event, more bool, err error) {
	done := false
	for key := ^uint64(0); err == nil && !done; {
		file, s, openErr := a.file.openBefore(key)
		if file == nil || openErr != nil {
			err = openErr
			break
		}
		key = s.first
		n := 0
		err = eachLineBackward(file, func(line []byte) bool {
			at, ok := parsePosition(line)
			if !ok || s.next != 0 && at.Index >= s.next {
				return true
			}
			if n++; !w.After.Less(at) || n%1024 == 0 && ctx.Err() != nil {
				done = true
				return false
			}
			if e, ok := w.matchLine(line); ok {
				if more = len(events) == w.Limit; !more {
					events = append(events, e)
				}
				done = more
			}
			return !done
		})
		err = errors.Join(err, file.Close(), context.Cause(ctx))
	}
	slices.Reverse(events)
	return events, more, err
}

// span is one file's place in the log: events from first up to next, 0 = the end.
type span struct {
	name        string
	first, next uint64
	pruned      bool // older files may have been removed
}

// spans lists the files that have events. The caller holds names.
func (f *file) spans() []span {
	out := make([]span, 0, len(f.old)+1)
	for _, o := range f.old {
		out = append(out, span{name: o.name, first: o.first, pruned: len(f.old) >= f.cfg.Keep})
	}
	if f.first != 0 {
		out = append(out, span{name: currentName, first: f.first})
	}
	for i := range out[:max(len(out)-1, 0)] {
		out[i].next = out[i+1].first
	}
	return out
}

// holding is the key of the file in which an entry's events are, 0 if they would be before the first.
func (f *file) holding(index uint64) uint64 {
	f.names.RLock()
	defer f.names.RUnlock()
	var key uint64
	for _, s := range f.spans() {
		if s.first <= index {
			key = s.first
		}
	}
	return key
}

// open opens the file of a key, or the first one after it; nil if there is none. It keeps the names still meanwhile.
func (f *file) open(key uint64) (*os.File, span, error) {
	f.names.RLock()
	defer f.names.RUnlock()
	spans := f.spans()
	i := sort.Search(len(spans), func(i int) bool { return spans[i].first >= key })
	return f.openSpan(spans, i)
}

// openBefore opens the last file before a key.
func (f *file) openBefore(key uint64) (*os.File, span, error) {
	f.names.RLock()
	defer f.names.RUnlock()
	spans := f.spans()
	i := sort.Search(len(spans), func(i int) bool { return spans[i].first >= key })
	return f.openSpan(spans, i-1)
}

func (f *file) openSpan(spans []span, i int) (*os.File, span, error) {
	if i < 0 || i >= len(spans) {
		return nil, span{}, nil
	}
	file, err := os.Open(filepath.Join(f.cfg.Dir, spans[i].name))
	if err != nil {
		return nil, span{}, fmt.Errorf("read the audit log: %w", err)
	}
	return file, spans[i], nil
}
