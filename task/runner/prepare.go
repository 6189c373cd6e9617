package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"lanjobs/task"
)

// record is what the agent must know again after a restart. The guard keeps it; it holds no secret of the job and no Boot value.
type record struct {
	Assignment task.Assignment // without the checkpoint's data, which lies in its file
	JobName    string
	Stage      string
	Shards     int
	Item       string
	Queue      string
	Node       string
	Workdir    string
	// StallTimeout is here so that the endpoint knows whether anybody asks for signs of life.
	StallTimeout task.Millis `json:",omitempty"`
	URL          string      `json:",omitempty"` // Windows: where its endpoint was, to be there again
	Secret       string      `json:",omitempty"`
	Owner        owner       `json:",omitzero"` // whom it runs as, if that is not the node's own user
}

func newRecord(a *task.Assignment, spec *task.Spec, node string) (*record, *task.StageSpec, error) {
	if a.Stage < 0 || a.Stage >= len(spec.Stages) {
		return nil, nil, fmt.Errorf("assignment %s: job has no stage %d: %w", a.Execution(), a.Stage, task.ErrInvalid)
	}
	stage := &spec.Stages[a.Stage]
	r := &record{Assignment: *a, JobName: spec.Name, Stage: stage.Name, Shards: a.Of, Item: a.Item, Queue: spec.Queue, Node: node,
		StallTimeout: stage.StallTimeout}
	if a.Checkpoint != nil {
		r.Assignment.Checkpoint = &task.Checkpoint{Seq: a.Checkpoint.Seq}
	}
	if a.Of > 0 {
		return r, stage, nil
	}
	// A leader of before stages could get their shards late: the spec says it all.
	r.Shards = stage.Shards
	if len(stage.Items) > 0 {
		if a.Shard < 0 || a.Shard >= len(stage.Items) {
			return nil, nil, fmt.Errorf("assignment %s: stage has no item %d: %w", a.Execution(), a.Shard, task.ErrInvalid)
		}
		r.Item = stage.Items[a.Shard]
	}
	return r, stage, nil
}

// prepare makes an attempt's private directory and checks everything that can be checked before its start, so that a fault has
// the words of a person. What it returns is a *startError if the job or this machine is at fault, else the runner itself is.
func (r *Runner) prepare(rec *record, u *taskUser, stage *task.StageSpec, files []task.File, cp *task.Checkpoint) (*launch, error) {
	p := r.paths(rec.Assignment.Execution())
	if err := r.spares.take(p.dir); err != nil {
		return nil, err
	}
	if cp != nil {
		if err := saveCheckpoint(p, rec.Owner, cp); err != nil {
			return nil, err
		}
	}
	if err := r.checkPaths(stage.Paths); err != nil { // before anything that may be on one of them
		return nil, err
	}
	if err := r.checkEnvFiles(stage.EnvFiles); err != nil {
		return nil, err
	}
	if err := u.mayHave(stage, len(files)); err != nil {
		return nil, err
	}
	v, err := buildEnv(r.baseFor(u), r.cfg.Exe, stage, ownVars(rec, p))
	if err != nil {
		return nil, cannotStart(126, "%v", err)
	}
	dir := p.dir
	if err := r.checkPrograms(stage.Programs, v, dir); err != nil {
		return nil, err
	}
	if stage.Workdir != "" {
		if dir, err = r.checkWorkdir(v.expand(stage.Workdir)); err != nil {
			return nil, err
		}
	}
	rec.Workdir = dir
	v.set("PWD", dir)
	if err := writeFiles(dir, files, sharedSuffix(dir, p)); err != nil {
		return nil, err
	}
	if err := r.checkProgram(stage, v, dir); err != nil {
		return nil, err
	}
	program, args, err := buildCommand(stage, v, dir, p.script)
	if err != nil {
		return nil, err
	}
	if err := u.hand(p, p.scriptIn(args)); err != nil {
		return nil, err
	}
	l := &launch{User: u, Path: program, Args: args, Env: v.environ(), Dir: dir, Mark: markName + "=" + p.dir, StopFile: p.stop,
		Timeout: stage.Timeout, StopGrace: stage.Lease.StopGrace, StallTimeout: stage.StallTimeout, Limits: limitsOf(stage.Resources)}
	return l, noZeroBytes(l)
}

