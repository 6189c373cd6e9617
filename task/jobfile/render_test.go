package jobfile

import (
	"strings"
	"testing"

	"lanjobs/task"
)

func TestUnderlineStandsBelowItsPlace(t *testing.T) {
	for _, c := range []struct {
		name, line    string
		column, width int
		want          string
	}{
		{"plain", "  atempts: 5", 3, 7, "  ^~~~~~~"},
		{"one", "a: 5", 4, 1, "   ^"},
		{"tab", "a:\t5m", 4, 2, "  \t^~"},
		{"wide letters before", "日本: 5", 5, 1, "      ^"},
		{"wide letters below", "a: 日本", 4, 2, "   ^~~~"},
		{"combining before", "cafe\u0301: 5", 8, 1, "      ^"},
		{"hidden sign before", "a\u202e: 5", 5, 1, "    ^"},
		{"behind the end", "a:", 4, 1, "   ^"},
		{"wider than the line", "a: b", 4, 9, "   ^"},
	} {
		f := task.Fault{Line: 1, Column: c.column, Width: c.width, Excerpt: c.line}
		if got := underline(f); got != c.want {
			t.Errorf("%s:\n%s\n%s\n%s", c.name, c.line, got, c.want)
		}
	}
}

func TestNothingOfTheFileReachesTheTerminalRaw(t *testing.T) {
	_, faults := Load("x", []byte("name: \"\\e[31m\"\nrun: a\nq\u202eq: 1\nenv: {\"\\e]0;x\\a\": [1], \"LANJOBS_\\u0090\": 1}\n"), Options{})
	out := Render("x", faults)
	if len(faults) != 4 || strings.ContainsAny(out, "\x1b\x07\u0090\u202e") {
		t.Errorf("got %q", out)
	}
}

func TestRenderNamesStandardInput(t *testing.T) {
	got := Render("-", []task.Fault{{Line: 2, Column: 1, Message: "m", Excerpt: "x", Width: 1}, {Message: "n", Suggestion: "s"}})
	want := "-:2:1: m\n    2 | x\n      | ^\n-: n\n        s\n2 problems in standard input; nothing was submitted.\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
