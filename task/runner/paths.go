package runner

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"lanjobs/task"
)

// The runner's folder:
//
//	attempt/X/            LANJOBS_DIR of execution X, removed by Forget; beside it X.checkpoint, X.seq, X.range, X.output, X.stop, X.script
//	log/X.0 …             its output, kept until Sweep
//	guard/ID.journal      what guard ID holds; ID.log its own words
//	spare/                empty private directories of earlier attempts, to be used again
//	s/                    sockets: X of attempts, g-ID of guards; elsewhere if that would be too long a path

// paths are the places of one attempt.
type paths struct {
	dir, checkpoint, seq, rng, output, stop, script, socket string
	tainted                                                 bool // some process would not die and may still stand in dir
}

func (r *Runner) paths(x task.ExecutionID) paths {
	base := filepath.Join(r.cfg.Dir, "attempt", string(x))
	return paths{
		dir: base, checkpoint: base + ".checkpoint", seq: base + ".seq", rng: base + ".range", output: base + ".output", stop: base + ".stop", script: base + ".script",
		socket: filepath.Join(r.sockets, string(x)),
	}
}

// scriptIn is the script file that a command line names, "" if there is none.
func (p paths) scriptIn(args []string) string {
	if n := len(args); n > 0 && strings.HasPrefix(args[n-1], p.script) {
		return args[n-1]
	}
	return ""
}

// remove drops all of it, the directory into spares if it is as it was.
func (p paths) remove(spares *spareDirs) error {
	var errs []error
	if p.tainted || !spares.give(p.dir) {
		errs = append(errs, os.RemoveAll(p.dir))
	}
	names := []string{p.checkpoint, p.seq, p.rng, p.output, p.stop}
	for _, suffix := range scriptSuffixes() {
		names = append(names, p.script+suffix)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func logDir(dir string) string { return filepath.Join(dir, "log") }

func (r *Runner) logDir() string { return logDir(r.cfg.Dir) }

// maxSocketPath is what macOS takes; Linux takes 107 (UX 3).
const maxSocketPath = 103

// longestSocketName is a guard's or that of the largest token.
const longestSocketName = len("x3w5e11264sgsf")

// socketDir finds a folder of ours for sockets whose paths stay short enough, wherever the data folder is. It depends on the data
// folder alone, so that a restarted agent finds the same one.
func socketDir(dir string) (string, error) {
	own := filepath.Join(dir, "s")
	if len(own)+1+longestSocketName <= maxSocketPath {
		return own, os.MkdirAll(own, 0o700)
	}
	parent := "/tmp" // not TMPDIR, which differs between a service and a shell
	if runtime.GOOS == "windows" {
		parent = os.TempDir()
	}
	sum := sha256.Sum256([]byte(dir))
	short := filepath.Join(parent, fmt.Sprintf("lanjobs-%d-%x", os.Getuid(), sum[:4]))
	if len(short)+1+longestSocketName > maxSocketPath {
		return "", fmt.Errorf("the data folder's path is too long for sockets (%d bytes; %d are possible), so is %s", len(dir), maxSocketPath, parent)
	}
	if err := os.Mkdir(short, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	return short, checkPrivate(short)
}

// checkPrivate: in a folder that all users may write to, somebody else may have been first.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || runtime.GOOS != "windows" && (info.Mode().Perm()&^0o011 != 0o700 || !ownedByUs(info)) {
		return fmt.Errorf("%s is not a private folder of this user: remove it", dir)
	}
	return nil
}

// listenUnix makes a socket that only this user can use; what a dead process left at the path is replaced.
func listenUnix(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// readRegular reads a file that a task may have replaced by something that never ends, or never begins.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > 2*task.MaxCheckpointBytes {
		return nil, fmt.Errorf("%s is not a file of ours: %w", path, task.ErrInvalid)
	}
	return os.ReadFile(path)
}

// writeWhole writes a file in one step: who waits for it to appear never reads half of it. What a full disk took of it is removed.
func writeWhole(path string, data []byte, mode os.FileMode) error {
	next := path + unfinished
	err := os.WriteFile(next, data, mode)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

// unfinished ends the names of files that are still being written.
const unfinished = ".new"
