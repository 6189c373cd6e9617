package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"

	"lanjobs/task"
)

// maxFaults bounds what one answer tells; a person mends the first ones and tries again.
const maxFaults = 100

// andMore stands at the end of a list of faults that was cut.
const andMore = "and more"

// longestExcerpt bounds the source lines shown, in runes: beyond it the underline could not be on the screen.
const longestExcerpt = 200

// place is where something stands in the file; line 0 is the whole file.
type place struct{ line, column, width int }

// faults collects what is wrong.
type faults struct {
	lines []string // the file
	all   []task.Fault
	more  bool // there are more than maxFaults
	seen  map[string]bool
	bad   map[string]bool // paths that have a fault: what follows from them is no news
}

// fault adds one at a place.
func (f *faults) fault(p place, path, message, suggestion string) {
	// A map used by two stages through an alias is one text with one fault.
	id := fmt.Sprint(p.line, p.column, message)
	switch {
	case f.seen[id]:
		return
	case f.full():
		f.more = true
		return
	case path != "":
		f.bad[path] = true
	}
	f.seen[id] = true
	n := task.Fault{Line: p.line, Column: p.column, Path: path, Message: message, Suggestion: suggestion}
	if line := f.line(p.line); p.line > 0 && utf8.RuneCountInString(line) <= longestExcerpt {
		n.Excerpt, n.Width = line, max(p.width, 1)
	}
	f.all = append(f.all, n)
}

// full tells whether nothing more will be told, so that looking for it may end.
func (f *faults) full() bool { return len(f.all) >= maxFaults }

// faultAt adds one at a node.
func (f *faults) faultAt(n *yaml.Node, path, message, suggestion string) {
	p := place{n.Line, n.Column, 1}
	if !f.full() {
		p = placeOf(n, f.lines)
	}
	f.fault(p, path, message, suggestion)
}

// whole adds one about the whole file.
func (f *faults) whole(path, message, suggestion string) {
	f.fault(place{}, path, message, suggestion)
}

// line gives a line of the file, counted from 1.
func (f *faults) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return strings.TrimRight(f.lines[n-1], " \t")
}

// blamed tells whether a path, something in it or something around it has a fault already.
func (f *faults) blamed(path string) bool {
	for b := range f.bad {
		if within(path, b) || within(b, path) {
			return true
		}
	}
	return false
}

// within tells whether a path is another one or a part of it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || outer == "" || rest[0] == '.' || rest[0] == '[')
}

// sorted gives the faults in the order of the file.
func (f *faults) sorted() []task.Fault {
	slices.SortStableFunc(f.all, func(a, b task.Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if f.more {
		f.all = append(f.all, task.Fault{Message: andMore})
	}
	return f.all
}
