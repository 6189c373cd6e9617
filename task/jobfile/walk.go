package jobfile

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"lanjobs/task"
)

// scope is what one place of the file gives: the top level, a stage, one of jobs.
type scope struct {
	path   string         // "", "stages[1]", "jobs.fetch"
	name   string         // of a stage
	values map[string]any // by the key's path inside the scope: "retry.attempts"
	outer  *scope         // where to look for what is not given here
}

// file is a whole job file, typed.
type file struct {
	top    *scope
	stages []*scope // one, the top level itself, for a file with run or command
}

// notInherited are keys that mean the scope in which they stand, and no other.
var notInherited = []string{"shards", "parallelism", "success", "run", "command", "name", "needs", "when"}

func (s *scope) inherits(field string) bool {
	if s.outer == nil {
		return false
	}
	for _, k := range notInherited {
		if within(field, k) {
			return false
		}
	}
	return true
}

// given tells whether a field, or a list or map that it is a part of, is given here.
func (s *scope) given(field string) bool {
	for f := field; f != ""; f = parent(f) {
		if _, ok := s.values[f]; ok {
			return true
		}
	}
	return false
}

// owner is the path of a field in the file: where it is given, here or at the top level; else where it would be given.
func (l *loader) owner(s *scope, field string) string {
	own := join(s.path, field)
	if s.inherits(field) && l.places[own] == nil {
		outer := join(s.outer.path, field)
		if l.places[outer] != nil || !s.given(field) && s.outer.given(field) {
			return outer
		}
	}
	return own
}

// parent drops the last part of a path: retry of retry.max, needs of needs[1].
func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), strings.LastIndexByte(path, '['), 0)]
}

// get gives a value, from the outer scope if that is where it is.
func get[T any](s *scope, field string, def T) T {
	if v, ok := s.values[field].(T); ok {
		return v
	}
	if s.inherits(field) {
		return get(s.outer, field, def)
	}
	return def
}

// file walks the whole tree.
func (l *loader) file(root *yaml.Node) *file {
	f := &file{top: &scope{values: map[string]any{}}}
	l.walk(f.top, keysIn(inTop), deref(root), "")
	for _, kind := range []string{"stages", "jobs"} {
		list, _ := f.top.values[kind].([]*scope)
		for _, s := range list {
			s.outer = f.top
			f.stages = append(f.stages, s)
		}
	}
	if len(f.stages) == 0 {
		f.top.name = task.DefaultStage
		f.stages = []*scope{f.top}
	}
	return f
}

// walk types the keys of one map into a scope. field is the map's path inside the scope.
func (l *loader) walk(s *scope, keys []key, n *yaml.Node, field string) {
	for _, e := range l.entries(n, join(s.path, field)) {
		k := find(keys, e.name)
		inner := join(field, e.name)
		path := join(s.path, inner)
		switch {
		case k == nil:
			if field == "" && s.path == "" && strings.HasPrefix(e.name, "x-") {
				continue
			}
			l.unknown(s, keys, n, e, field)
			continue
		case k.unbuilt:
			l.faultAt(e.key, path, inner+" is not built yet", "")
			continue
		}
		l.places[path] = e.key
		if v := deref(e.value); v.Kind == yaml.ScalarNode && v.Value != "" {
			l.places[path] = e.value
		}
		if v := l.value(s, k, e.value, inner); v != nil {
			s.values[inner] = v
		}
	}
}

// unknown refuses a key, and blames the one that was meant, so that its absence is not told as well.
func (l *loader) unknown(s *scope, keys []key, n *yaml.Node, e entry, field string) {
	if l.full() {
		l.more = true
		return
	}
	message := "unknown key " + quote(e.name)
	if at := cmp.Or(field, s.path); at != "" {
		message += " in " + at
	}
	suggestion, near := suggestKey(keys, e.name)
	for i := 0; near != "" && i+1 < len(n.Content); i += 2 {
		if k := deref(n.Content[i]); k.Value == near {
			suggestion = fmt.Sprintf("%q is given at line %d", near, k.Line)
		}
	}
	l.faultAt(e.key, join(s.path, join(field, e.name)), message, suggestion)
	if near != "" {
		l.bad[join(s.path, join(field, near))] = true
	}
}

