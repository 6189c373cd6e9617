package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"lanjobs/task"
	"lanjobs/task/jobfile"
)

func (c *call) load(name string, set map[string]string) (*task.Spec, []task.Fault, error) {
	var data []byte
	var err error
	dir := c.dir
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(c.stdin, task.MaxJobFileBytes+1))
	} else {
		file := c.inDir(name)
		dir = filepath.Dir(file)
		data, err = c.readLimited(file, task.MaxJobFileBytes+1)
	}
	if err != nil {
		return nil, nil, err
	}
	spec, faults := jobfile.Load(name, data, jobfile.Options{Dir: dir, FS: os.DirFS, Set: set, Now: c.clock.Wall()})
	return spec, faults, nil
}

// unreadable is a fault of a file of which nothing could be read.
func unreadable(name string, err error) string {
	hint := ""
	var path *fs.PathError
	switch {
	case name == "":
		return "a file without a name\n        is a variable empty? write the name of a job file, or - for standard input"
	case errors.Is(err, errDirectory):
		hint = "\n        name a job file in it"
	case errors.Is(err, fs.ErrNotExist) && errors.As(err, &path) && path.Path != name:
		hint = "\n        looked for " + path.Path
	}
	if path != nil || errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Sprintf("%s: cannot be read: %v%s", name, err, hint)
}

// inDir makes a name absolute from the directory that the command was called in.
func (c *call) inDir(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.dir, name)
}
