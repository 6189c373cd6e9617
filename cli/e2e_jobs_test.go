//go:build e2e && linux

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lanjobs/task"
)

// file is a job file: its name, more keys (one a line, or several with line ends), and a script that may say things.
func (l *lab) file(name, keys, script string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nenv: {LEDGER: %q, GATE: %q}\n%s\nrun: |\n", name, l.ledger.path, l.gate(name), strings.TrimSpace(keys))
	for line := range strings.Lines(say + strings.TrimRight(script, "\n") + "\n") {
		b.WriteString("  " + line)
	}
	return b.String()
}

// gate is a file that a job's script may wait for, so that the test and not a clock ends it.
func (l *lab) gate(name string) string { return filepath.Join(l.dir, "gate-"+name) }

func (l *lab) open(name string) {
	l.t.Helper()
	if err := os.WriteFile(l.gate(name), nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// Lengths of leases. One whose loss a test waits for is short, and yet outlives a machine that stalls for five seconds. Where its
// loss would be a fault, or where something happens sooner than by its loss, it is longer than any wait.
const (
	shortLease = 12 * time.Second
	longLease  = 10 * time.Minute
)

// lease is the line of a job file for a lease.
func lease(ttl time.Duration) string {
	return fmt.Sprintf("lease: {ttl: %s, heartbeat: %dms}", ttl, (ttl / 10).Milliseconds())
}

// untilGate ticks until the gate opens, then succeeds.
const untilGate = `say start
while [ ! -e "$GATE" ]; do say tick; sleep 0.1; done
say end
`

// steps saves checkpoints 1, 2, 3 … until the gate opens, and goes on after the last one that an earlier attempt saved. A
// process beside it ticks, since a checkpoint waits while its agent or the leader is away.
const steps = `n=$(cat "$LANJOBS_CHECKPOINT" 2>/dev/null || echo 0)
say start "$n"
( while :; do say tick; sleep 0.05; done ) &
while [ ! -e "$GATE" ]; do
  n=$((n + 1))
  echo "$n" | lanjobs task checkpoint || { say refused $?; exit 7; }
  say saved "$n"
  sleep 0.1
done
say end "$n"
`

// submit hands in a job file and gives its id.
func (l *lab) submit(n *member, file string) string {
	l.t.Helper()
	out, diag, code := l.cli(n, file, "submit", "-", "-q")
	if code != 0 {
		l.t.Fatalf("submit: exit %d\n%s%s\n%s", code, out, diag, file)
	}
	return strings.TrimSpace(out)
}

func (l *lab) job(n *member, id string) task.JobView {
	var v task.JobView
	l.ask(n, &v, "show", id)
	return v
}

func (l *lab) attempts(n *member, id string) []task.AttemptView {
	var v task.List[task.AttemptView]
	l.ask(n, &v, "show", id, "--attempts")
	return v.Items
}

func (l *lab) shards(n *member, id string) []task.ShardView {
	var v task.List[task.ShardView]
	l.ask(n, &v, "show", id, "--shards")
	return v.Items
}

// ends waits until a job is over and wants it to end so.
func (l *lab) ends(n *member, id string, want task.JobState, limit time.Duration) {
	l.t.Helper()
	var v task.JobView
	l.waitFor(limit, fmt.Sprintf("job %s ends", id), func() bool { v = l.job(n, id); return v.ID != "" && v.State.Final() })
	if v.State != want {
		l.t.Errorf("job %s %s: %s, want %s (%s)", v.Name, id, v.State, want, v.Note)
		for _, a := range l.attempts(n, id) {
			l.t.Logf("  %s/%d#%d on %s: %s %s %s", a.Stage, a.Shard, a.Attempt, a.NodeName, a.State, a.Reason, a.Tail)
		}
	}
}

// becomes waits until a member has heard that a job is in a state: members hear of a change one after the other.
func (l *lab) becomes(n *member, id string, want task.JobState) {
	l.t.Helper()
	l.waitFor(60*time.Second, fmt.Sprintf("job %s is %s on %s", id, want, n.name), func() bool { return l.job(n, id).State == want })
}

// events of a job, the renewals included.
func (l *lab) events(n *member, id string, kinds ...string) []task.Event {
	l.t.Helper()
	var out []task.Event
	args := []string{"events", "--audit", "-o", "json"}
	if id != "" {
		args = append(args, "--job", id)
	}
	text := l.must(n, args...)
	for line := range strings.Lines(text) {
		var e struct {
			task.Event
			Kind string `json:"event"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			l.t.Fatalf("%v in %s", err, line)
		}
		for _, k := range kinds {
			if e.Kind == k {
				e.Event.Kind = task.EventKind(e.Kind)
				out = append(out, e.Event)
			}
		}
	}
	return out
}

// node gives a member by its name.
func (l *lab) node(name string) *member {
	l.t.Helper()
	for _, n := range l.nodes {
		if n.name == name {
			return n
		}
	}
	l.t.Fatalf("no node %q", name)
	return nil
}

// leader is who leads, as all that answer agree.
func (l *lab) leader() *member {
	l.t.Helper()
	name := ""
	l.waitFor(30*time.Second, "somebody leads", func() bool {
		for _, n := range l.nodes {
			if v := l.status(n); v.LeaderName != "" && v.Health != "no_leader" {
				name = v.LeaderName
				return true
			}
		}
		return false
	})
	return l.node(name)
}

// others are the members besides these.
func (l *lab) others(not ...*member) []*member {
	var out []*member
outer:
	for _, n := range l.nodes {
		for _, x := range not {
			if x == n {
				continue outer
			}
		}
		out = append(out, n)
	}
	return out
}

// starts waits until the ledger has n start lines of a job and gives them.
func (l *lab) starts(job string, n int, limit time.Duration) []entry {
	l.t.Helper()
	l.waitFor(limit, fmt.Sprintf("%d starts of %s", n, job), func() bool { return l.ledger.count(job, "start") >= n })
	return l.ledger.of(job, "start")
}

// process is one process that carries a folder's name.
type process struct {
	pid   int
	words []string
}

// processes lists those whose command line or environment names something under dir (the test's folder if empty).
func (l *lab) processes(dir string) (out []process) {
	if dir == "" {
		dir = l.dir
	}
	entries, _ := fs.Glob(os.DirFS("/proc"), "[0-9]*")
	for _, e := range entries {
		pid, _ := strconv.Atoi(e)
		line, err := os.ReadFile(filepath.Join("/proc", e, "cmdline"))
		if pid == os.Getpid() || err != nil || len(line) == 0 {
			continue // a zombie has no command line
		}
		env, _ := os.ReadFile(filepath.Join("/proc", e, "environ"))
		if bytes.Contains(line, []byte(dir+"/")) || bytes.Contains(env, []byte(dir+"/")) {
			out = append(out, process{pid, strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")})
		}
	}
	return out
}

// guard is the process id of a node's guard.
func (n *member) guard() int {
	n.lab.t.Helper()
	for _, p := range n.lab.processes(n.dir) {
		if len(p.words) > 1 && p.words[0] == n.lab.exe && p.words[1] == "guard" {
			return p.pid
		}
	}
	n.lab.t.Fatalf("%s has no guard", n.name)
	return 0
}

// tasks are the processes of attempts on a node.
func (n *member) tasks() (pids []int) {
	for _, p := range n.lab.processes(filepath.Join(n.dir, "runner", "attempt")) {
		pids = append(pids, p.pid)
	}
	return pids
}

// signal goes to single processes, by id.
func (l *lab) signal(sig syscall.Signal, pids ...int) {
	l.t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
			l.t.Fatalf("signal %s to %d: %v", sig, pid, err)
		}
	}
}

// freeze stops a node and all that it started; thaw lets them go on. The guard first, so that it sees none of its children stop.
func (n *member) freeze() { n.lab.signal(syscall.SIGSTOP, n.all()...) }
func (n *member) thaw()   { n.lab.signal(syscall.SIGCONT, n.all()...) }

// poweroff ends a node and all that it started.
func (n *member) poweroff() {
	n.lab.signal(syscall.SIGKILL, n.all()...)
	n.kill(syscall.SIGKILL)
}

func (n *member) all() (pids []int) {
	pids = append(pids, n.pid())
	for _, p := range n.lab.processes(n.dir) {
		if p.pid != n.pid() && len(p.words) > 1 && p.words[1] == "guard" {
			pids = append(pids, p.pid)
		}
	}
	for _, p := range n.lab.processes(n.dir) {
		if p.pid != n.pid() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

func (l *lab) write(file, text string) {
	l.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}
