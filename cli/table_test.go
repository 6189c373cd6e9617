package cli

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lanjobs/task"
	"lanjobs/transport"
)

// TestNarrowTables: on a narrow terminal nothing is cut, least of all what to type.
func TestNarrowTables(t *testing.T) {
	b := newBench(t)
	home(b)
	b.api.view.Nodes[0].Name = "laptop-of-the-marketing-department-in-berlin"
	b.api.why = []transport.WhyView{
		{Stage: "main", Shards: "2-99", Node: "laptop-of-the-marketing-department-in-berlin", Why: "does not meet gpu=true", Fix: "if it does: lanjobs node label laptop-of-the-marketing-department-in-berlin gpu=true"},
		{Stage: "main", Shards: "2-99", Node: "nas", Why: "is full (2/2)"},
	}
	b.w.outTTY, b.env["NO_COLOR"] = true, "1"
	var all strings.Builder
	for _, width := range []int{60, 100, 24} {
		b.w.size = func() (int, int) { return width, 40 }
		for _, args := range [][]string{{"status"}, {"show", "j7k3q9", "--why"}, {"ls"}} {
			b.expect(exitDone, args...)
			all.WriteString("$ lanjobs " + strings.Join(args, " ") + "      # " + itoa(width) + " columns\n" + b.out.String() + "\n")
			for l := range strings.Lines(b.out.String()) {
				if wide(strings.TrimSuffix(l, "\n")) > width {
					t.Errorf("%d columns: %q", width, l)
				}
			}
		}
	}
	golden(t, "narrow.txt", all.String())
}

// TestTablesKeepTheirText: however narrow the terminal, every cell is there, in lines that fit.
func TestTablesKeepTheirText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &screen{utf8: true, width: rapid.IntRange(2, 90).Draw(t, "width")}
		text := rapid.StringMatching(`([a-z日本語é\-/]{1,30} ?){0,4}`)
		n := rapid.IntRange(1, 9).Draw(t, "columns")
		var tab table
		for range n {
			tab.head = append(tab.head, rapid.StringMatching(`[A-Z]{0,9}`).Draw(t, "head"))
		}
		letters := map[rune]int{}
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			var row []cell
			for range n {
				c := strings.TrimSpace(text.Draw(t, "cell"))
				row = append(row, cell{text: c})
				for _, r := range c {
					letters[r]++
				}
			}
			tab.rows = append(tab.rows, row)
		}
		for _, h := range tab.head {
			for _, r := range h {
				letters[r]++
			}
		}
		for _, l := range s.lines(tab) {
			if s.width >= 24 && wide(l) > s.width {
				t.Fatalf("%d columns: %q", s.width, l)
			}
			for _, r := range l {
				letters[r]--
			}
		}
		for r, left := range letters {
			if r != ' ' && left > 0 {
				t.Fatalf("%q is lost %d times", r, left)
			}
		}
	})
}

// TestWideSigns: columns stay in line below Chinese and Japanese names and accents that combine.
func TestWideSigns(t *testing.T) {
	s := &screen{utf8: true}
	lines := s.lines(table{head: []string{"A", "B"}, rows: [][]cell{cells("日本", "x"), cells("e\u0301a", "x"), cells("abcd", "x")}})
	for _, l := range lines[1:] {
		if head, _, _ := strings.Cut(l, "x"); wide(head) != 6 {
			t.Errorf("%q: the second column begins at %d", l, wide(head))
		}
	}
	if got := s.clip("日本語", 5); wide(got) > 5 || !strings.HasSuffix(got, "…") {
		t.Errorf("clipped to %q", got)
	}
}

// TestProgressKeepsCommands: the note of a job that waits is whole on a narrow terminal.
func TestProgressKeepsCommands(t *testing.T) {
	s := &screen{utf8: true, width: 60}
	note := "lanjobs schedule resume a-rather-long-name"
	lines := s.lines(jobTable([]task.JobView{{ID: "j7k3q9", Name: "transcode", State: task.JobRunning, Note: note}}))
	if !strings.Contains(strings.Join(lines, "\n"), note) {
		t.Errorf("%q", lines)
	}
}
