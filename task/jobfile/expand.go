package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"lanjobs/task"
)

// Files are sent and lists of shards made once, at submit, on the submitting machine: the cluster's machines need not have
// them, and a job means the same however often its shards run.

// root opens the directory in which a name or pattern is to be found and gives the rest of the name. base is the
// directory that relative names belong to.
func (l *loader) root(base, name string) (fs.FS, string, string, error) {
	slash := strings.TrimPrefix(name, "./")
	prefix := ""
	if absolute(name) {
		slash = strings.ReplaceAll(name, `\`, "/")
		prefix = slash[:strings.IndexByte(slash, '/')+1]
		slash, base = slash[len(prefix):], prefix
	}
	switch {
	case l.o.FS == nil:
		return nil, "", "", errors.New("is read on the submitting machine only, and this one is not it")
	case base == "":
		return nil, "", "", errors.New("is relative, and there is no directory it could belong to")
	case !fs.ValidPath(slash) || slash == ".":
		return nil, "", "", errors.New("is not a plain name or path: no .., no //, nothing empty")
	}
	return l.o.FS(base), slash, prefix, nil
}

// expand lists the files that patterns mean, sorted, each once, as the patterns write them.
func (l *loader) expand(s *scope, field, base string, patterns []string) []string {
	var out []string
	size := 0
	for i, p := range patterns {
		path := l.owner(s, fmt.Sprintf("%s[%d]", field, i))
		if l.bad[path] {
			continue
		}
		say := func(what, suggestion string) {
			l.faultAt(l.places[path], path, fmt.Sprintf("%s: %s %s", field, quote(p), what), suggestion)
		}
		fsys, pattern, prefix, err := l.root(base, p)
		if err != nil {
			say(err.Error(), l.serverHint())
			continue
		}
		found, err := glob(fsys, pattern)
		switch {
		case err != nil:
			say(reason(err), "")
		case len(found) == 0:
			hint := "looked in " + cmp.Or(prefix, base)
			if strings.Contains(p, `\`) && prefix == "" {
				hint = "write / between directories, on Windows too"
			}
			say("matches no file", hint)
		}
		for _, name := range found {
			size += len(name)
			if badText(name) != "" {
				say("matches a file whose name is not UTF-8: "+quote(name), "rename it")
				break
			}
			if size > task.MaxSpecBytes {
				say("matches more names than a job may hold", fmt.Sprintf("at most %d MiB of names", task.MaxSpecBytes>>20))
				break
			}
			out = append(out, prefix+name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// items are the texts of a stage's shards, none if it has only a count.
func (l *loader) items(s *scope) []string {
	if list, ok := s.values["shards.items"].([]string); ok {
		if len(list) == 0 && !l.blamed(join(s.path, "shards")) {
			p := join(s.path, "shards.items")
			l.faultAt(l.places[p], p, "shards.items is empty", "")
		}
		return some(list)
	}
	if name, ok := s.values["shards.lines"].(string); ok {
		return l.readLines(s, name)
	}
	patterns, ok := s.values["shards.files"].([]string)
	if !ok {
		return nil
	}
	base := l.o.Dir
	if w := get(s, "workdir", ""); absolute(w) {
		base = w
		if strings.Contains(w, "${") {
			p := join(s.path, "shards.files")
			l.faultAt(l.places[p], p, "shards.files looks below workdir, which holds a variable", "the list is made before variables have values: write absolute patterns and a plain workdir")
			return nil
		}
	}
	if len(patterns) == 0 && !l.blamed(join(s.path, "shards")) {
		p := join(s.path, "shards.files")
		l.faultAt(l.places[p], p, "shards.files is empty", "")
	}
	return l.expand(s, "shards.files", base, patterns)
}

// readLines gives one item per line. A line of blanks is no item: it is what the end of a file often looks like.
func (l *loader) readLines(s *scope, name string) []string {
	path := join(s.path, "shards.lines")
	say := func(what, suggestion string) []string {
		l.faultAt(l.places[path], path, fmt.Sprintf("shards.lines: %s %s", quote(name), what), suggestion)
		return nil
	}
	fsys, file, _, err := l.root(l.o.Dir, name)
	if err != nil {
		return say(err.Error(), l.serverHint())
	}
	data, _, err := readFile(fsys, file, task.MaxSpecBytes)
	if err != nil {
		return say(reason(err), "")
	}
	var out []string
	n := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(string(data), "\uFEFF"), "\n") {
		n++
		line = strings.TrimSuffix(line, "\r")
		if bad := badText(line); bad != "" {
			return say(fmt.Sprintf("line %d %s", n, bad), "")
		}
		if strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	if len(out) == 0 {
		return say("has no lines", "")
	}
	return out
}

// files reads what is sent with the job: the patterns of the top level and of all stages, together.
func (l *loader) files(f *file) []task.File {
	scopes := []*scope{f.top}
	if f.stages[0] != f.top {
		scopes = append(scopes, f.stages...)
	}
	var out []task.File
	total, known := 0, map[string]bool{}
	for _, s := range scopes {
		patterns, _ := s.values["files"].([]string)
		for i, name := range patterns {
			if absolute(name) {
				p := l.owner(s, fmt.Sprintf("files[%d]", i))
				l.faultAt(l.places[p], p, fmt.Sprintf("files: %s is absolute", quote(name)), "files is for what lies beside the job file; on a shared folder a path in the script is enough")
			}
		}
		for _, name := range l.expand(s, "files", l.o.Dir, patterns) {
			if known[name] {
				continue
			}
			known[name] = true
			data, mode, err := readFile(l.o.FS(l.o.Dir), name, task.MaxFilesBytes)
			if total += len(data); err == nil && total > task.MaxFilesBytes {
				err = task.ErrTooLarge
			}
			if err != nil {
				p := join(s.path, "files")
				l.faultAt(l.places[p], p, fmt.Sprintf("files: %s %s", quote(name), reason(err)),
					fmt.Sprintf("all files together may have %d KiB; big ones belong on a shared folder", task.MaxFilesBytes>>10))
				return out
			}
			out = append(out, task.File{Name: name, Mode: mode, Data: data})
		}
	}
	slices.SortFunc(out, func(a, b task.File) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// readFile reads a regular file of a bounded size. The kind is looked at first: a pipe would never end.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, uint32, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("is not a regular file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, 0, err
	}
	if int64(len(data)) > limit {
		return nil, 0, task.ErrTooLarge
	}
	return data, uint32(info.Mode().Perm()), nil
}

// reason puts an error of the file system into a sentence that begins with a name.
func reason(err error) string {
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read by you"
	case errors.Is(err, task.ErrTooLarge):
		return "is too large"
	case errors.As(err, &p):
		return "cannot be read: " + p.Path + ": " + p.Err.Error()
	}
	return err.Error()
}

func (l *loader) serverHint() string {
	if l.o.FS == nil {
		return "submit the file with lanjobs submit, which reads and expands it where it lies"
	}
	return ""
}
