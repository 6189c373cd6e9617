package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"lanjobs/task"
)

// What a stage needs of the machine (placement.paths, placement.programs, a shell that it names; R34) is looked for just before each start, where it
// matters, and not when the machine registers: a share comes and goes. If it is not there the attempt is given back unmet, which
// is neither a failure nor a loss.

// unmetError says which path, program or shell is not there.
type unmetError struct{ text string }

func (e *unmetError) Error() string { return e.text }

func unmet(format string, args ...any) error { return &unmetError{fmt.Sprintf(format, args...)} }

// needsDisk tells whether preparing the attempt asks file systems that may not answer.
func needsDisk(s *task.StageSpec) bool {
	return s.Workdir != "" || len(s.Paths) > 0 || len(s.Programs) > 0 || len(s.EnvFiles) > 0 || s.Run == "" && len(s.Command) > 0 && isPath(s.Command[0])
}

// isPath tells a program that is named by its place from one that is looked for on the PATH.
func isPath(program string) bool {
	return strings.ContainsRune(program, '/') || runtime.GOOS == "windows" && strings.ContainsRune(program, '\\')
}

// noAnswer is the fault of a start that a file system holds up.
func (r *Runner) noAnswer(what string) error {
	return cannotStart(126, "%s on %s does not answer for %s (a network share that is gone?)", what, r.cfg.NodeName, answerBound)
}

// checkEnvFiles sees to it that reading them does not take for ever: a share may be gone, and nobody may write to a pipe. What else is
// wrong with one is said where it is read.
func (r *Runner) checkEnvFiles(files []string) error {
	for _, name := range files {
		err := r.ask("env file "+name, func() error { return openPlain(name) })
		switch {
		case errors.Is(err, errNoAnswer):
			return r.noAnswer("env file " + name)
		case errors.Is(err, errPipe):
			return cannotStart(126, "env file %s is %v", name, err)
		}
	}
	return nil
}

var errPipe = errors.New("a pipe, not a file")

func openPlain(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		return errPipe
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer closeQuietly(f)
	_, err = f.Read(make([]byte, 1))
	return err
}

// checkProgram does the same for a program that is named by its place.
func (r *Runner) checkProgram(stage *task.StageSpec, v *vars, dir string) error {
	if stage.Run != "" || len(stage.Command) == 0 {
		return nil
	}
	path := v.expand(stage.Command[0])
	if !isPath(path) {
		return nil
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	err := r.ask("program "+path, func() error { _, err := os.Stat(path); return err })
	if errors.Is(err, errNoAnswer) {
		return r.noAnswer("program " + path)
	}
	return nil // whatever else there is, it is said where it is looked for
}

// checkPaths: directories that can be read.
func (r *Runner) checkPaths(paths []string) error {
	for _, p := range paths {
		err := r.ask("path "+p, func() error { return readableDir(p) })
		switch {
		case errors.Is(err, errNoAnswer):
			return unmet("path %s does not answer (a network share that is gone?)", p)
		case errors.Is(err, fs.ErrNotExist):
			return unmet("path %s is not there", p)
		case err != nil:
			return unmet("path %s: %v", p, reason(err))
		}
	}
	return nil
}

// checkPrograms looks for programs as the command itself would: on the PATH of the task's environment.
func (r *Runner) checkPrograms(programs []string, v *vars, dir string) error {
	if len(programs) == 0 {
		return nil
	}
	path, _ := v.get("PATH")
	err := r.ask("programs "+strings.Join(programs, "\x00")+"\x00\x00"+path+"\x00\x00"+dir, func() error {
		for _, p := range programs {
			if _, err := lookProgram(p, v, dir); err != nil {
				return unmet("program %s: %v", p, err)
			}
		}
		return nil
	})
	if errors.Is(err, errNoAnswer) {
		return unmet("programs %s: PATH does not answer (a network share that is gone?)", strings.Join(programs, ", "))
	}
	return err
}

func readableDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer closeQuietly(d)
	info, err := d.Stat()
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("not a directory")
	case !mayExecute(path):
		return errors.New("permission denied (no right to enter)")
	}
	if _, err := d.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// answerBound is how long a file system may take to answer: a dead network share would hold everything up for ever.
const answerBound = 10 * time.Second

// maxProbes bounds how many questions may be without an answer. Each holds a thread until its file system comes back.
const maxProbes = 32

// errNoAnswer: the file system has not answered in time.
var errNoAnswer = errors.New("no answer")

// probes are questions to file systems. The same question is not asked again while it waits for its answer: each attempt on a
// dead share would hold a thread more, and the machine would run out of them.
type probes struct {
	mu   sync.Mutex
	open map[string]*probe
}

type probe struct {
	done chan struct{} // closed when err is there
	err  error
}

// ask waits for the answer to a question, no longer than answerBound; then the question goes on alone.
func (r *Runner) ask(what string, question func() error) error {
	p := r.probes.begin(what, question)
	if p == nil {
		return fmt.Errorf("%w: %d others wait already", errNoAnswer, maxProbes)
	}
	select {
	case <-p.done:
		return p.err
	case <-r.clock.After(answerBound):
		return errNoAnswer
	case <-r.ctx.Done():
		return errClosed
	}
}

// begin asks, or joins whoever asks the same; nil if too many questions wait.
func (ps *probes) begin(what string, question func() error) *probe {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.open[what]; p != nil {
		return p
	}
	if len(ps.open) >= maxProbes {
		return nil
	}
	if ps.open == nil {
		ps.open = map[string]*probe{}
	}
	p := &probe{done: make(chan struct{})}
	ps.open[what] = p
	go func() { // nobody waits for it at the end: it may never come back
		p.err = question()
		ps.mu.Lock()
		delete(ps.open, what)
		ps.mu.Unlock()
		close(p.done)
	}()
	return p
}
