package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"lanjobs/task"
)

// watchEvery is the time between two looks of --watch.
const watchEvery = 2 * time.Second

// showOrWatch shows an answer once, or with --watch until the context ends: on a terminal in place, elsewhere by
// appending the rows that changed, as JSON lines with -o json.
func (c *call) showOrWatch(ctx context.Context, get func(context.Context) (answer, error)) error {
	if !c.opt.watch {
		a, err := get(ctx)
		if err != nil {
			return err
		}
		return c.show(a)
	}
	w := watcher{c: c, seen: map[string]bool{}}
	for {
		a, err := get(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil && exitCode(err) == exitUnreachable && w.shown:
			c.say("%s", strings.SplitN(explain(err), "\n", 2)[0])
		case err != nil:
			return err
		default:
			if err := w.next(a); err != nil {
				return err
			}
		}
		if err := wait(ctx, c.clock, watchEvery); err != nil {
			return err
		}
	}
}

// watcher keeps what is on the screen already.
type watcher struct {
	c     *call
	shown bool
	lines int             // of the last frame on a terminal
	seen  map[string]bool // rows written already, elsewhere
}

func (w *watcher) next(a answer) error {
	defer func() { w.shown = true }()
	switch {
	case w.c.machine():
		return w.appendJSON(a)
	case w.c.opt.output == "name":
		return w.appendNew(a.names, a.names)
	case w.c.outTTY:
		return w.redraw(w.c.frame(a))
	}
	return w.appendNew(w.c.rowKeys(a), w.c.frame(a))
}

// redraw puts a frame in the place of the last one.
func (w *watcher) redraw(lines []string) error {
	lines = w.c.out().fit(lines)
	_, err := w.c.stdout.Write(overdraw(w.lines, lines))
	w.lines = len(lines)
	return err
}

// overdraw moves the cursor up over the last frame, writes each line and clears what stood to its right and below.
func overdraw(last int, lines []string) []byte {
	var b bytes.Buffer
	if last > 0 {
		b.WriteString("\x1b[" + itoa(last) + "A\r")
	}
	for _, l := range lines {
		b.WriteString(l + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.Bytes()
}

// appendNew writes the lines whose key was not in the last frame.
func (w *watcher) appendNew(keys, lines []string) error {
	now := map[string]bool{}
	for i, l := range lines {
		now[keys[i]] = true
		if w.seen[keys[i]] {
			continue
		}
		if _, err := io.WriteString(w.c.stdout, l+"\n"); err != nil {
			return err
		}
	}
	w.seen = now
	return nil
}

// passing are columns that change by themselves: a row is not news because it is older.
var passing = []string{"AGE", "SEEN", "LOAD", "LEASE LEFT"}

// rowKeys gives for each line of a frame what must change for it to be written again.
func (c *call) rowKeys(a answer) []string {
	keys := slices.Clone(a.head)
	for _, t := range c.tablesOf(a) {
		keys = append(keys, strings.Join(t.head, " "))
		for _, row := range t.rows {
			var key strings.Builder
			for i, cell := range row {
				if !slices.Contains(passing, t.head[i]) {
					key.WriteString(cell.text + "\x00")
				}
			}
			keys = append(keys, key.String())
		}
	}
	return append(keys, a.foot...)
}

func (w *watcher) appendJSON(a answer) error {
	items := a.items
	if items == nil {
		items = []any{a.value}
	}
	var keys, lines []string
	for _, item := range items {
		var b bytes.Buffer
		if err := writeJSON(&b, item, ""); err != nil {
			return err
		}
		lines = append(lines, strings.TrimSuffix(b.String(), "\n"))
		keys = append(keys, jsonKey(b.Bytes()))
	}
	return w.appendNew(keys, lines)
}

// jsonKey is a JSON text without the fields that change by themselves.
func jsonKey(text []byte) string {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return string(text)
	}
	key, err := json.Marshal(lasting(v))
	if err != nil {
		return string(text)
	}
	return string(key)
}

func lasting(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if strings.HasSuffix(k, "_seconds") || k == "load" || k == "index" || k == "cluster_clock_ms" {
				delete(v, k)
				continue
			}
			v[k] = lasting(e)
		}
	case []any:
		for i := range v {
			v[i] = lasting(v[i])
		}
	}
	return v
}

// wait waits on the clock, or for the end of the context.
func wait(ctx context.Context, clock task.Clock, d time.Duration) error {
	t := clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
