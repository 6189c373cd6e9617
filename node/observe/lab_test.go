package observe

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lanjobs/task"
	"lanjobs/transport/memnet"
)

// bench is an audit log in a folder of its own that may be closed and opened again.
type bench struct {
	*Audit
	t     *testing.T
	cfg   Config
	clock *memnet.Clock
	log   *bytes.Buffer
	end   func() error
}

func newBench(t *testing.T, change ...func(*Config)) *bench {
	b := &bench{t: t, clock: memnet.NewClock(), log: &bytes.Buffer{}}
	b.cfg = DefaultConfig(filepath.Join(t.TempDir(), "audit"), b.clock, slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, f := range change {
		f(&b.cfg)
	}
	b.open()
	t.Cleanup(func() { b.stop() })
	return b
}

func (b *bench) open() {
	b.t.Helper()
	a, err := Open(b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Audit = a
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	b.end = sync.OnceValue(func() error { cancel(); return <-done })
}

func (b *bench) stop() {
	b.t.Helper()
	if err := b.end(); err != nil {
		b.t.Error(err)
	}
}

// crash drops what is not on disk.
func (b *bench) crash() {
	b.t.Helper()
	b.writing.Lock()
	b.file.buf = nil
	b.writing.Unlock()
	b.stop()
}

// restart closes and opens.
func (b *bench) restart() { b.t.Helper(); b.stop(); b.open() }

// entry makes the events of one entry.
func entry(index uint64, kinds ...task.EventKind) []task.Event {
	out := make([]task.Event, len(kinds))
	for i, k := range kinds {
		out[i] = task.Event{Index: index, N: i, Kind: k, Wall: 1_700_000_000_000 + int64(index)*1000, Job: "j7", Node: "n1", NodeName: "nas"}
	}
	return out
}

func grants(from, to uint64) (out [][]task.Event) {
	for i := from; i <= to; i++ {
		out = append(out, entry(i, task.EventLeaseGrant, task.EventLeaseConfirm))
	}
	return out
}

func (b *bench) append(groups [][]task.Event) {
	for _, g := range groups {
		b.Append(g)
	}
}

func (b *bench) query(f Filter) []task.Event {
	b.t.Helper()
	events, _, err := b.Query(b.t.Context(), f)
	if err != nil {
		b.t.Fatal(err)
	}
	return events
}

func positions(events []task.Event) string {
	var out []string
	for i := range events {
		out = append(out, At(&events[i]).String())
	}
	return strings.Join(out, " ")
}

func (b *bench) wantPositions(f Filter, want string) {
	b.t.Helper()
	if got := positions(b.query(f)); got != want {
		b.t.Errorf("query %+v gives %s, want %s", f, got, want)
	}
}

func (b *bench) path() string { return filepath.Join(b.cfg.Dir, currentName) }

func (b *bench) content() string {
	b.t.Helper()
	data, err := os.ReadFile(b.path())
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) oldFiles() []string {
	b.t.Helper()
	names, err := filepath.Glob(filepath.Join(b.cfg.Dir, "audit-*.jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	return names
}
