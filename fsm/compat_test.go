package fsm

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lanjobs/task"
)

var update = flag.Bool("update", false, "write the compatibility files that are missing, and the digests anew")

// compatDir has a folder for each form of log and snapshot that was ever released: what is in ledger.log and
// ledger.snapshot is never written again, or the promise that old data opens would be tested against itself. ledger.digests
// changes when the snapshot's form has grown; that every digest of a log still follows from its entries does not.
const compatDir = "../testdata/compat"

func TestOldLogsAndSnapshotsGiveTheSameState(t *testing.T) {
	if *update {
		writeCompat(t, filepath.Join(compatDir, "v3"))
	}
	dirs, err := filepath.Glob(filepath.Join(compatDir, "v*"))
	if err != nil || len(dirs) == 0 {
		t.Fatal("no compatibility files", dirs, err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var digests strings.Builder
			s, seen := New(), map[string]int{}
			for i, entry := range readLog(t, dir) {
				b, err := DecodeBatch(entry)
				if err != nil {
					t.Fatalf("entry %d: %v", i+1, err)
				}
				results, _, err := s.Apply(uint64(i+1), entry)
				if err != nil {
					t.Fatal(err)
				}
				for k, c := range b.Commands {
					if results[k].Err == nil {
						seen[fmt.Sprintf("%T", c)]++
					}
				}
				if err := s.Check(); err != nil {
					t.Fatalf("after entry %d: %v", i+1, err)
				}
				d := s.Digest()
				fmt.Fprintf(&digests, "%d %s\n", i+1, hex.EncodeToString(d[:]))
			}
			for k := range decoders {
				if level := min(LevelOf(decoders[k](&dec{})), snapshotVersion); "v"+itoa(level) > filepath.Base(dir) {
					continue
				}
				b, _ := DecodeBatch((&Batch{Commands: []Command{decoders[k](&dec{})}}).Encode())
				if name := fmt.Sprintf("%T", b.Commands[0]); seen[name] == 0 {
					t.Errorf("no accepted %s in the log", name)
				}
			}
			data := readFile(t, dir, "ledger.snapshot")
			old, err := Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if old.Digest() != s.Digest() {
				t.Error("the snapshot and the log of the same history give different states")
			}
			if *update {
				if err := os.WriteFile(filepath.Join(dir, "ledger.digests"), []byte(digests.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := strings.Split(string(readFile(t, dir, "ledger.digests")), "\n")
			for i, got := range strings.Split(digests.String(), "\n") {
				if i >= len(want) || got != want[i] {
					t.Fatalf("the state after entry %d is not what it was: Apply has changed, and replicas of both versions would part. Put the change behind a cluster version; if only the snapshot's form has grown, run with -update", i+1)
				}
			}
		})
	}
}

func readFile(t *testing.T, dir, name string) []byte {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readLog reads entries, each after its length.
func readLog(t *testing.T, dir string) (out [][]byte) {
	for data := readFile(t, dir, "ledger.log"); len(data) > 0; {
		n, k := binary.Uvarint(data)
		if k <= 0 || n > uint64(len(data)-k) {
			t.Fatalf("%s: the log is cut", dir)
		}
		out = append(out, data[k:k+int(n)])
		data = data[k+int(n):]
	}
	return out
}

// writeCompat makes a history in which every command is accepted at least once, if there is none.
func writeCompat(t *testing.T, dir string) {
	if _, err := os.Stat(filepath.Join(dir, "ledger.log")); err == nil {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	seed := int64(1)
	for !showsAll(seed) {
		seed++
	}
	m := newMachine(t, seeded(seed))
	for range compatEntries {
		m.step(m.batch())
	}
	var log []byte
	for _, entry := range m.log {
		log = append(binary.AppendUvarint(log, uint64(len(entry))), entry...)
	}
	var snapshot bytes.Buffer
	if err := m.s.Snapshot().Write(&snapshot); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"ledger.log": log, "ledger.snapshot": snapshot.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const compatEntries = 400

// showsAll tells whether a history has all that a snapshot can hold, and every command was accepted in it.
func showsAll(seed int64) bool {
	w := &world{chooser: seeded(seed), s: New()}
	accepted, splits := map[kind]bool{}, 0
	for i := range compatEntries {
		b := w.batch()
		results, events := w.s.ApplyBatch(uint64(i+1), b)
		w.learn(b, results)
		for k, r := range results {
			if r.Err == nil {
				accepted[b.Commands[k].kind()] = true
			}
		}
		for _, e := range events {
			if e.Kind == task.EventShardSplit {
				splits++
			}
		}
	}
	s := w.s
	return len(accepted) == len(decoders) && s.LeaseCount() > 0 && len(s.tokens) > 0 && len(s.schedules) > 0 && len(s.queues) > 1 && len(s.acts) > 0 && len(s.keyAt) > 0 && splits > 0 && len(s.clients) > 0
}

func TestFieldsOfALaterVersionAreSkipped(t *testing.T) {
	w := &world{chooser: seeded(8), s: New()}
	later := func(e *enc) { e.str("a field of a later version"); e.u64(7) }
	twin := New()
	for i := range uint64(300) {
		b := w.batch()
		e := &enc{b: []byte{batchVersion}}
		e.rec(func(e *enc) {
			e.i64(int64(b.Elapsed))
			e.i64(int64(b.Idle))
			e.i64(b.Wall)
			e.str(string(b.Leader))
			later(e)
		})
		e.u64(uint64(len(b.Commands)))
		for _, c := range b.Commands {
			e.u64(uint64(c.kind()))
			e.rec(func(e *enc) { c.encode(e); later(e) })
		}
		results, _, err := w.s.Apply(i, b.Encode())
		if err != nil {
			t.Fatal(err)
		}
		w.learn(b, results)
		if _, _, err := twin.Apply(i, e.b); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
	}
	if w.s.Digest() != twin.Digest() {
		t.Fatal("fields of a later version were not skipped")
	}
	got, err := Decode(extended(t, w.s, later))
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest() != w.s.Digest() {
		t.Fatal("fields of a later version in a snapshot were not skipped")
	}
}

// extended writes a snapshot in which each record has fields more, and something stands behind its end.
func extended(t *testing.T, s *State, later func(*enc)) []byte {
	var buf bytes.Buffer
	if err := s.Snapshot().Write(&buf); err != nil {
		t.Fatal(err)
	}
	d := &dec{b: buf.Bytes()[len(snapshotMagic):]}
	e := &enc{b: []byte(snapshotMagic)}
	rec := func() {
		body := d.raw()
		e.rec(func(e *enc) { e.b = append(e.b, body...); later(e) })
	}
	e.u64(d.u64())
	rec()
	for range 2 { // nodes, join tokens
		n := d.u64()
		e.u64(n)
		for range n {
			rec()
		}
	}
	e.num(d.num())
	s.Jobs(func(j *Job) bool {
		e.num(d.num())
		rec()
		for i := range j.Stages {
			for range j.Stages[i].Len() {
				rec()
			}
		}
		return true
	})
	e.num(d.num())
	if s.level() > 1 {
		for range 3 { // queues, schedules, acts
			n := d.u64()
			e.u64(n)
			for range n {
				rec()
			}
		}
		for d.bool() {
			e.bool(true)
			rec()
		}
		e.bool(false)
	}
	if s.level() > 2 { // clients
		n := d.u64()
		e.u64(n)
		for range n {
			rec()
		}
	}
	if d.err != nil || len(d.b) != 0 {
		t.Fatal("this test does not know the snapshot's form any more", d.err)
	}
	later(e)
	return e.b
}

// TestAStateIsWrittenInTheOldestFormThatHoldsIt: replicas of both versions have the same digest until something new is used.
func TestAStateIsWrittenInTheOldestFormThatHoldsIt(t *testing.T) {
	quiet := scheduled("s", task.OverlapSkip, stage("main", 1))
	quiet.RequestID = ""
	woken := scheduled("s", task.OverlapSkip, stage("main", 1))
	woken.RequestID, woken.Spec = "", bytes.Replace(woken.Spec, []byte(`"overlap"`), []byte(`"wake":"nas","overlap"`), 1)
	for name, cs := range map[string][]Command{
		"":          {node("a", 1), submit("j1", stage("main", 1)), grant("j1", 0, 0)},
		"queue":     {&SetQueue{Name: "q"}},
		"limit":     {&SetQueue{Name: "default", Max: new(3)}},
		"schedule":  {quiet},
		"request":   {&SetQueue{Name: "q", RequestID: "r"}, &SetQueue{Name: "q", Remove: true}},
		"pause":     {submit("j1", stage("main", 1)), &SetJob{Job: "j1", Action: JobPause}},
		"priority":  {submit("j1", stage("main", 1)), &SetJob{Job: "j1", Action: JobPriority}},
		"deadline":  {timed("j1", 0, 1, stage("main", 1))},
		"range":     {submit("j1", ranged(0, 9, 3))},
		"broadcast": {submit("j1", task.StageSpec{Name: "s", Broadcast: true, When: task.WhenAlways, Lease: task.DefaultLease(task.DefaultTTL), Retry: task.DefaultRetry()})},
		"seat":      {node("a", 1), &SetNode{Node: "a", Action: NodePromote}},
		"care":      {caring("a", 1, 1)},
		"login":     {&CreateToken{ID: "t", Hash: []byte("h"), TTL: 1, Uses: 1, Role: RoleViewer}},
		"on_sleep":  {submit("j1", task.StageSpec{Name: "s", Shards: 1, OnSleep: task.OnSleepKeep, When: task.WhenAlways, Lease: task.DefaultLease(task.DefaultTTL), Retry: task.DefaultRetry()})},
		"user":      {submit("j1", task.StageSpec{Name: "s", Shards: 1, User: "anna", When: task.WhenAlways, Lease: task.DefaultLease(task.DefaultTTL), Retry: task.DefaultRetry()})},
		"wake":      {woken},
		"key":       {&InitCluster{ID: "c"}, &AdmitNode{Node: "b", Key: []byte("k")}},
	} {
		s := New()
		s.ApplyBatch(1, &Batch{Commands: cs})
		want := 2
		switch name {
		case "":
			want = 1
		case "seat", "care", "login", "on_sleep", "user", "wake":
			want = 3
		}
		if s.level() != want || reread(t, s).Digest() != s.Digest() {
			t.Errorf("%q: level %d", name, s.level())
		}
		levels := 1
		for _, c := range cs {
			levels = max(levels, LevelOf(c))
		}
		if levels != want && name != "key" {
			t.Errorf("%q: its commands need level %d", name, levels)
		}
	}
}

func TestAnEntryOfALaterVersionStopsTheReplica(t *testing.T) {
	s := New()
	s.ApplyBatch(1, &Batch{Elapsed: 5, Commands: []Command{node("a", 1)}})
	before := s.Digest()
	known := (&Batch{Elapsed: 5, Commands: []Command{&Elected{Node: "a", Term: 2}}}).Encode()
	unknown := &enc{b: bytes.Clone(known)}
	unknown.b[len(unknown.b)-6]++ // two commands now
	if unknown.b[len(unknown.b)-6] != 2 {
		t.Fatalf("%x", known)
	}
	unknown.u64(99)
	unknown.rec(func(e *enc) { e.str("later") })
	version := bytes.Clone(known)
	version[0]++
	for name, data := range map[string][]byte{"command": unknown.b, "format": version} {
		if _, _, err := s.Apply(2, data); !errors.Is(err, ErrUnknownCommand) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for cut := range known {
		if _, _, err := s.Apply(2, known[:cut]); err == nil || errors.Is(err, ErrUnknownCommand) && cut > 0 {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	if _, _, err := s.Apply(2, append(bytes.Clone(known), 0)); err == nil {
		t.Error("bytes behind an entry were accepted")
	}
	if s.Digest() != before {
		t.Error("an entry that was not understood changed the state")
	}
	var buf bytes.Buffer
	if err := s.Snapshot().Write(&buf); err != nil {
		t.Fatal(err)
	}
	data := buf.Bytes()
	data[len(snapshotMagic)] = snapshotVersion + 1
	if _, err := Decode(data); !errors.Is(err, ErrUnknownCommand) {
		t.Errorf("a snapshot of a later form: %v", err)
	}
}

// TestAFieldAddedLaterIsReadIfItIsThere shows how a field is added to a record: at its end, read only if there is more.
func TestAFieldAddedLaterIsReadIfItIsThere(t *testing.T) {
	read := func(d *dec) (out [2]string) {
		d.rec(func(d *dec) {
			out[0] = d.str()
			if d.more() {
				out[1] = d.str()
			}
		})
		return out
	}
	for want, write := range map[[2]string]func(*enc){
		{"old", ""}:    func(e *enc) { e.str("old") },
		{"new", "two"}: func(e *enc) { e.str("new"); e.str("two") },
	} {
		e := &enc{}
		e.rec(write)
		d := &dec{b: e.b}
		if got := read(d); got != want || d.err != nil {
			t.Errorf("%q, %v", got, d.err)
		}
	}
}
