package runner

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lanjobs/task"
)

func newPack(t *testing.T) *logPack {
	t.Helper()
	p := &logPack{dir: t.TempDir(), guard: "g1"}
	t.Cleanup(func() {
		if p.file != nil {
			closeQuietly(p.file)
		}
	})
	return p
}

func readAll(t *testing.T, dir string, x task.ExecutionID, s stream) string {
	t.Helper()
	p, err := readLogPiece(dir, LogQuery{Execution: x, Limit: 4 << 20}, s)
	if err != nil {
		t.Fatal(err)
	}
	return string(p.Data)
}

func TestLogKeepsLinesWholeAndStreamsApart(t *testing.T) {
	pack := newPack(t)
	w := newLogWriter(pack, "x1")
	w.write(streamOut, []byte("one\ntw"))
	w.write(streamErr, []byte("bad\nwor"))
	w.write(streamOut, []byte("o\nthree"))
	w.write(streamErr, []byte("se\n"))
	w.close()
	for s, want := range map[stream]string{streamOut: "one\ntwo\nthree", streamErr: "bad\nworse\n", streamBoth: "one\nbad\ntwo\nworse\nthree"} {
		if got := readAll(t, pack.dir, "x1", s); got != want {
			t.Errorf("stream %d: %q, want %q", s, got, want)
		}
	}
}

func TestPromptWithoutNewlineAppears(t *testing.T) {
	pack := newPack(t)
	w := newLogWriter(pack, "x1")
	w.write(streamOut, []byte("Password: "))
	for range 3 {
		w.flushStale()
	}
	if got := readAll(t, pack.dir, "x1", streamOut); got != "Password: " {
		t.Errorf("%q", got)
	}
	w.write(streamOut, []byte("ok\n"))
	w.close()
	if got := readAll(t, pack.dir, "x1", streamOut); got != "Password: ok\n" {
		t.Errorf("%q", got)
	}
}

// C31: head and tail are kept with a marker between; byte offsets mean the same all along.
func TestLogHeadAndTail(t *testing.T) {
	pack := newPack(t)
	w := newLogWriter(pack, "x1")
	var all bytes.Buffer
	for i := range 150_000 {
		line := fmt.Appendf(nil, "line %d of the output, with so many words that a hundred thousand of them are more than is kept\n", i)
		all.Write(line)
		w.write(streamOut, line)
	}
	w.close()
	var kept int64
	files, _ := filepath.Glob(filepath.Join(pack.dir, "x1.*"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		kept += info.Size()
	}
	if kept > task.MaxLogBytes || kept < task.MaxLogBytes*8/10 {
		t.Errorf("%d bytes kept, limit %d", kept, task.MaxLogBytes)
	}
	var got bytes.Buffer
	var dropped int64
	q := LogQuery{Execution: "x1", Limit: 300_000}
	for markers := 0; ; {
		p, err := readLogPiece(pack.dir, q, streamOut)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Data) > 0 && p.Next-q.From != int64(len(p.Data)) {
			marker, rest, ok := bytes.Cut(p.Data[bytes.IndexByte(p.Data, '['):], []byte("]\n"))
			if _, err := fmt.Sscanf(string(marker), "[lanjobs: %d bytes of output not kept", &dropped); !ok || err != nil {
				t.Fatalf("marker %q", marker)
			}
			markers++
			if !bytes.HasSuffix(all.Bytes()[:p.Next], rest) {
				t.Fatal("what follows the marker is not what stands at its offset")
			}
			got.Write(p.Data[:bytes.IndexByte(p.Data, '[')])
			if b := got.Bytes(); b[len(b)-1] != '\n' {
				t.Error("the head ends within a line")
			}
			if !bytes.HasPrefix(rest, []byte("line ")) {
				t.Errorf("the tail begins within a line: %.20q", rest)
			}
			got.Reset()
			got.Write(rest)
		} else {
			got.Write(p.Data)
		}
		q.From = p.Next
		if p.Done {
			if markers != 1 {
				t.Errorf("%d markers", markers)
			}
			break
		}
	}
	if q.From != int64(all.Len()) || !bytes.HasSuffix(all.Bytes(), got.Bytes()) || dropped == 0 {
		t.Errorf("ended at %d of %d, %d dropped", q.From, all.Len(), dropped)
	}
	if tail := logTail(pack.dir, "x1", nil, task.MaxTailBytes); !strings.HasSuffix(tail, "line 149999 of the output, with so many words that a hundred thousand of them are more than is kept\n") || len(tail) > task.MaxTailBytes || !strings.HasPrefix(tail, "line ") {
		t.Errorf("tail %.30q … of %d bytes", tail, len(tail))
	}
	p, err := readLogPiece(pack.dir, LogQuery{Execution: "x1", Tail: 2}, streamBoth)
	if err != nil || !strings.HasPrefix(string(p.Data), "line 149998 of") || strings.Count(string(p.Data), "\n") != 2 || p.Next != int64(all.Len()) {
		t.Errorf("last lines %q, next %d, %v", p.Data, p.Next, err)
	}
}

