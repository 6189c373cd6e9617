package observe

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"lanjobs/task"
)

// Filter says which events are wanted. A zero field asks for nothing.
type Filter struct {
	From   uint64   // of this entry and later
	After  Position // after this event
	Job    task.JobID
	Stage  string
	Shards []task.Range
	Node   string           // id or name
	Kinds  []task.EventKind // "lease.grant"; a noun alone, "lease", means all of its events
	Since  time.Time        // by the leader's wall clock
	Limit  int              // most events; 0 = no limit
	Tail   bool             // with Limit: the newest that match, else the oldest
}

// want is a filter made ready for many lines.
type want struct {
	Filter
	since   int64
	needles [][][]byte // a line that matches holds one of each group, or is a gap's
}

func (f Filter) prepare() *want {
	w := &want{Filter: f}
	if !f.Since.IsZero() {
		w.since = f.Since.UnixMilli()
	}
	if f.From > 0 {
		w.After = later(w.After, Position{f.From - 1, maxN})
	}
	if f.Job != "" {
		w.need(field("job", string(f.Job)))
	}
	if f.Node != "" {
		w.need(field("node", f.Node), field("node_name", f.Node))
	}
	var kinds [][]byte
	for _, k := range f.Kinds {
		kinds = append(kinds, bytes.TrimSuffix(field("event", string(k)), []byte(`"`)))
	}
	w.need(kinds...)
	return w
}

// maxN is behind every event of an entry.
const maxN = int(^uint(0) >> 1)

func later(a, b Position) Position {
	if a.Less(b) {
		return b
	}
	return a
}

// need adds a group, so that most lines need not be decoded.
func (w *want) need(any ...[]byte) {
	if len(any) > 0 {
		w.needles = append(w.needles, any)
	}
}

var gapNeedle = field("event", string(EventGap))

// field is how appendLine writes a text.
func field(name, value string) []byte {
	text, _ := json.Marshal(value) // a string always has JSON
	return append([]byte(`"`+name+`":`), text...)
}

// matchLine decodes a line that is wanted.
func (w *want) matchLine(line []byte) (e task.Event, ok bool) {
	for _, group := range w.needles {
		if !bytes.Contains(line, gapNeedle) && !slices.ContainsFunc(group, func(n []byte) bool { return bytes.Contains(line, n) }) {
			return e, false
		}
	}
	if json.Unmarshal(line, &e) != nil {
		return e, false
	}
	return e, w.match(&e)
}

// match tells whether an event is wanted. A gap is, whatever was asked for: it may have been there.
func (w *want) match(e *task.Event) bool {
	switch {
	case w.since != 0 && e.Wall < w.since:
		return false
	case e.Kind == EventGap:
		return true
	case w.Job != "" && e.Job != w.Job,
		w.Stage != "" && e.Stage != w.Stage,
		w.Node != "" && string(e.Node) != w.Node && e.NodeName != w.Node,
		len(w.Kinds) > 0 && !slices.ContainsFunc(w.Kinds, func(k task.EventKind) bool { return ofKind(e.Kind, k) }),
		len(w.Shards) > 0 && !overlap(w.Shards, e.Shards):
		return false
	}
	return true
}

func ofKind(k, want task.EventKind) bool {
	rest, ok := strings.CutPrefix(string(k), string(want))
	return ok && (rest == "" || rest[0] == '.')
}

// overlap tells whether an event's shards have one of the wanted ones among them.
func overlap(wanted []task.Range, shards string) bool {
	if shards == "" {
		return false
	}
	rs, err := task.ParseRanges(shards)
	if err != nil {
		return false
	}
	for _, r := range rs {
		for _, w := range wanted {
			if r.First <= w.Last && w.First <= r.Last {
				return true
			}
		}
	}
	return false
}
