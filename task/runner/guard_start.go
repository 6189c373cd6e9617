package runner

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// build marks a binary: another one at the same path is another build, and gets a guard of its own (R47).
func (r *Runner) build() string {
	info, err := os.Stat(r.cfg.Exe)
	if err != nil {
		return "unknown"
	}
	return fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())
}

// guard is the living guard of this binary; the first start makes it. While that cannot be started (the binary is being replaced at this
// moment, or the new one is broken) a guard of before goes on taking attempts.
func (r *Runner) guard() (*link, error) {
	r.starting.Lock()
	defer r.starting.Unlock()
	build := r.build()
	if l := r.linkOf(build); l != nil {
		return l, nil
	}
	id, err := r.startGuard(build)
	if err != nil {
		if l := r.linkOf(""); l != nil {
			r.log.Warn("no guard of this binary can be started; one of before is used", "guard", l.hello.ID, "error", err)
			return l, nil
		}
		return nil, err
	}
	l, _, err := r.dialGuard(id)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.leave(l)
		return nil, errClosed
	}
	r.links[id] = l
	r.wg.Go(func() { r.listen(l) })
	return l, nil
}

// linkOf is a living guard of a binary, of any for "".
func (r *Runner) linkOf(build string) *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.links {
		if (build == "" || l.hello.Build == build) && l.out.alive() {
			return l
		}
	}
	return nil
}

// guardReady bounds a guard's start, most of which is loading the binary.
const guardReady = 20 * time.Second

// startGuard starts the detached process and returns its id when its socket answers.
func (r *Runner) startGuard(build string) (string, error) {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	id := fmt.Sprintf("%x", b)
	words, err := os.OpenFile(filepath.Join(guardDir(r.cfg.Dir), id+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return "", err
	}
	defer closeQuietly(words)
	ready, said, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer closeQuietly(ready)
	c := guardConfig{dir: r.cfg.Dir, id: id, build: build, socket: r.guardSocket(id), idle: r.cfg.GuardIdle, cgroups: !r.cfg.NoCgroups,
		cgroupBase: r.cgroups.dir}
	cmd := exec.Command(r.cfg.Exe, append(r.cfg.GuardArgs, c.args()...)...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = said, words, detached()
	err = cmd.Start()
	closeQuietly(said)
	if err != nil {
		_ = os.Remove(words.Name()) // it has said nothing
		return "", err
	}
	// Not in the group of goroutines that Close waits for: the guard outlives the agent.
	go func() { _ = cmd.Wait() }()
	if err := ready.SetReadDeadline(r.clock.Wall().Add(guardReady)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return "", err
	}
	if line, err := bufio.NewReader(ready).ReadString('\n'); err != nil || line != "ready\n" {
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("the guard did not start, its words are in %s", words.Name())
		}
		_ = cmd.Process.Kill()
		return "", fmt.Errorf("the guard is not ready after %s, its words are in %s", guardReady, words.Name())
	}
	return id, nil
}
