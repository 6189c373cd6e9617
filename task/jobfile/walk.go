package jobfile

import (
	"cmp"
	"fmt"
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
var notInherited = []string{"shards", "shard_key", "broadcast", "parallelism", "success", "run", "command", "name", "needs", "when"}

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
		case k.instead != "":
			l.faultAt(e.key, path, quote(e.name)+" has no meaning "+cmp.Or(inside(field), inside(s.path), "here"), k.instead)
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
	switch {
	case near != "":
	case field == "" && s.path == "" && deref(e.value).Anchor != "":
		suggestion = fmt.Sprintf("a key that only holds an anchor begins with x-: write x-%s", e.name)
	case field == "" && strings.HasPrefix(s.path, "jobs.") && e.name == "name":
		suggestion = fmt.Sprintf("the name of one of jobs is its key: %s", strings.TrimPrefix(s.path, "jobs."))
	}
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

// inside says in which map of the file something stands, "" at the top level.
func inside(path string) string {
	if path == "" {
		return ""
	}
	return "in " + path
}
