package transport

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

func TestMetaFitsWhateverIsInIt(t *testing.T) {
	long := netip.MustParseAddrPort("[2001:db8:1111:2222:3333:4444:5555:6666]:65535")
	m := nodeMeta{
		Name: strings.Repeat("ü", 100), Version: strings.Repeat("v", 100), Level: 65535, Voter: true, Generation: 7<<32 | 9,
		Addrs: []netip.AddrPort{long, long, long, long, long, long},
	}
	b := m.encode()
	if len(b) > maxMeta {
		t.Fatalf("%d bytes of metadata", len(b))
	}
	got, err := decodeMeta(b)
	if err != nil || len(got.Addrs) != MaxAddrs || got.Addrs[3] != long || !strings.HasPrefix(m.Name, got.Name) || len(got.Name) < 62 {
		t.Errorf("%+v, %v", got, err)
	}
	later := append(bytes.Clone(b), "a field of the next version"...)
	later[0] = metaFormat + 1
	if again, err := decodeMeta(later); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("metadata of a later version: %+v, %v", again, err)
	}
	first := len(b) - 8 // where the first version ended
	if old, err := decodeMeta(b[:first]); err != nil || old.Generation != 0 || old.Name != got.Name || got.Generation != 7<<32|9 {
		t.Errorf("metadata of the first version: %+v, %v", old, err)
	}
	for n := range b {
		if _, err := decodeMeta(b[:n]); err == nil && n != first {
			t.Fatalf("metadata cut at %d was read", n)
		}
	}
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add(nodeMeta{Name: "n", Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:7420")}}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeMeta(b); err == nil && len(m.encode()) > maxMeta {
			t.Errorf("%d bytes", len(m.encode()))
		}
	})
}

func TestPrologueAndAnswerRoundTrip(t *testing.T) {
	p := prologue{Version: 1, Generation: 7, Cluster: "c", From: "a", Session: "3-00000004", To: "b"}
	b, err := p.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := readPrologue(bytes.NewReader(b))
	if err != nil || got != p {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := readPrologue(bytes.NewReader(b[:n])); err == nil {
			t.Fatalf("a prologue cut at %d was read", n)
		}
	}
	if _, err := (prologue{Cluster: strings.Repeat("c", 256)}).encode(); err == nil {
		t.Error("an overlong field was written")
	}
	for _, known := range refusals {
		var w bytes.Buffer
		_ = writeAnswer(&w, &Refusal{Reason: known.err, Detail: "because"})
		err := readAnswer(&w, "b", "a")
		var r *Refusal
		if !errors.Is(err, known.err) || !errors.As(err, &r) || r.By != "b" || r.To != "a" || r.Detail != "because" {
			t.Errorf("%v came back as %v", known.err, err)
		}
	}
	if err := readAnswer(bytes.NewReader([]byte{99, 0}), "b", "a"); err == nil || !strings.Contains(err.Error(), "code 99") {
		t.Errorf("a refusal of a later version: %v", err)
	}
}

func FuzzReadPrologue(f *testing.F) {
	b, _ := prologue{Version: 1, Cluster: "c", From: "a", To: "b"}.encode()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := readPrologue(bytes.NewReader(b)); err == nil {
			if _, err := p.encode(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestEntriesAreTrimmedByBytes(t *testing.T) {
	entry := func(n int) *raft.Log { return &raft.Log{Data: make([]byte, n)} }
	for _, c := range []struct {
		sizes []int
		want  int
	}{
		{nil, 0},
		{[]int{10, 10}, 2},
		{[]int{maxAppendBytes / 2, maxAppendBytes / 2, 1}, 2},
		{[]int{2 * maxAppendBytes, 1}, 1}, // one that is too large by itself still goes
	} {
		req := &raft.AppendEntriesRequest{}
		for _, n := range c.sizes {
			req.Entries = append(req.Entries, entry(n))
		}
		if trimEntries(req); len(req.Entries) != c.want {
			t.Errorf("%v: %d entries, not %d", c.sizes, len(req.Entries), c.want)
		}
	}
}
