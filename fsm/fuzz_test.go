package fsm

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"lanjobs/task"
)

// compatLog gives the entries of released forms, as seeds.
func compatLog(f *testing.F, form string) (out [][]byte) {
	names, err := filepath.Glob(filepath.Join(compatDir, form, "ledger.log"))
	if err != nil || len(names) == 0 {
		f.Fatal("no compatibility files", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for len(data) > 0 {
			n, k := binary.Uvarint(data)
			out = append(out, data[k:k+int(n)])
			data = data[k+int(n):]
		}
	}
	return out
}

// allocates fails when f takes far more memory than its input explains.
func allocates(t *testing.T, input int, f func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if n, limit := after.TotalAlloc-before.TotalAlloc, uint64(48<<20+2000*input); n > limit {
		t.Fatalf("%d bytes of input took %d of memory", input, n)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	for _, entry := range compatLog(f, "v*") {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var b *Batch
		var err error
		allocates(t, len(data), func() { b, err = DecodeBatch(data) })
		if err != nil {
			return
		}
		once := b.Encode()
		again, err := DecodeBatch(once)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		if !bytes.Equal(again.Encode(), once) {
			t.Fatal("encoding is not stable")
		}
	})
}

// FuzzApply applies logs of damaged and forged entries to a state in which much is going on.
func FuzzApply(f *testing.F) {
	log := compatLog(f, "v2") // the newest has every command
	var base bytes.Buffer
	s := New()
	for i, entry := range log[:len(log)/2] {
		if _, _, err := s.Apply(uint64(i), entry); err != nil {
			f.Fatal(err)
		}
	}
	if err := s.Snapshot().Write(&base); err != nil {
		f.Fatal(err)
	}
	pack := func(entries ...[]byte) (out []byte) {
		for _, e := range entries {
			out = append(binary.AppendUvarint(out, uint64(len(e))), e...)
		}
		return out
	}
	for i := len(log) / 2; i+6 < len(log); i += 3 {
		f.Add(pack(log[i : i+6]...))
	}
	for k := range decoders { // each command with nothing in it
		e := &enc{b: []byte{batchVersion, 4, 2, 0, 0, 0, 1, byte(k)}}
		e.raw(make([]byte, 40))
		f.Add(pack(e.b))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(base.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for i := uint64(1); len(data) > 0 && i < 20; i++ {
			n, k := binary.Uvarint(data)
			if k <= 0 {
				break
			}
			data = data[k:]
			entry := data[:min(n, uint64(len(data)))]
			data = data[len(entry):]
			before := s.Digest()
			results, _, err := s.Apply(s.Index+i, entry)
			if err != nil {
				if s.Digest() != before {
					t.Fatalf("an entry was refused (%v) and changed the state", err)
				}
				continue
			}
			if err := s.Check(); err != nil {
				t.Fatalf("after entry %d: %v: %+v", i, err, texts(results))
			}
		}
		if reread(t, s).Digest() != s.Digest() {
			t.Fatal("the state cannot be read back")
		}
	})
}

// fuzzed is a fuzzer's bytes as a chooser.
type fuzzed struct{ data []byte }

func (f *fuzzed) Intn(n int) int {
	if len(f.data) == 0 {
		return 0
	}
	v := int(f.data[0])
	f.data = f.data[1:]
	if n > 256 && len(f.data) > 0 {
		v = v<<8 | int(f.data[0])
		f.data = f.data[1:]
	}
	return v % n
}

// FuzzHistory lets the fuzzer choose a history of commands that fit together, against the model.
func FuzzHistory(f *testing.F) {
	for seed := range int64(20) {
		data := make([]byte, 600)
		c := seeded(seed)
		for i := range data {
			data[i] = byte(c.Intn(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &fuzzed{data[:min(len(data), 2000)]}
		m := newMachine(t, c)
		for len(c.data) > 0 {
			m.step(m.batch())
			if m.one(10) {
				m.restore()
			}
		}
		m.restore()
	})
}

const maxInstant = task.Instant(1<<63 - 1)

func FuzzSnapshot(f *testing.F) {
	m := newMachine(f, seeded(4))
	add := func() {
		var buf bytes.Buffer
		if err := m.s.Snapshot().Write(&buf); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	for i := range 120 {
		if i%6 == 0 {
			add()
		}
		m.step(m.batch())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s *State
		var err error
		allocates(t, len(data), func() { s, err = Decode(data) })
		if err != nil {
			if s != nil {
				t.Fatal("an error and a state")
			}
			return
		}
		digest := s.Digest()
		if reread(t, s).Digest() != digest {
			t.Fatal("what was read cannot be written and read again")
		}
		w := &world{chooser: seeded(int64(len(data))), s: s, jobs: s.JobSeqs()}
		for _, token := range s.Lapsed(maxInstant) {
			l := s.Lease(token)
			w.grants = append(w.grants, granted{l.Ref, token, s.NodeByPlace(l.Node).Info.ID})
		}
		for i := range uint64(20) {
			s.ApplyBatch(s.Index+i, w.batch())
			if err := s.Check(); err != nil {
				t.Fatalf("a snapshot was read without fault, and after %d entries: %v", i+1, err)
			}
		}
	})
}
