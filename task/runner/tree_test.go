//go:build unix

package runner

import (
	"slices"
	"testing"
)

// The guard is 10, x runs as 20, its neighbour y as 30.
func TestBelonging(t *testing.T) {
	procs := []procInfo{
		{pid: 1}, {pid: 10, ppid: 1, sid: 10},
		{pid: 20, ppid: 10, pgrp: 20, sid: 20}, // x
		{pid: 21, ppid: 20, pgrp: 20, sid: 20}, // its child
		{pid: 22, ppid: 21, pgrp: 22, sid: 22}, // in a session of its own
		{pid: 23, ppid: 10, pgrp: 20, sid: 20}, // orphan, still of its session
		{pid: 24, ppid: 10, pgrp: 24, sid: 24}, // orphan with the mark
		{pid: 25, ppid: 24, pgrp: 24, sid: 24}, // child of that, environment cleaned
		{pid: 26, ppid: 10, pgrp: 26, sid: 26}, // orphan without any sign
		{pid: 27, ppid: 1, pgrp: 27, sid: 27},  // marked, but elsewhere
		{pid: 30, ppid: 10, pgrp: 30, sid: 30}, // y
		{pid: 31, ppid: 30, pgrp: 31, sid: 31}, // its child, with x's mark by mistake
		{pid: 32, ppid: 10, pgrp: 32, sid: 32}, // y's orphan by its mark
		{pid: 33, ppid: 10, pgrp: 30, sid: 30}, // y's orphan by its session
		{pid: 40, ppid: 1, pgrp: 40, sid: 40},  // a stranger
	}
	marks := map[int]string{24: "x", 27: "x", 31: "x", 32: "y"}
	q := treeQuery{guard: 10, main: 20, mains: map[int]bool{20: true, 30: true},
		marked:  func(pid int) bool { return marks[pid] == "x" },
		claimed: func(pid int) bool { return marks[pid] != "" }}
	for _, c := range []struct {
		name   string
		change func(q treeQuery) treeQuery
		want   []int
	}{
		{"agent in place of the guard", func(q treeQuery) treeQuery { return q }, []int{20, 21, 22, 23, 24, 25}},
		{"guard", func(q treeQuery) treeQuery { q.adopt = true; return q }, []int{20, 21, 22, 23, 24, 25, 26}},
		{"wide", func(q treeQuery) treeQuery { q.wide = true; return q }, []int{20, 21, 22, 23, 24, 25, 27}},
		{"own process gone", func(q treeQuery) treeQuery { q.mains = map[int]bool{30: true}; return q }, []int{20, 21, 23, 24, 25}},
		{"y's end", func(q treeQuery) treeQuery {
			q.main = 30
			q.marked = func(pid int) bool { return marks[pid] == "y" }
			return q
		}, []int{30, 31, 32, 33}},
	} {
		var got []int
		for _, p := range belonging(procs, c.change(q)) {
			got = append(got, p.pid)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	ring := []procInfo{{pid: 50, ppid: 51}, {pid: 51, ppid: 50}}
	if got := belonging(ring, q); len(got) != 0 {
		t.Errorf("a ring: %v", got)
	}
}

func TestMarks(t *testing.T) {
	const mark = "LANJOBS_DIR=/d/attempt/x1"
	for env, want := range map[string]bool{
		mark + "\x00A=1\x00": true, "A=1\x00" + mark + "\x00": true, "A=1\x00" + mark: true, mark: true,
		"": false, mark + "2\x00": false, "X" + mark + "\x00": false, "A=" + mark + "\x00": false,
	} {
		if containsEntry(env, mark) != want {
			t.Errorf("%q: %v", env, !want)
		}
		if containsEntry(env, "") {
			t.Errorf("%q carries no mark at all", env)
		}
	}
}
