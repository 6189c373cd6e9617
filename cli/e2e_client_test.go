//go:build e2e && linux

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// person is somebody on a machine without a node: a folder of settings of their own, and nothing else.
type person struct {
	lab  *lab
	name string
	dir  string
}

func (l *lab) person(name string) *person {
	return &person{lab: l, name: name, dir: filepath.Join(l.dir, "person-"+name)}
}

func (p *person) command(ctx context.Context, stdin string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.lab.exe, args...)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "LANJOBS_") && !strings.HasPrefix(kv, "XDG_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME="+filepath.Join(p.dir, "config"), "XDG_DATA_HOME="+filepath.Join(p.dir, "data"), "NO_COLOR=1")
	cmd.Dir, cmd.Stdin = p.lab.dir, strings.NewReader(stdin)
	return cmd
}

// want runs a command of the program as that person; both outputs together must hold the words.
func (p *person) want(code int, words, stdin string, args ...string) string {
	p.lab.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := p.command(ctx, stdin, args...)
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Run()); ok {
		got = exit.ExitCode()
	}
	if got != code || !strings.Contains(out.String()+diag.String(), words) {
		p.lab.t.Errorf("%s: lanjobs %s: exit %d, want %d and %q\n%s%s", p.name, strings.Join(args, " "), got, code, words, out.String(), diag.String())
	}
	return strings.TrimSpace(out.String())
}

// login gives somebody access at a member.
func (l *lab) login(name, role string, at, by *member) *person {
	l.t.Helper()
	p := l.person(name)
	token := l.must(by, "token", "create", "-q", "--role", role)
	p.want(0, role, token, "login", at.peer, "--token-file", "-")
	return p
}

// TestProcClients: from a machine without a node, over TLS alone: reading, submitting, following output, through the death of the member
// that was asked; a role that is too low is refused, and who is removed is shut out at once, an open stream included.
func TestProcClients(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	lead := l.leader()
	rest := l.others(lead)
	stranger := l.person("stranger")
	stranger.want(3, "no node is running on this machine", "", "status")
	stranger.want(4, "this token lets machines in, not people", l.must(lead, "token", "create", "-q"), "login", rest[0].peer, "--token-file", "-")

	viewer := l.login("viewer", "viewer", rest[0], lead)
	operator := l.login("operator", "operator", rest[1], lead)
	admin := l.login("admin", "admin", lead, rest[0])
	token := l.must(lead, "token", "create", "-q", "--role", "viewer")
	stranger.want(4, "It was not used up", token, "login", rest[0].peer, "--token-file", "-", "--role", "admin")
	stranger.want(0, "viewer", token, "login", rest[0].peer, "--token-file", "-", "--role", "viewer")
	l.person("late").want(4, "used up", token, "login", rest[0].peer, "--token-file", "-")

	file := filepath.Join(l.dir, "job.yaml")
	l.write(file, l.file("afar", lease(longLease), "echo first line\n"+untilGate))
	viewer.want(0, "3 voters", "", "status")
	viewer.want(4, "a viewer: this takes the role operator", "", "submit", file)
	viewer.want(4, "a viewer: this takes the role operator", "", "node", "drain", lead.name)
	operator.want(4, "an operator: this takes the role admin", "", "token", "create")
	operator.want(4, "an operator: this takes the role admin", "", "client", "ls")
	operator.want(4, "an operator: this takes the role admin", "", "node", "rm", lead.name, "-y")
	admin.want(0, "viewer", "", "client", "ls")
	admin.want(3, "no node is running on this machine", "", "leave", "-y")

	id := operator.want(0, "", "", "submit", file)
	l.starts("afar", 1, 20*time.Second)
	logs := operator.follow("logs", id, "-f")
	logs.waits("first line")
	l.open("afar")
	logs.ends(0, 30*time.Second)
	l.waitFor(20*time.Second, "it is seen to end", func() bool {
		var j task.JobView
		return json.Unmarshal([]byte(operator.want(0, "", "", "show", id, "-o", "json")), &j) == nil && j.State == task.JobSucceeded
	})

	// The audit log names the client, and no secret.
	found := false
	for _, e := range l.events(lead, id, string(task.EventJobSubmit)) {
		found = found || strings.Contains(e.By, "@") && strings.Contains(e.By, " (c")
	}
	if !found {
		t.Errorf("the submit is not the client's: %+v", l.events(lead, id, string(task.EventJobSubmit)))
	}

	// An open stream of who is removed ends, with the code for it; that of another goes on.
	hers, his := viewer.follow("events", "-f"), operator.follow("events", "-f")
	l.must(lead, "node", "label", rest[0].name, "mark=one")
	hers.waits("node")
	his.waits("node")
	var clients task.List[transport.ClientView]
	if err := json.Unmarshal([]byte(admin.want(0, "", "", "client", "ls", "-o", "json")), &clients); err != nil {
		t.Fatal(err)
	}
	admin.want(0, "is shut out", "", "client", "rm", viewer.id())
	hers.ends(4, 30*time.Second)
	if !strings.Contains(hers.String(), "the connection broke") {
		t.Errorf("the stream was not cut, it ended by itself later:\n%s", hers)
	}
	viewer.want(4, "it was removed", "", "status")
	viewer.want(0, "logged out", "", "logout")
	viewer.want(3, "no node is running", "", "status")

	// The member that it talked to dies: another one answers.
	lead.kill(syscall.SIGKILL)
	l.waitFor(60*time.Second, "the client reaches the others", func() bool {
		var v task.ClusterView
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		out, _ := operator.command(ctx, "", "status", "-o", "json").Output()
		return json.Unmarshal(out, &v) == nil && v.Leader != "" && v.LeaderName != lead.name
	})
	operator.want(0, "afar", "", "ls")
	his.stop()
}

