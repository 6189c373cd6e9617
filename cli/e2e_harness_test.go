//go:build e2e && linux

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// binary builds the program once for all tests, as a person would have it.
var binary = sync.OnceValues(func() (string, error) {
	// The binary outlives the last test by a little, as its guards do; the next run removes it.
	const prefix = "/tmp/lanjobs-e2e-"
	old, _ := filepath.Glob(prefix + "*")
	for _, dir := range old {
		if pid, err := strconv.Atoi(strings.TrimPrefix(dir, prefix)); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
	dir := prefix + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	exe := filepath.Join(dir, "lanjobs")
	cmd := exec.Command("go", "build", "-o", exe, ".")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return exe, nil
})

// lab is one test's place: a short folder (unix sockets), a ledger, and nodes as processes of their own.
type lab struct {
	t      *testing.T
	exe    string
	dir    string
	ledger *ledger
	nodes  []*member
	port   int
}

func newLab(t *testing.T) *lab {
	t.Helper()
	exe, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "lj")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, exe: exe, dir: dir, port: freePort(t)}
	l.ledger = openLedger(t, filepath.Join(dir, "ledger"))
	t.Cleanup(l.tidy)
	return l
}

// tidy ends, by id, whatever still carries this test's folder in its command line or environment: agents, guards, tasks.
func (l *lab) tidy() {
	for _, n := range l.nodes {
		n.kill(syscall.SIGKILL)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := l.processes("")
		for _, p := range left {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		if len(left) == 0 || time.Now().After(end) {
			break
		}
	}
	l.ledger.close()
	for _, n := range l.nodes {
		text, _ := os.ReadFile(n.log)
		for _, bad := range []string{"panic:", "fatal error:", "DATA RACE"} {
			if at := bytes.Index(text, []byte(bad)); at >= 0 {
				l.t.Errorf("%s: %.6000s", n.name, text[at:])
			}
		}
		if l.t.Failed() {
			l.t.Logf("log of %s:\n%s", n.name, lastLines(string(text), 60))
		}
	}
	if l.t.Failed() {
		l.t.Logf("ledger:\n%s", l.ledger.text())
	}
	_ = os.RemoveAll(l.dir)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}

// ports below the range that outgoing connections are given, each handed out once.
var ports struct {
	sync.Mutex
	next int
}

func freePort(t *testing.T) int {
	ports.Lock()
	defer ports.Unlock()
	if ports.next == 0 {
		ports.next = 20000 + os.Getpid()%10000
	}
	for range 1000 {
		ports.next++
		addr := fmt.Sprintf("127.0.0.1:%d", ports.next)
		tcp, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", addr)
		_ = tcp.Close()
		if err == nil {
			_ = udp.Close()
			return ports.next
		}
	}
	t.Fatal("no free port")
	return 0
}

// member is one node: its agent is a child of the test, in the foreground.
type member struct {
	lab    *lab
	name   string
	dir    string
	log    string
	listen string
	peer   string // where others reach it at first
	space  string // its network namespace
	wrap   []string
	exe    string   // another binary than the lab's
	flags  []string // of serve, from its second start on

	mu   sync.Mutex
	cmd  *exec.Cmd
	gone chan struct{} // closed when the agent has ended
}

// cluster is three nodes a, b and c that vote; a was first.
func cluster(t *testing.T) *lab {
	l := newLab(t)
	l.found("a", "b", "c")
	return l
}

// found makes the first name the founder and lets the others join at the same time.
func (l *lab) found(names ...string) {
	l.t.Helper()
	for i, name := range names {
		l.add(name, fmt.Sprintf("127.0.0.%d:%d", i+1, l.port))
	}
	l.start()
}

func (l *lab) add(name, listen string) *member {
	dir := filepath.Join(l.dir, name)
	n := &member{lab: l, name: name, dir: dir, log: dir + ".log", listen: listen, peer: listen}
	l.nodes = append(l.nodes, n)
	return n
}

func (l *lab) start() {
	l.t.Helper()
	first := l.nodes[0]
	first.spawn("init", "--foreground", "--name", "home", "--node-name", first.name, "--listen", first.listen)
	l.waitFor(30*time.Second, "the founder leads", func() bool { return l.status(first).Health == "healthy" })
	if len(l.nodes) == 1 {
		return
	}
	token := l.must(first, "token", "create", "-q", "--uses", strconv.Itoa(len(l.nodes)-1))
	file := filepath.Join(l.dir, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		l.t.Fatal(err)
	}
	for _, n := range l.nodes[1:] {
		n.spawn("join", first.peer, "--foreground", "--token-file", file, "--node-name", n.name, "--listen", n.listen)
	}
	l.waitFor(60*time.Second, "all have joined, three vote", func() bool {
		v := l.status(first)
		return v.Voters == min(len(l.nodes)|1, 3) && l.ready(v) == len(l.nodes)
	})
}

func (l *lab) ready(v *task.ClusterView) int {
	ready := 0
	for _, n := range v.Nodes {
		if n.State == "ready" {
			ready++
		}
	}
	return ready
}

// spawn starts a command of the program that stays and is the node.
func (n *member) spawn(args ...string) {
	n.lab.t.Helper()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.lab.t.Fatal(err)
	}
	defer log.Close()
	exe := n.lab.exe
	if n.exe != "" {
		exe = n.exe
	}
	words := append(append([]string{}, n.wrap...), exe)
	words = append(words, args...)
	words = append(words, "--data-dir", n.dir)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, n.lab.dir
	if err := cmd.Start(); err != nil {
		n.lab.t.Fatal(err)
	}
	gone := make(chan struct{})
	n.mu.Lock()
	n.cmd, n.gone = cmd, gone
	n.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
}

