package runner

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"lanjobs/task"
)

// TestPackedLogsAreFoundWhateverEndedFirst: of two attempts the later one ends first and names the pack, and there are more older
// packs than are ever searched, one of each guard before.
func TestPackedLogsAreFoundWhateverEndedFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	entry := func(text string) []byte {
		b := append([]byte(logMagic), make([]byte, logHeader-len(logMagic))...)
		binary.BigEndian.PutUint64(b[len(logMagic):], 1)
		return append(b, text...)
	}
	put := func(guard int, xs ...string) {
		p := &logPack{dir: dir, guard: fmt.Sprintf("g%d", guard)}
		for _, x := range xs {
			if _, err := p.add(task.ExecutionID(x), entry("log of "+x)); err != nil {
				t.Fatal(err)
			}
		}
		closeQuietly(p.file)
	}
	for i := range 2 * packSearch {
		put(i, fmt.Sprintf("x1%c", 'a'+i))
	}
	put(50, "x22", "x21", "x20")
	for i := range 2 * packSearch {
		put(100+i, fmt.Sprintf("x3%c", 'a'+i))
	}
	for _, x := range []string{"x1a", "x1p", "x20", "x21", "x22", "x3a", "x3p"} {
		seg, err := openPacked(dir, task.ExecutionID(x))
		if err != nil {
			t.Errorf("%s: %v", x, err)
			continue
		}
		if _, err := seg.src.Seek(int64(logHeader), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(seg.src); string(got) != "log of "+x {
			t.Errorf("%s: %q", x, got)
		}
	}
	if _, err := openPacked(dir, "x2z"); err == nil {
		t.Error("one that there never was is found")
	}
}