// id is that of the client that a person's login made.
func (p *person) id() string {
	a, err := transport.LoadAccess(filepath.Join(p.dir, "config", "lanjobs", "logins", "home"))
	if err != nil {
		p.lab.t.Fatal(err)
	}
	return a.ID
}

// followed is a command that goes on.
type followed struct {
	p    *person
	cmd  *exec.Cmd
	done chan error
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *person) follow(args ...string) *followed {
	p.lab.t.Helper()
	f := &followed{p: p, cmd: p.command(context.Background(), "", args...), done: make(chan error, 1)}
	f.cmd.Stdout, f.cmd.Stderr = f, f
	if err := f.cmd.Start(); err != nil {
		p.lab.t.Fatal(err)
	}
	p.lab.t.Cleanup(f.stop)
	go func() { f.done <- f.cmd.Wait() }()
	return f
}

func (f *followed) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.Write(b)
}

func (f *followed) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text.String()
}

func (f *followed) waits(words string) {
	f.p.lab.t.Helper()
	f.p.lab.waitFor(30*time.Second, fmt.Sprintf("%s reads %q", f.p.name, words), func() bool { return strings.Contains(f.String(), words) })
}

func (f *followed) ends(code int, limit time.Duration) {
	f.p.lab.t.Helper()
	select {
	case <-f.done:
		if got := f.cmd.ProcessState.ExitCode(); got != code {
			f.p.lab.t.Errorf("%s: exit %d, want %d\n%s", strings.Join(f.cmd.Args[1:], " "), got, code, f)
		}
	case <-time.After(max(limit, patience)):
		f.p.lab.t.Errorf("%s goes on:\n%s", strings.Join(f.cmd.Args[1:], " "), f)
	}
}

func (f *followed) stop() { _ = f.cmd.Process.Kill() }

// TestProcSecretsStaySecret walks through joining and logging in with every log as talkative as it gets, then looks for the secrets in
// all that is written or shown: logs, audit, JSON, the command lines of processes.
func TestProcSecretsStaySecret(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, b := l.add("a", fmt.Sprintf("127.0.0.1:%d", l.port)), l.add("b", fmt.Sprintf("127.0.0.2:%d", l.port))
	l.must(a, "init", "--name", "home", "--node-name", "a", "--listen", a.listen)
	join, login := l.must(a, "token", "create", "-q"), l.must(a, "token", "create", "-q", "--role", "operator")
	file := filepath.Join(l.dir, "token")
	l.write(file, join)
	b.spawn("join", a.peer, "--foreground", "--token-file", file, "--node-name", "b", "--listen", b.listen)
	l.waitFor(60*time.Second, "b has joined", func() bool { return l.ready(l.status(a)) == 2 })
	b.kill(syscall.SIGTERM)
	b.flags = []string{"--debug"}
	b.restart()
	l.waitFor(60*time.Second, "b is back", func() bool { return l.ready(l.status(a)) == 2 && l.status(b).Leader != "" })
	anna := l.person("anna")
	anna.want(0, "operator", login, "login", b.peer, "--token-file", "-")
	anna.want(4, "used up", login, "login", b.peer, "--token-file", "-")
	var shown strings.Builder
	for _, line := range []string{"status -o json", "node ls -o json", "token ls -o json", "client ls -o json", "events -o json --since 1h", "ls -o json"} {
		out, diag, _ := l.cli(a, "", strings.Fields(line)...)
		shown.WriteString(out + diag)
	}
	shown.WriteString(anna.want(0, "", "", "login", "-o", "json"))

	secrets := map[string]string{"join token": tokenSecret(t, join), "login token": tokenSecret(t, login)}
	var identity struct {
		Cluster struct {
			GossipKey string `json:"gossip_key"`
		} `json:"cluster"`
	}
	text, err := os.ReadFile(filepath.Join(a.dir, "identity.json"))
	if err == nil {
		err = json.Unmarshal(text, &identity)
	}
	if err != nil || identity.Cluster.GossipKey == "" {
		t.Fatalf("%+v, %v", identity, err)
	}
	secrets["gossip key"] = identity.Cluster.GossipKey
	for name, path := range map[string]string{"node's key": filepath.Join(a.dir, "node.key"), "client's key": filepath.Join(anna.dir, "config/lanjobs/logins/home", transport.AccessFile)} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, key, ok := strings.Cut(strings.ReplaceAll(string(text), `\n`, "\n"), "BEGIN PRIVATE KEY-----\n")
		if !ok {
			t.Fatalf("no key in %s", path)
		}
		secrets[name] = key[:60]
	}
	for what, text := range l.written(a, b) {
		for name, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("the %s is in %s", name, what)
			}
		}
	}
	for name, secret := range secrets {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("the %s is shown", name)
		}
	}
	if !b.logged("level=DEBUG") {
		t.Error("control: the log of b is not talkative")
	}
	for _, secretFile := range []string{filepath.Join(a.dir, "identity.json"), filepath.Join(a.dir, "node.key"), filepath.Join(anna.dir, "config/lanjobs/logins/home", transport.AccessFile)} {
		if info, err := os.Stat(secretFile); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", secretFile, info, err)
		}
	}
	l.must(a, "leave", "-y", "--force")
}