// restart starts the node again on its folder, as a service manager does.
func (n *member) restart() {
	n.lab.t.Helper()
	n.spawn(append([]string{"serve", "--listen", n.listen}, n.flags...)...)
}

func (n *member) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return 0
	}
	return n.cmd.Process.Pid
}

// kill sends a signal to the agent alone. After one that ends it, it waits until it is gone.
func (n *member) kill(sig syscall.Signal) {
	n.mu.Lock()
	cmd, gone := n.cmd, n.gone
	n.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig)
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM {
		select {
		case <-gone:
		case <-time.After(patience):
			n.lab.t.Errorf("%s does not end after %s", n.name, sig)
		}
	}
}

// cli runs a command of the program against a node and gives what it printed and its exit code.
func (l *lab) cli(n *member, stdin string, args ...string) (stdout, stderr string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.exe, args...)
	cmd.Env = append(os.Environ(), "LANJOBS_DATA_DIR="+n.dir, "NO_COLOR=1")
	cmd.Dir, cmd.Stdin = l.dir, strings.NewReader(stdin)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), diag.String(), exit.ExitCode()
	} else if err != nil {
		return out.String(), err.Error(), -1
	}
	return out.String(), diag.String(), 0
}

// must is cli for what has to work.
func (l *lab) must(n *member, args ...string) string {
	l.t.Helper()
	out, diag, code := l.cli(n, "", args...)
	if code != 0 {
		l.t.Fatalf("lanjobs %s: exit %d\n%s%s", strings.Join(args, " "), code, out, diag)
	}
	return strings.TrimSpace(out)
}

// ask reads JSON; false while the node does not answer.
func (l *lab) ask(n *member, into any, args ...string) bool {
	out, _, _ := l.cli(n, "", append(args, "-o", "json", "--timeout", "30s")...)
	return json.Unmarshal([]byte(out), into) == nil
}

// status is a node's view of the cluster, empty while it does not answer.
func (l *lab) status(n *member) *task.ClusterView {
	v := &task.ClusterView{}
	l.ask(n, v, "status")
	return v
}

// patience ends a test that hangs. No test may depend on how fast its machine is: what is waited for is a condition, and a wait that
// ends by its length has failed. Where "soon" is to be shown, what it would have to wait for otherwise (a lease, a child that sleeps)
// lasts longer than this.
const patience = 2 * time.Minute

// waitFor gives something outside this process its time: limit, but never less than patience.
func (l *lab) waitFor(limit time.Duration, what string, cond func() bool) {
	l.t.Helper()
	limit = max(limit, patience)
	for end := time.Now().Add(limit); !cond(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// command runs any program and gives all that it said, and its exit code.
func (l *lab) command(words ...string) (string, int) {
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	} else if err != nil {
		return err.Error(), -1
	}
	return string(out), 0
}
