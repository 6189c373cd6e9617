package task

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// The pieces of a range lie side by side, cover it, and none is empty.
func TestPiecesOfARange(t *testing.T) {
	for _, r := range []RangeSpec{{0, 1, 1}, {0, 10, 3}, {5, 10, 5}, {5, 11, 5}, {0, 1_000_000, 10_000}, {7, 8, MaxRange}, {0, MaxRange, MaxRange - 1}} {
		at := r.Start
		n := r.Shards()
		for i := range int(n) {
			p := r.Shard(i)
			if p.Start != at || p.Len() < 1 || p.Len() > r.Size {
				t.Fatalf("%+v: piece %d is %+v, want it to begin at %d", r, i, p, at)
			}
			at = p.End
		}
		if at != r.End {
			t.Errorf("%+v: %d pieces end at %d", r, n, at)
		}
	}
	for _, r := range []RangeSpec{{}, {5, 5, 1}, {5, 4, 1}, {0, 9, 0}, {0, 9, -1}, {0, MaxRange + 1, 1}, {math.MinInt64, math.MaxInt64, 1}} {
		if n := r.Shards(); n != 0 {
			t.Errorf("%+v: %d pieces", r, n)
		}
	}
}

func TestShardKeys(t *testing.T) {
	value := func(name string) string { return strings.ToLower(strings.TrimPrefix(name, "LANJOBS_")) }
	for template, want := range map[string]string{
		"":                                 "",
		"invoices-${LANJOBS_ITEM}":         "invoices-item",
		"${LANJOBS_STAGE}${LANJOBS_SHARD}": "stageshard",
		"${LANJOBS_NODE} $LANJOBS_ITEM ${": "${LANJOBS_NODE} $LANJOBS_ITEM ${",
		"${${LANJOBS_ITEM}":                "${item",
		"${LANJOBS_SCHEDULED_FOR":          "${LANJOBS_SCHEDULED_FOR",
		"$${LANJOBS_JOB_NAME}}":            "$job_name}",
	} {
		if got := ExpandShardKey(template, value); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
	if got := ExpandShardKey("${LANJOBS_ITEM}", func(string) string { return "${LANJOBS_SHARD}" }); got != "${LANJOBS_SHARD}" {
		t.Errorf("an item was taken for a variable: %q", got)
	}
}

// Long keys stay different, whole in their letters, and within the limit.
func TestLongShardKeys(t *testing.T) {
	key := func(item string) string {
		return ExpandShardKey("${LANJOBS_ITEM}", func(string) string { return item })
	}
	seen := map[string]int{}
	for n := range 300 {
		for _, letter := range []string{"a", "é", "日"} {
			k := key(strings.Repeat(letter, n+1))
			if len(k) > MaxShardKey || !utf8.ValidString(k) || seen[k] != 0 {
				t.Fatalf("%d times %s: %q, seen %d", n+1, letter, k, seen[k])
			}
			seen[k] = n + 1
		}
	}
	if exact := strings.Repeat("x", MaxShardKey); key(exact) != exact {
		t.Error("a key of the greatest length is changed")
	}
}

// A Spec from before resources were counted books one processor.
func TestBookedResources(t *testing.T) {
	var old StageSpec
	if err := json.Unmarshal([]byte(`{"name":"a","shards":1}`), &old); err != nil {
		t.Fatal(err)
	}
	if got := old.Resources.Booked(); got != (Resources{MilliCPU: DefaultMilliCPU}) {
		t.Errorf("got %+v", got)
	}
	if r := (Resources{MilliCPU: 500, MemoryMB: 1, DiskMB: 2}); r.Booked() != r {
		t.Errorf("changed to %+v", r.Booked())
	}
	if data, err := json.Marshal(old); err != nil || strings.Contains(string(data), "resources") {
		t.Errorf("written as %s, %v", data, err)
	}
}
