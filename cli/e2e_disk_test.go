//go:build e2e && linux

package cli_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// smallDisk gives a node a data folder of its own file system with so many megabytes.
func (n *member) smallDisk(mb int) {
	n.lab.t.Helper()
	if os.Geteuid() != 0 {
		n.lab.t.Skip("mounting a small disk needs root")
	}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		n.lab.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", n.dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=700", mb)); err != nil {
		n.lab.t.Skipf("no small disk can be mounted here: %v", err)
	}
	n.lab.t.Cleanup(func() { _ = syscall.Unmount(n.dir, syscall.MNT_DETACH) })
}

// fillDisk leaves no room, and gives what makes room again.
func (n *member) fillDisk() (free func()) {
	n.lab.t.Helper()
	path := filepath.Join(n.dir, "ballast")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.lab.t.Fatal(err)
	}
	for size := 1 << 20; size >= 1; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			n.lab.t.Fatal(err)
		}
	}
	_ = f.Close()
	return func() {
		if err := os.Remove(path); err != nil {
			n.lab.t.Error(err)
		}
	}
}

// TestProcDiskFull: the leader's disk runs full. It gives up the lead and says so; the others go on; nothing acknowledged is lost;
// and when there is room again it takes part by itself, without having been started again.
func TestProcDiskFull(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for i, name := range []string{"a", "b", "c"} {
		l.add(name, fmt.Sprintf("127.0.0.%d:%d", i+1, l.port))
	}
	for _, n := range l.nodes { // any of them may be the one that leads
		n.smallDisk(64)
	}
	l.start()
	full := l.leader()
	stay := l.others(full)
	free := full.fillDisk()
	var ids []string
	submit := func(n int) {
		for i := range n {
			ids = append(ids, l.submit(stay[i%2], l.file(fmt.Sprintf("j%d", len(ids)), lease(60*time.Second)+"\nretry: {attempts: 5}\nplacement: {require: [node!="+full.name+"]}", "say start; say end")))
		}
	}
	submit(20)
	l.waitFor(60*time.Second, "another one leads", func() bool {
		v := l.status(stay[0])
		return v.Leader != "" && v.LeaderName != full.name && v.Health != "no_leader"
	})
	l.says(full, 30*time.Second, "is full")
	submit(5)
	for _, id := range ids {
		l.ends(stay[0], id, task.JobSucceeded, 60*time.Second)
	}
	pid := full.pid()
	if syscall.Kill(pid, 0) != nil {
		t.Fatal("it has died of a full disk")
	}
	free()
	l.readies(stay[0], 3, 60*time.Second)
	l.waitFor(60*time.Second, "it has caught up", func() bool { v := l.survey(full); return upToDate(v, full.name) })
	if full.pid() != pid {
		t.Error("it was started again")
	}
	free = full.fillDisk()
	// Ended and started on a full disk, it says what is wrong and what to do.
	full.kill(syscall.SIGKILL)
	full.restart()
	ended := func() bool {
		select {
		case <-full.gone:
			return true
		default:
			return false
		}
	}
	l.waitFor(60*time.Second, "it ends, or what it had to write fitted into freed pages", func() bool { return ended() || l.status(full).Leader != "" })
	free()
	if ended() {
		if !full.logged("is full") || !full.logged("Make room there") {
			t.Error("a start on a full disk does not say what to do")
		}
		full.restart()
	}
	l.readies(stay[0], 3, 60*time.Second)
	l.waitFor(60*time.Second, "it says no more that the disk is full", func() bool { return !strings.Contains(l.notices(full), "is full") })
}

// upToDate tells whether a machine's log ends where the furthest one does.
func upToDate(v *transport.RecoverView, name string) bool {
	for _, s := range v.Machines {
		if s.Name == name {
			return s.LastIndex > 0 && s.Behind == 0
		}
	}
	return false
}

// TestProcReadOnlyFolder: a folder that cannot be written is named, with what to do, and nothing else happens.
func TestProcReadOnlyFolder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n := l.add("a", fmt.Sprintf("127.0.0.1:%d", l.port))
	n.smallDisk(16)
	if err := syscall.Mount("", n.dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("cannot be mounted read-only here: %v", err)
	}
	_, diag, code := l.cli(n, "", "serve")
	if code == 0 || !strings.Contains(diag, "is read-only") || !strings.Contains(diag, "--data-dir") {
		t.Errorf("exit %d %s", code, diag)
	}
}
