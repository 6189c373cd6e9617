//go:build bench

package cli_test

import (
	"context"
	"fmt"
	"lanjobs/task"
	"lanjobs/transport"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

type bench struct {
	t        *testing.T
	dir, exe string
	port     int
}

func newBench(t *testing.T) *bench {
	dir, err := os.MkdirTemp("", "lj")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	b := &bench{t: t, dir: dir, exe: filepath.Join(dir, "lanjobs"), port: 17420}
	build := exec.Command("go", "build", "-o", b.exe, "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return b
}

// benchNode is a node as a process.
type benchNode struct {
	b    *bench
	dir  string
	args []string
	cmd  *exec.Cmd
	api  *transport.APIClient
	web  *http.Client
}

func (n *benchNode) start() {
	n.cmd = exec.Command(n.b.exe, append([]string{"serve", "--data-dir", n.dir}, n.args...)...)
	log, err := os.OpenFile(n.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.b.t.Fatal(err)
	}
	n.cmd.Stderr = log
	if err := n.cmd.Start(); err != nil {
		n.b.t.Fatal(err)
	}
	door := transport.SocketDoor(transport.SocketPath(n.dir))
	if d, ok := door.(*http.Transport); ok {
		d.MaxIdleConnsPerHost = 512 // as many as there are clients
	}
	n.api, n.web = transport.NewAPIClient(door), &http.Client{Transport: door}
	n.b.until("an answer", 30*time.Second, func() bool { v, err := n.status(); return err == nil && v.Leader != "" })
}

func (n *benchNode) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s); _ = n.cmd.Wait() }

func (n *benchNode) status() (v task.ClusterView, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = n.api.Get(ctx, "/v1/status", &v)
	return v, err
}

type benchCluster struct {
	b     *bench
	nodes []*benchNode
}

func (c *benchCluster) stop() {
	for _, n := range c.nodes {
		n.signal(syscall.SIGKILL)
	}
}

func (b *bench) run(args ...string) string {
	out, err := exec.Command(b.exe, args...).Output()
	if err != nil {
		b.t.Fatalf("%v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) until(what string, limit time.Duration, ok func() bool) {
	b.t.Helper()
	pause := min(2*time.Millisecond, limit)
	if limit > time.Minute {
		pause = 25 * time.Millisecond // a long load: asking must not be part of it
	}
	for end := time.Now().Add(limit); !ok(); time.Sleep(pause) {
		if time.Now().After(end) {
			b.t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

// cluster starts three voters as processes of their own.
func (b *bench) cluster(slots int, noop bool) *benchCluster {
	c := &benchCluster{b: b}
	b.port++
	flags := []string{"--slots", strconv.Itoa(slots)}
	if noop {
		flags = append(flags, "--noop-runner")
	}
	for i := range 3 {
		n := &benchNode{b: b, dir: filepath.Join(b.dir, fmt.Sprintf("%d%c", b.port, 'a'+i)), args: flags}
		name, listen := fmt.Sprintf("n%d", i+1), fmt.Sprintf("127.0.0.%d:%d", i+1, b.port)
		if i == 0 {
			c.nodes = append(c.nodes, n)
			b.run("init", "--name", "bench", "--node-name", name, "--listen", listen, "--data-dir", n.dir)
		} else {
			token := filepath.Join(b.dir, "token")
			if err := os.WriteFile(token, []byte(b.run("token", "create", "-q", "--data-dir", c.nodes[0].dir)), 0o600); err != nil {
				b.t.Fatal(err)
			}
			b.run("join", fmt.Sprintf("127.0.0.1:%d", b.port), "--token-file", token, "--node-name", name, "--listen", listen, "--data-dir", n.dir)
			c.nodes = append(c.nodes, n)
		}
		b.endBackground(n.dir)
		n.start()
	}
	b.t.Cleanup(c.stop)
	b.until("three voters", time.Minute, func() bool { return c.healthy() })
	return c
}

func (c *benchCluster) healthy() bool {
	v, err := c.nodes[0].status()
	if err != nil || v.Voters != 3 || v.Leader == "" {
		return false
	}
	for _, n := range v.Nodes {
		if n.State != "ready" {
			return false
		}
	}
	return len(v.Nodes) == 3
}

// clear lets machines have work again that have been killed three times in a row.
func (c *benchCluster) clear() {
	v, err := c.nodes[0].status()
	if err != nil {
		return
	}
	for _, n := range v.Nodes {
		if n.State == "unstable" {
			_ = exec.Command(c.b.exe, "node", "clear", n.Name, "--data-dir", c.nodes[0].dir).Run()
		}
	}
}

// endBackground ends the node that init or join left in the background; it is started again with the flags of this bench.
func (b *bench) endBackground(dir string) {
	out, err := exec.Command("pgrep", "-f", "serve --data-dir "+dir).Output()
	if err != nil {
		b.t.Fatalf("no background node of %s: %v", dir, err)
	}
	for _, word := range strings.Fields(string(out)) {
		pid, _ := strconv.Atoi(word)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		b.until("its end", 10*time.Second, func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
	}
}

func zombie(pid int) bool {
	s, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(s), ") Z ")
}

func (b *bench) alone() *benchCluster {
	c := &benchCluster{b: b}
	n := &benchNode{b: b, dir: filepath.Join(b.dir, "alone"), args: []string{"--slots", strconv.Itoa(runtime.NumCPU())}}
	c.nodes = append(c.nodes, n)
	n.start()
	b.t.Cleanup(c.stop)
	b.until("a node", 20*time.Second, func() bool { v, err := n.status(); return err == nil && v.Leader != "" })
	return c
}

// leader gives the node that leads.
func (c *benchCluster) leader() *benchNode {
	var found *benchNode
	c.b.until("a leader", 20*time.Second, func() bool {
		for _, n := range c.nodes {
			if v, err := n.status(); err == nil && v.Leader != "" && v.Leader == v.Self {
				found = n
				return true
			}
		}
		return false
	})
	return found
}
