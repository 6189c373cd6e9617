package jobfile

import (
	"fmt"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// Bounds for aliases. A file of the largest size without any has less than half as many nodes.
const (
	maxAliasDepth = 50
	maxNodes      = 500_000
)

// survey is what a node grows to once its aliases are followed.
type survey struct {
	nodes int // in all, itself included
	depth int // aliases within aliases
	open  bool
}

// bounded checks, before anything follows an alias, that following all of them ends and stays small. It visits each node
// of the file once, so that a bomb costs no more than its text.
func (l *loader) bounded(root *yaml.Node) bool {
	seen := map[*yaml.Node]*survey{} // of anchored nodes
	ok := true
	var deep, big *yaml.Node // the first nodes beyond the bounds
	var visit func(n *yaml.Node) survey
	visit = func(n *yaml.Node) survey {
		if n.Kind == yaml.AliasNode {
			s := seen[n.Alias]
			if s == nil || s.open {
				l.faultAt(n, "", fmt.Sprintf("%q is used inside itself", n.Value), "")
				ok = false
				return survey{nodes: 1}
			}
			if s.depth+1 > maxAliasDepth && deep == nil {
				deep = n
			}
			return survey{nodes: s.nodes, depth: s.depth + 1}
		}
		s := &survey{nodes: 1, open: true}
		if n.Anchor != "" {
			seen[n] = s
		}
		if n.Style&yaml.TaggedStyle != 0 && n.Tag != "!!str" && n.Tag != "!!map" && n.Tag != "!!seq" {
			l.faultAt(n, "", fmt.Sprintf("the tag %s has no meaning in a job file", quote(n.Tag)), "remove it")
			ok = false
		}
		for _, c := range n.Content {
			inner := visit(c)
			if s.nodes = min(s.nodes+inner.nodes, maxNodes+1); s.nodes > maxNodes && big == nil {
				big = c
			}
			s.depth = max(s.depth, inner.depth)
		}
		s.open = false
		return *s
	}
	visit(root)
	if deep != nil {
		l.faultAt(deep, "", fmt.Sprintf("aliases (*name) more than %d deep inside each other", maxAliasDepth), "write the values out")
	}
	if big != nil {
		l.faultAt(big, "", fmt.Sprintf("aliases (*name) make this file grow to more than %d values", maxNodes), "write the values out")
	}
	return ok && deep == nil && big == nil
}

// deref follows an alias to its node. bounded has shown that this ends.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// entry is one key of a map with its value. The value may be an alias: its place is where it is used.
type entry struct {
	name       string
	key, value *yaml.Node
}

// entries lists the keys of a map: its own in file order, then those that << brings and it has not. A key given twice is a
// fault; which of the two was meant nobody can know.
func (l *loader) entries(n *yaml.Node, path string) []entry {
	var out []entry
	first := map[string]*yaml.Node{}
	var merges []*yaml.Node
	var merge *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := deref(n.Content[i]), n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			l.faultAt(n.Content[i], path, "a key must be a plain word, not a list or map", "")
			continue
		}
		if k.Tag == "!!merge" {
			if merge != nil {
				l.twice(k, merge, path)
				continue
			}
			merge, merges = k, l.merged(v, path)
			continue
		}
		if f := first[k.Value]; f != nil {
			l.twice(k, f, path)
			continue
		}
		first[k.Value] = k
		out = append(out, entry{k.Value, n.Content[i], v})
	}
	for _, m := range merges {
		for _, e := range l.entries(m, path) {
			if first[e.name] == nil {
				first[e.name] = e.key
				out = append(out, e)
			}
		}
	}
	return out
}

func (l *loader) twice(second, first *yaml.Node, path string) {
	l.faultAt(second, join(path, second.Value),
		fmt.Sprintf("key %s is given twice, first at line %d", quote(second.Value), first.Line), "remove one of them")
}

// merged gives the maps that << names: one, or a list of which the earlier win.
func (l *loader) merged(v *yaml.Node, path string) []*yaml.Node {
	list := []*yaml.Node{v}
	if n := deref(v); n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	var out []*yaml.Node
	for _, m := range list {
		if deref(m).Kind != yaml.MappingNode {
			l.faultAt(m, path, "<< takes a map or a list of maps", "as in <<: *base, with x-base: &base {…} at the top level")
			continue
		}
		out = append(out, deref(m))
	}
	return out
}

// placeOf is where a node stands and how much of its line it fills.
func placeOf(n *yaml.Node, lines []string) place {
	p := place{n.Line, n.Column, 1}
	switch {
	case n.Kind == yaml.AliasNode:
		p.width = 1 + utf8.RuneCountInString(n.Value)
	case n.Kind != yaml.ScalarNode || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
	case n.Line > 0 && n.Line <= len(lines):
		if len(lines[n.Line-1]) > longestExcerpt*utf8.UTFMax {
			break // nothing will be underlined in it
		}
		line := []rune(lines[n.Line-1])
		if n.Column > len(line) {
			break
		}
		rest := string(line[n.Column-1:])
		switch n.Style &^ yaml.TaggedStyle {
		case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle:
			p.width = quotedWidth(rest)
		default:
			// From an anchor or tag before the value to its end; a plain text of several lines fills its first.
			value, _, _ := strings.Cut(n.Value, "\n")
			end := max(strings.Index(rest, value), 0) + len(value)
			p.width = max(utf8.RuneCountInString(strings.TrimRight(rest[:min(end, len(rest))], " ")), 1)
		}
	}
	return p
}

// quotedWidth is the width of a quoted text in runes, to the end of the line if it goes on.
func quotedWidth(rest string) int {
	mark, escaped := rune(0), false
	n := 0
	for _, r := range rest {
		n++
		switch {
		case mark == 0:
			if r == '"' || r == '\'' {
				mark = r
			}
		case escaped:
			escaped = false
		case r == '\\' && mark == '"':
			escaped = true
		case r == mark:
			return n
		}
	}
	return n
}

// join makes a path of a map's path and a key.
func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
