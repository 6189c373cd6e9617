package jobfile

import (
	"io/fs"
	"time"

	yaml "go.yaml.in/yaml/v4"

	"lanjobs/task"
)

// Options say what a job file may refer to.
type Options struct {
	// Dir is the directory of the job file; relative names are looked up there. Empty: they are refused.
	Dir string
	// FS opens a directory, as os.DirFS does. Nil: whatever would have to be read or expanded is refused, as on a
	// server, which must not read its own files for a client.
	FS func(dir string) fs.FS
	// Set overrides the file, for all stages: "env.NAME" to a value.
	Set map[string]string
	// Now is the wall time before which a one-off schedule may not lie. The zero time: any will do.
	Now time.Time
}

// loader holds one file on its way.
type loader struct {
	faults
	name string
	o    Options
	// places are the nodes of what was given, by path: of texts and numbers the value, of lists and maps the key.
	places map[string]*yaml.Node
}

// Load parses and checks one job file. name is the file's, "-" for standard input. Either the faults or the Spec is nil.
func Load(name string, data []byte, o Options) (*task.Spec, []task.Fault) {
	l := &loader{name: name, o: o, places: map[string]*yaml.Node{},
		faults: faults{seen: map[string]bool{}, bad: map[string]bool{}}}
	root := l.tree(data)
	if root == nil || !l.bounded(root) {
		return nil, l.sorted()
	}
	if deref(root).Kind != yaml.MappingNode {
		l.faultAt(root, "", "a job file is a map of keys with values", emptyHint)
		return nil, l.sorted()
	}
	f := l.file(root)
	spec := l.build(f)
	spec.Source = string(data)
	l.rules(spec, f)
	if len(l.all) > 0 {
		return nil, l.sorted()
	}
	spec.Stages = inOrder(spec.Stages)
	return spec, nil
}

// rules applies what holds for any Spec and finds the places in this file. What follows from a fault that was told
// already is left out: with shards misspelt, "parallelism is more than shards" would send a person the wrong way.
func (l *loader) rules(spec *task.Spec, f *file) {
	check(spec, l.o.Now, func(r ruleFault) {
		if l.full() {
			l.more = true
			return
		}
		scope := f.top
		if r.stage >= 0 {
			scope = f.stages[r.stage]
		}
		for _, field := range r.fields {
			if l.blamed(l.owner(scope, field)) {
				return
			}
		}
		for _, field := range r.fields {
			path := l.owner(scope, field)
			if n := l.places[path]; n != nil {
				l.faultAt(n, path, r.message, r.suggestion)
				return
			}
		}
		path := l.owner(scope, r.fields[0])
		for p := parent(path); p != ""; p = parent(p) {
			if n := l.places[p]; n != nil {
				l.faultAt(n, path, r.message, r.suggestion)
				return
			}
		}
		l.whole(path, r.message, r.suggestion)
	})
}