// saveCheckpoint: the number first. If we die in between, the next checkpoint must not get a number that was used already.
func saveCheckpoint(p paths, o owner, cp *task.Checkpoint) error {
	if err := writeWhole(p.seq, strconv.AppendUint(nil, cp.Seq, 10), 0o600); err != nil {
		return err
	}
	if o == (owner{}) {
		return writeWhole(p.checkpoint, cp.Data, 0o600)
	}
	next := p.checkpoint + unfinished
	err := errors.Join(os.WriteFile(next, cp.Data, 0o600), o.give(next))
	if err == nil {
		err = os.Rename(next, p.checkpoint)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

// loadCheckpoint gives the last one that was accepted, nil if none.
func loadCheckpoint(p paths) *task.Checkpoint {
	text, err := readRegular(p.seq)
	if err != nil {
		return nil
	}
	seq, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return nil
	}
	data, err := readRegular(p.checkpoint)
	if err != nil {
		return nil
	}
	return &task.Checkpoint{Seq: seq, Data: data}
}

// noZeroBytes: the kernel would end a text there.
func noZeroBytes(l *launch) error {
	for _, s := range l.Args {
		if strings.IndexByte(s, 0) >= 0 {
			return cannotStart(126, "argument %q holds a zero byte", s)
		}
	}
	for _, s := range l.Env {
		if strings.IndexByte(s, 0) >= 0 {
			name, _, _ := strings.Cut(s, "=")
			return cannotStart(126, "variable %s holds a zero byte", name)
		}
	}
	return nil
}

// checkWorkdir: an absolute directory that exists and may be entered; nothing is run elsewhere instead (C60).
func (r *Runner) checkWorkdir(dir string) (string, error) {
	switch {
	case strings.HasPrefix(dir, "~"):
		return "", cannotStart(126, "workdir %q: ~ is not expanded, since jobs may run as different users; write the whole path or ${HOME}", dir)
	case !filepath.IsAbs(dir):
		return "", cannotStart(126, "workdir %q is not an absolute path", dir)
	}
	err := r.ask("workdir "+dir, func() error { return enterable(dir) })
	switch {
	case errors.Is(err, errNoAnswer):
		return "", r.noAnswer("workdir " + dir)
	case errors.Is(err, fs.ErrNotExist):
		return "", cannotStart(126, "no such directory %s on %s", dir, r.cfg.NodeName)
	case err != nil:
		return "", cannotStart(126, "workdir %s on %s: %v", dir, r.cfg.NodeName, reason(err))
	}
	return dir, nil
}

func enterable(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("not a directory")
	case !mayExecute(dir):
		return errors.New("permission denied (no right to enter)")
	}
	return nil
}

// writeFiles puts the job's files into the working directory; they cannot leave it, not by a link either. A directory that
// other shards may be using gets each file in one step, and only if it is not there already.
func writeFiles(dir string, files []task.File, suffix string) error {
	if len(files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cannotStart(126, "workdir %s: %v", dir, reason(err))
	}
	defer func() { _ = root.Close() }()
	for _, f := range files {
		if err := writeFile(root, f, suffix); err != nil {
			return cannotStart(126, "file %s of the job: %v", f.Name, err)
		}
	}
	return nil
}

// sharedSuffix is the end of the temporary names in a directory that is not the attempt's own, "" if it is.
func sharedSuffix(dir string, p paths) string {
	if dir == p.dir {
		return ""
	}
	return "." + filepath.Base(p.dir) + ".new"
}

func writeFile(root *os.Root, f task.File, suffix string) error {
	mode := fs.FileMode(f.Mode).Perm()
	if mode == 0 {
		mode = 0o644
	}
	if parent := path.Dir(f.Name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	name := f.Name + suffix
	if suffix != "" {
		if info, err := root.Stat(f.Name); err == nil && info.Mode().Perm() == mode {
			if have, err := root.ReadFile(f.Name); err == nil && bytes.Equal(have, f.Data) {
				return nil
			}
		}
	}
	if err := root.WriteFile(name, f.Data, mode); err != nil {
		return err
	}
	if err := root.Chmod(name, mode); err != nil { // whatever the umask says
		return err
	}
	if suffix == "" {
		return nil
	}
	return root.Rename(name, f.Name)
}
