package jobfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxVisited bounds the directory entries that one pattern looks at.
const maxVisited = 2_000_000

var errVisited = fmt.Errorf("looks at more than %d files", maxVisited)

// globber finds the files that a pattern means. In a pattern * ? [a-z] stay within one name and ** is any number of
// directories, none included. As in a shell, a name that begins with a dot must be asked for with a dot: on shared
// folders they are the shadows that file managers leave. ** does not follow links, which may lead round in circles.
type globber struct {
	fsys    fs.FS
	visited int
	found   []string
}

// glob lists the regular files, links to such included, in no order and perhaps twice.
func glob(fsys fs.FS, pattern string) ([]string, error) {
	parts := strings.Split(pattern, "/")
	for _, p := range parts {
		if _, err := path.Match(p, ""); err != nil {
			return nil, errors.New("is not a pattern: [ without ]")
		}
	}
	g := &globber{fsys: fsys}
	err := g.match(".", slices.Compact(parts)) // ** after ** means nothing new, and costs
	return g.found, err
}

func (g *globber) match(dir string, parts []string) error {
	name, rest := parts[0], parts[1:]
	if name == "**" {
		return g.deep(dir, rest)
	}
	if !strings.ContainsAny(name, `*?[\`) {
		return g.step(path.Join(dir, name), rest, nil)
	}
	list, err := g.read(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if ok, _ := path.Match(name, e.Name()); !ok || e.Name()[0] == '.' && name[0] != '.' {
			continue
		}
		if err := g.step(path.Join(dir, e.Name()), rest, e); err != nil {
			return err
		}
	}
	return nil
}

// step takes one name that fits: a file at the end of the pattern, a directory before it. e saves a look at the disk.
func (g *globber) step(name string, rest []string, e fs.DirEntry) error {
	if e != nil && e.Type().IsRegular() {
		if len(rest) == 0 {
			g.found = append(g.found, name)
		}
		return nil
	}
	info, err := fs.Stat(g.fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // or a link that leads nowhere
	case err != nil:
		return err
	case len(rest) == 0 && info.Mode().IsRegular():
		g.found = append(g.found, name)
	case len(rest) > 0 && info.IsDir():
		return g.match(name, rest)
	}
	return nil
}

// deep matches the rest of the pattern in a directory and all below it.
func (g *globber) deep(dir string, rest []string) error {
	if len(rest) == 0 {
		rest = []string{"*"}
	}
	if err := g.match(dir, rest); err != nil {
		return err
	}
	list, err := g.read(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.IsDir() && e.Name()[0] != '.' {
			if err := g.deep(path.Join(dir, e.Name()), rest); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *globber) read(dir string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(g.fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if g.visited += len(list); g.visited > maxVisited {
		return nil, errVisited
	}
	return list, err
}