// Any output in any pieces comes back the same, whatever is asked for.
func TestLogGivesBackWhatWasWritten(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		pack := newPack(t)
		w := newLogWriter(pack, "x7")
		var want [3]bytes.Buffer
		for range rng.IntN(200) {
			s := stream(1 + rng.IntN(2))
			piece := make([]byte, rng.IntN(3000))
			for i := range piece {
				piece[i] = "abcdefg\n"[rng.IntN(8)]
			}
			w.write(s, piece)
			want[s].Write(piece)
			if rng.IntN(20) == 0 {
				w.flushStale()
			}
		}
		w.close()
		for s := streamOut; s <= streamErr; s++ {
			from := int64(0)
			var got bytes.Buffer
			for {
				p, err := readLogPiece(pack.dir, LogQuery{Execution: "x7", From: from, Limit: 1 + rng.IntN(40_000)}, s)
				if err != nil {
					t.Fatal(err)
				}
				got.Write(p.Data)
				from = p.Next
				if p.Done {
					break
				}
			}
			if !bytes.Equal(got.Bytes(), want[s].Bytes()) {
				t.Fatalf("seed %d stream %d: %d bytes, want %d", seed, s, got.Len(), want[s].Len())
			}
		}
		if both := readAll(t, pack.dir, "x7", streamBoth); len(both) != want[1].Len()+want[2].Len() {
			t.Fatalf("seed %d: both streams %d bytes", seed, len(both))
		}
	}
}

func TestShortLogsShareFiles(t *testing.T) {
	pack := newPack(t)
	const n = 3000
	for i := range n {
		w := newLogWriter(pack, task.Token(1000+i).Execution())
		if i%3 > 0 {
			w.write(streamOut, bytes.Repeat(fmt.Appendf(nil, "%d\n", i), 100))
		}
		if w.close() == nil {
			t.Fatal("not packed")
		}
	}
	files, _ := os.ReadDir(pack.dir)
	if len(files) < 2 || len(files) > 4 {
		t.Errorf("%d files", len(files))
	}
	for _, i := range []int{0, 1, 2, 999, 1500, n - 1} {
		want := ""
		if i%3 > 0 {
			want = strings.Repeat(itoa(i)+"\n", 100)
		}
		if got := readAll(t, pack.dir, task.Token(1000+i).Execution(), streamBoth); got != want {
			t.Errorf("%d: %d bytes, want %d", i, len(got), len(want))
		}
	}
	for _, x := range []task.ExecutionID{"xzzzz", "x1", "../../etc/passwd", ""} {
		if _, err := readLogPiece(pack.dir, LogQuery{Execution: x}, streamBoth); !errors.Is(err, task.ErrNotFound) && !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%q: %v", x, err)
		}
	}
	// A guard killed while it wrote: the entry cut short is not there, those before it are.
	last := filepath.Join(pack.dir, pack.name)
	if err := os.Truncate(last, pack.size-10); err != nil {
		t.Fatal(err)
	}
	if _, err := readLogPiece(pack.dir, LogQuery{Execution: task.Token(1000 + n - 1).Execution()}, streamBoth); !errors.Is(err, task.ErrNotFound) {
		t.Errorf("torn entry: %v", err)
	}
	readAll(t, pack.dir, task.Token(1000+n-2).Execution(), streamBoth)
}

func TestSweepKeepsWhatRuns(t *testing.T) {
	dir := t.TempDir()
	r := &Runner{cfg: Config{Dir: dir}, clock: SystemClock(), attempts: map[task.ExecutionID]*attempt{"x2": {}}}
	if err := os.Mkdir(r.logDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x1.0", "x1.3", "x2.0", "pack.5.g1"} {
		if err := os.WriteFile(filepath.Join(r.logDir(), name), make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Sweep(0, 1<<60); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(r.logDir())
	if len(left) != 2 || left[0].Name() != "pack.5.g1" || left[1].Name() != "x2.0" {
		t.Errorf("left %v", left)
	}
}
