//go:build linux

package runner

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"lanjobs/task"
)

// What a stage got when it opened counts, not what its spec says.
func TestEnvironmentOfAnAssignment(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := b.assignment()
	a.Shard, a.Of, a.Item, a.Range = 5, 7, "in/a.mov", &task.ShardRange{Start: -10, End: 20}
	x := b.startAs(a, command("sh", "-c", `echo "$LANJOBS_SHARD/$LANJOBS_SHARDS $LANJOBS_ITEM_STEM $LANJOBS_RANGE_START $LANJOBS_RANGE_END"`), far())
	b.exit(x)
	if got := b.log(x, ""); got != "5/7 a -10 20\n" {
		t.Errorf("%q", got)
	}
	x, _ = b.run(script(`echo "${LANJOBS_RANGE_START-unset}${LANJOBS_RANGE_END-unset}"`))
	if got := b.log(x, ""); got != "\n" {
		t.Errorf("without a range: %q", got)
	}
}

// R35: the task hears from its own requests alone that its range has become shorter, and a later agent still knows it.
func TestRangeOfATask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := b.assignment()
	a.Of, a.Range = 1, &task.ShardRange{Start: 0, End: 100}
	x := b.startAs(a, command("sleep", "600"), far())
	ask := b.ask(x)
	say := func(what string, wantStatus int, want string, method, body string, header ...string) {
		t.Helper()
		if status, got, _ := ask(method, "range", body, header...); status != wantStatus || wantStatus == 200 && strings.TrimSpace(got) != want {
			t.Errorf("%s: %d %s, want %d %s", what, status, got, wantStatus, want)
		}
	}
	say("as assigned", 200, `{"start":0,"end":100}`, "GET", "")
	if b.backend.rangeAsked != 0 {
		t.Error("the leader was asked for what cannot have changed")
	}
	b.backend.set(func(f *fakeBackend) { f.rng = task.ShardRange{Start: 0, End: 70} })
	say("cursor", 200, `{"start":0,"end":70}`, "PUT", "40", task.HeaderRequestID, "r1")
	say("kept", 200, `{"start":0,"end":70}`, "GET", "")
	say("form", 200, `{"start":0,"end":70}`, "PUT", "cursor=41\n")
	say("no number", 400, "", "PUT", "many")
	b.backend.set(func(f *fakeBackend) { f.noLeader, f.rng.End = 1, 60 })
	say("no leader", 503, "", "PUT", "50")
	say("asked, as the cursor may have arrived", 200, `{"start":0,"end":60}`, "GET", "")
	if want := []int64{40, 41, 50}; !slices.Equal(b.backend.cursors, want) || b.backend.requests[0] != "r1" {
		t.Errorf("cursors %v, requests %q", b.backend.cursors, b.backend.requests)
	}
	var info TaskInfo
	if _, body, _ := ask("GET", "task", ""); json.Unmarshal([]byte(body), &info) != nil || info.Range == nil || info.Range.End != 60 {
		t.Errorf("task info %s", body)
	}

	if err := b.r.Close(); err != nil {
		t.Fatal(err)
	}
	b.backend.set(func(f *fakeBackend) { f.noLeader, f.rng.End = -1, 55 })
	b.open()
	say("a later agent without a leader", 200, `{"start":0,"end":60}`, "GET", "")
	b.backend.set(func(f *fakeBackend) { f.noLeader = 0 })
	say("a later agent", 200, `{"start":0,"end":55}`, "GET", "")
	b.backend.set(func(f *fakeBackend) { f.lost = true })
	say("lost lease", 409, "", "PUT", "52")
}

func TestShardWithoutARange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.start(command("sleep", "600"), far())
	ask := b.ask(x)
	for _, method := range []string{"GET", "PUT"} {
		if status, body, _ := ask(method, "range", "1"); status != 404 || !strings.Contains(body, "no range") {
			t.Errorf("%s: %d %s", method, status, body)
		}
	}
	if b.backend.rangeAsked != 0 {
		t.Error("the leader was asked")
	}
}

func TestRangeByTheHelper(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.backend.rng = task.ShardRange{Start: 3, End: 8}
	a := b.assignment()
	a.Of, a.Range = 1, &task.ShardRange{Start: 3, End: 9}
	x := b.startAs(a, command("sleep", "600"), far())
	c, err := NewTaskClient(func(name string) string {
		return map[string]string{"LANJOBS_SOCKET": b.r.paths(x).socket}[name]
	}, SystemClock())
	if err != nil {
		t.Fatal(err)
	}
	if now, err := c.Range(t.Context()); err != nil || now.End != 9 {
		t.Errorf("%v, %v", now, err)
	}
	if now, err := c.SetCursor(t.Context(), 5); err != nil || now.End != 8 {
		t.Errorf("%v, %v", now, err)
	}
	if len(b.backend.requests) != 1 || b.backend.requests[0] == "" {
		t.Errorf("a cursor without a request id: %q", b.backend.requests)
	}
	b.backend.set(func(f *fakeBackend) { f.lost = true })
	if _, err := c.SetCursor(t.Context(), 6); !errors.Is(err, task.ErrStaleToken) {
		t.Errorf("lost lease: %v", err)
	}
	path := b.r.paths(x).rng
	b.r.KillAll()
	b.exit(x)
	b.r.Forget(x)
	b.until("its range is forgotten too", func() bool { _, err := os.Stat(path); return os.IsNotExist(err) })
}