func tokenSecret(t *testing.T, token string) string {
	t.Helper()
	parsed, err := transport.ParseJoinToken(token)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Secret
}

// written is what nodes have written for people to read, and the command lines of their processes.
func (l *lab) written(nodes ...*member) map[string]string {
	l.t.Helper()
	out := map[string]string{}
	read := func(path string) {
		if text, err := os.ReadFile(path); err == nil {
			out[path] = string(text)
		}
	}
	for _, n := range nodes {
		read(n.log)
		read(filepath.Join(n.dir, "node.log"))
		for _, dir := range []string{"audit", "runner"} {
			_ = filepath.WalkDir(filepath.Join(n.dir, dir), func(path string, d os.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					read(path)
				}
				return nil
			})
		}
	}
	for _, p := range l.processes("") {
		read(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		read(fmt.Sprintf("/proc/%d/environ", p.pid))
	}
	if len(out) < 6 {
		l.t.Errorf("little was found to look through: %d files", len(out))
	}
	return out
}

// TestProcTasksRunAsAnotherUser: a node of root runs tasks as the user it was told, remembers that when it is started without a word about
// it, and a task cannot use the node's own access.
func TestProcTasksRunAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	l := newLab(t)
	if err := os.Chmod(l.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	n := l.add("root", fmt.Sprintf("127.0.0.1:%d", l.port))
	n.spawn("serve", "--run-as", "nobody", "--allow-user", "daemon", "--refuse-queue", "heavy")
	ready := func() { l.waitFor(30*time.Second, "it is ready", func() bool { return l.ready(l.status(n)) == 1 }) }
	ready()
	who := func(user string) string {
		file := filepath.Join(l.dir, "who.yaml")
		text := "name: who\nretry: {attempts: 1}\nrun: |\n  set +e\n  id -un\n  cat " + n.dir + "/node.key " + n.dir + "/identity.json\n" +
			"  curl -sS --unix-socket " + n.dir + "/lanjobs.sock http://x/v1/tokens -d '{}'\n  ls " + n.dir + "\n  true\n"
		if user != "" {
			text += "user: " + user + "\n"
		}
		l.write(file, text)
		out, _, code := l.cli(n, "", "run", file)
		if code != 0 {
			t.Errorf("as %q: exit %d\n%s", user, code, out)
		}
		return strings.TrimSpace(out)
	}
	if got := who(""); got != "nobody" {
		t.Errorf("a task that asks for none: %q", got)
	}
	if got := who("daemon"); got != "daemon" {
		t.Errorf("a task of daemon: %q", got)
	}
	id := l.must(n, "submit", l.jobFile("other", "name: other\nuser: games\nrun: id\n"))
	l.want(n, 0, "does not meet user.games=true", "show", id, "--why")
	l.want(n, 0, "lanjobs serve --allow-user games on", "show", id, "--why")
	l.must(n, "queue", "set", "heavy", "--max", "5")
	id = l.must(n, "submit", l.jobFile("heavy", "name: heavy\nqueue: heavy\nrun: id\n"))
	l.want(n, 0, "refuses queue heavy", "show", id, "--why")

	n.kill(syscall.SIGTERM)
	n.spawn("serve")
	ready()
	if got := who(""); got != "nobody" {
		t.Errorf("after a start without the flag: %q", got)
	}
	l.want(n, 0, "refuses queue heavy", "show", id, "--why")
	n.kill(syscall.SIGTERM)
	n.spawn("serve", "--run-as", "", "--refuse-queue", "")
	l.ends(n, id, task.JobSucceeded, 30*time.Second)
}

// jobFile writes a job file.
func (l *lab) jobFile(name, text string) string {
	file := filepath.Join(l.dir, name+".yaml")
	l.write(file, text)
	return file
}
