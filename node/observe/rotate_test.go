package observe

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lanjobs/task"
)

func small(c *Config) { c.MaxBytes, c.Keep = 1000, 3 }

func TestRotationBySizeKeepsEntriesTogether(t *testing.T) {
	b := newBench(t, small)
	for i := uint64(1); i <= 24; i++ {
		b.append(grants(i, i))
		b.query(Filter{})
	}
	if n := len(b.oldFiles()); n != 3 {
		t.Fatalf("%d old files", n)
	}
	for _, name := range b.oldFiles() {
		info, err := os.Stat(name)
		if err != nil || info.Size() < 800 || info.Size() > 1600 {
			t.Errorf("%s has %d bytes (%v)", name, info.Size(), err)
		}
		data, _ := os.ReadFile(name)
		if n := bytes.Count(data, []byte("\n")); n%2 != 0 {
			t.Errorf("%s has half of an entry's events", name)
		}
	}
	all := b.query(Filter{})
	if last := all[len(all)-1]; At(&last) != (Position{24, 1}) || len(all) < 16 {
		t.Errorf("query gives %s", positions(all))
	}
	if !slices.IsSortedFunc(all, func(x, y task.Event) int { return cmpPos(At(&x), At(&y)) }) {
		t.Errorf("out of order: %s", positions(all))
	}
	b.restart()
	if again := b.query(Filter{}); positions(again) != positions(all) {
		t.Errorf("after a restart: %s", positions(again))
	}
}

func cmpPos(a, b Position) int {
	switch {
	case a.Less(b):
		return -1
	case b.Less(a):
		return 1
	}
	return 0
}

func TestRotationByAgeUsesThisMachinesWallClock(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 1))
	b.query(Filter{})
	b.clock.Shift(8 * 24 * time.Hour)
	b.append(grants(2, 2))
	b.query(Filter{})
	if n := len(b.oldFiles()); n != 1 {
		t.Fatalf("%d old files after a week", n)
	}
	b.restart()
	b.clock.Shift(-30 * 24 * time.Hour) // set back: no harm, and no rotation before a week from then
	b.append(grants(3, 3))
	b.query(Filter{})
	b.clock.Shift(6 * 24 * time.Hour)
	b.append(grants(4, 4))
	b.query(Filter{})
	if n := len(b.oldFiles()); n != 1 {
		t.Fatalf("%d old files", n)
	}
	b.clock.Shift(2 * 24 * time.Hour)
	b.append(grants(5, 5))
	b.wantPositions(Filter{}, "1.0 1.1 2.0 2.1 3.0 3.1 4.0 4.1 5.0 5.1")
	if n := len(b.oldFiles()); n != 2 {
		t.Fatalf("%d old files", n)
	}
}

func TestCrashBetweenRenameAndTheNewFile(t *testing.T) {
	b := newBench(t)
	b.append(grants(1, 3))
	b.stop()
	if err := os.Rename(b.path(), filepath.Join(b.cfg.Dir, oldName(1, b.clock.Wall()))); err != nil {
		t.Fatal(err)
	}
	b.open()
	if got := b.Last(); got != (Position{3, 1}) {
		t.Errorf("the log ends at %s", got)
	}
	b.append(grants(2, 4))
	b.wantPositions(Filter{}, "1.0 1.1 2.0 2.1 3.0 3.1 4.0 4.1")
}
