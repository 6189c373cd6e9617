package jobfile

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"lanjobs/task"
)

// pairs types env and labels: free names, texts as written. YAML would read NO as false, 1.10 as 1.1 and 22:22 as a
// number of minutes; here they stay what they are, and so do null and ~. Nothing at all is the empty text.
func (l *loader) pairs(s *scope, k *key, n *yaml.Node, field string) any {
	v := deref(n)
	path := join(s.path, field)
	switch {
	case empty(v):
		return []task.KV(nil)
	case v.Kind == yaml.SequenceNode:
		hint := like(k)
		if len(v.Content) > 0 {
			if name, value, ok := strings.Cut(deref(v.Content[0]).Value, "="); ok {
				hint = fmt.Sprintf("write %s: {%s: %s}", k.name, name, quote(value))
			}
		}
		l.faultAt(n, path, field+" takes names with values, not a list", hint)
		return nil
	case v.Kind != yaml.MappingNode:
		l.mistyped(n, path, field+" takes names with values", k)
		return nil
	}
	out := []task.KV(nil)
	for _, e := range l.entries(v, path) {
		item := join(path, e.name)
		value := deref(e.value)
		l.places[item] = e.key
		if value.Kind != yaml.ScalarNode {
			l.faultAt(e.value, item, fmt.Sprintf("%s %s takes one text, not a list or map", field, quote(e.name)), "put it in quotes if these signs are meant")
			continue
		}
		// A key of the job that slipped one level down would be taken in silence, as an odd variable.
		if slipped := find(schema, e.name); slipped != nil && slipped.in == inWork && slipped.instead == "" && k.name == "env" && deref(e.key).Style == 0 {
			l.faultAt(e.key, item, fmt.Sprintf("%q in env is a key of the job", e.name),
				fmt.Sprintf("indent it like env, or write %q with the quotes if a variable of that name is meant", e.name))
			continue
		}
		if bad := badText(value.Value); bad != "" {
			l.faultAt(e.value, item, fmt.Sprintf("%s %s %s", field, quote(e.name), bad), "")
			continue
		}
		out = append(out, task.KV{Name: e.name, Value: value.Value})
	}
	return out
}

// list types a list of texts, as written, or of numbers.
func (l *loader) list(s *scope, k *key, n *yaml.Node, field string) any {
	v := deref(n)
	path := join(s.path, field)
	if !empty(v) && v.Kind != yaml.SequenceNode {
		hint := like(k)
		if v.Kind == yaml.ScalarNode && !strings.ContainsAny(v.Value, "\n\"'[]{},") && len(v.Value) < 60 {
			hint = fmt.Sprintf("write %s: [%s]", k.name, v.Value)
			if k.name == "command" {
				hint = fmt.Sprintf("write command: [%s], or run: %s for a shell", strings.Join(strings.Fields(v.Value), ", "), v.Value)
			}
		}
		l.faultAt(n, path, field+" takes a list", hint)
		return nil
	}
	texts, numbers := []string{}, []int{}
	for i, c := range v.Content {
		item := fmt.Sprintf("%s[%d]", path, i)
		e := deref(c)
		l.places[item] = c
		switch {
		case e.Kind != yaml.ScalarNode:
			l.faultAt(c, item, field+" takes a flat list of texts", "a text with signs like { [ : needs quotes")
		case k.kind == kindInts:
			if code, ok := integer(e.Value); ok {
				numbers = append(numbers, code)
			} else {
				l.faultAt(c, item, fmt.Sprintf("%s %s is not a whole number", field, quote(e.Value)), suggestNumber(e.Value))
			}
		case empty(e):
			l.faultAt(c, item, field+" has an empty entry", `write "" if the empty text is meant`)
		default:
			if bad := badText(e.Value); bad != "" {
				l.faultAt(c, item, fmt.Sprintf("%s: entry %d %s", field, i+1, bad), "")
			}
			texts = append(texts, e.Value)
		}
	}
	if k.kind == kindInts {
		return numbers
	}
	return texts
}

// shards types the map form, which takes exactly one of its keys.
func (l *loader) shards(s *scope, k *key, n, v *yaml.Node) {
	l.walk(s, k.sub, v, k.name)
	path := join(s.path, k.name)
	first, beside, found := "", (*key)(nil), false
	for _, e := range l.entries(v, path) {
		sub := find(k.sub, e.name)
		switch {
		case sub == nil || sub.unbuilt || sub.instead != "":
			found = true // told already
		case e.name == "size" || e.name == "weights":
			beside = sub
		case first != "":
			l.faultAt(e.key, path, fmt.Sprintf("shards takes one of %s and %s, not both", first, e.name), "")
		default:
			first, found = e.name, true
		}
	}
	switch {
	case !found && beside != nil:
		l.faultAt(n, path, fmt.Sprintf("shards.%s stands beside another key, which is missing", beside.name), like(beside))
	case !found:
		l.mistyped(n, path, "shards has none of count, items, files, lines, range, from", k)
	}
}

// filled tells whether the value of stages or jobs has the one's kind and anything in it; who wrote it as the other is told so.
func (l *loader) filled(v, n *yaml.Node, k *key, kind yaml.Kind, takes, other string) bool {
	switch {
	case v.Kind == kind && len(v.Content) > 0:
		return true
	case v.Kind == kind:
		l.mistyped(n, k.name, k.name+" is empty", k)
	case v.Kind == yaml.SequenceNode || v.Kind == yaml.MappingNode:
		l.faultAt(n, k.name, k.name+" takes "+takes, other)
	default:
		l.faultAt(n, k.name, k.name+" takes "+takes, like(k))
	}
	return false
}

// stages types the list of stages.
func (l *loader) stages(v, n *yaml.Node, k *key) any {
	if !l.filled(v, n, k, yaml.SequenceNode, "a list", "names with stages, in any order, are jobs: {…}") {
		return nil
	}
	var out []*scope
	for i, c := range v.Content {
		if i == task.MaxStages {
			l.faultAt(c, k.name, fmt.Sprintf("more than %d stages", task.MaxStages), "")
			break
		}
		out = append(out, l.stage(fmt.Sprintf("stages[%d]", i), inStage, c, c))
	}
	return out
}

// jobs types the map of stages. They keep the order of the file.
func (l *loader) jobs(v, n *yaml.Node, k *key) any {
	if !l.filled(v, n, k, yaml.MappingNode, "names with their work", "a list, in order, is stages: […]") {
		return nil
	}
	var out []*scope
	for i, e := range l.entries(v, k.name) {
		if i == task.MaxStages {
			l.faultAt(e.key, k.name, fmt.Sprintf("more than %d jobs", task.MaxStages), "")
			break
		}
		s := l.stage(join(k.name, e.name), inJob, e.key, e.value)
		s.name = e.name
		l.places[join(s.path, "name")] = e.key
		out = append(out, s)
	}
	return out
}

// stage types one stage. at is where the stage as a whole is found: its key, or itself in a list.
func (l *loader) stage(path string, in where, at, n *yaml.Node) *scope {
	s := &scope{path: path, values: map[string]any{}}
	l.places[path] = at
	v := deref(n)
	if v.Kind != yaml.MappingNode {
		l.faultAt(n, path, path+" takes a map of keys", "as in {run: ./a.sh}")
		return s
	}
	l.walk(s, keysIn(in), v, "")
	s.name, _ = s.values["name"].(string)
	return s
}