// value types one value; nil after a fault.
func (l *loader) value(s *scope, k *key, n *yaml.Node, field string) any {
	path := join(s.path, field)
	v := deref(n)
	switch k.kind {
	case kindStages:
		return l.stages(v, n, k)
	case kindJobs:
		return l.jobs(v, n, k)
	case kindPairs:
		return l.pairs(s, k, n, field)
	case kindTexts, kindInts:
		return l.list(s, k, n, field)
	case kindMap:
		if v.Kind == yaml.MappingNode {
			l.walk(s, k.sub, v, field)
		} else if !empty(v) {
			l.mistyped(n, path, field+" takes a map of keys", k)
		}
		return nil
	case kindShards:
		switch {
		case v.Kind == yaml.MappingNode:
			l.shards(s, k, n, v)
			return nil
		case v.Kind == yaml.SequenceNode:
			l.faultAt(n, path, "shards is a number, or a map that says which kind of list this is", "write shards: {items: […]}")
			return nil
		}
	}
	if v.Kind != yaml.ScalarNode {
		hint := like(k)
		if k.name == "run" && v.Kind == yaml.SequenceNode {
			hint = "a list of arguments is command: […]; a script is one text, after |"
		}
		l.faultAt(n, path, field+" takes one value, not a list or map", hint)
		return nil
	}
	if k.kind == kindText {
		return l.text(n, v, path, field)
	}
	if empty(v) {
		l.mistyped(n, path, field+" has no value", k)
		return nil
	}
	return l.scalar(k, n, v.Value, path, field)
}

// scalar types a number, length, share or word.
func (l *loader) scalar(k *key, n *yaml.Node, s, path, field string) any {
	say := func(what, suggestion string) any {
		l.faultAt(n, path, fmt.Sprintf("%s %s %s", field, quote(s), what), suggestion)
		return nil
	}
	switch k.kind {
	case kindInt, kindShards:
		if v, ok := integer(s); ok {
			return v
		}
		return say("is not a whole number", suggestNumber(s))
	case kindDecimal:
		if v, ok := decimal(s); ok {
			return v
		}
		return say("is not a number", suggestNumber(s))
	case kindLength:
		v, err := ParseLength(s)
		if err == nil {
			return v
		}
		return say(err.Error(), suggestLength(s, err))
	case kindPercent:
		if v, ok := percent(s); ok {
			return v
		}
		if v, ok := integer(s); ok && v <= 100 {
			return say("is not a percentage", "write "+strconv.Itoa(v)+"%")
		}
		return say("is not a percentage", "from 0 to 100%, without a fraction")
	case kindShare:
		if v, ok := share(s); ok {
			return v
		}
		return say("is neither a percentage nor a count", "write 95%, from 1% to 100%, or how many shards must succeed")
	case kindWord:
		for _, w := range k.words {
			if w == s {
				return s
			}
		}
		if k.name == "version" {
			return say("is not known here", "this lanjobs reads version 1; a newer one needs a newer lanjobs")
		}
		return say("is not known", didYouMean(k.words, s))
	}
	return nil
}

// text takes a scalar as written. A bare null is refused where it would become a value by accident: two jobs with
// "idempotency_key: null" are not meant to be one.
func (l *loader) text(n, v *yaml.Node, path, field string) any {
	if isNull(v) && v.Value != "" {
		l.faultAt(n, path, fmt.Sprintf("%s is %s", field, v.Value), `leave the line out, or put the word in quotes if it is meant`)
		return nil
	}
	if bad := badText(v.Value); bad != "" {
		l.faultAt(n, path, field+" "+bad, "")
		return nil
	}
	return v.Value
}

// empty tells whether nothing was written.
func empty(v *yaml.Node) bool { return isNull(v) && v.Value == "" }

func like(k *key) string {
	if k.like == "" {
		return ""
	}
	return "write " + k.like
}

func (l *loader) mistyped(n *yaml.Node, path, message string, k *key) {
	l.faultAt(n, path, message, like(k))
}
