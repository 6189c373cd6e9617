//go:build linux

package runner

import (
	"cmp"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lanjobs/task"
)

// asRoot skips where nobody can become somebody else, and gives two users that every Linux has.
func asRoot(t *testing.T) (one, other *taskUser) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	out := [2]*taskUser{}
	for i, name := range []string{"nobody", "daemon"} {
		u, err := lookupTaskUser(name)
		if err != nil {
			t.Skip(err)
		}
		out[i] = u
	}
	return out[0], out[1]
}

// asking is a script that asks for a user.
func asking(name, text string) *task.Spec {
	return job(func(s *task.StageSpec) { s.Run, s.User = text, name })
}

// TestAttemptsRunAsAnotherUser: everything that belongs to an attempt is that user's, nothing of the node's is, and what it does
// with its socket and files works as ever.
func TestAttemptsRunAsAnotherUser(t *testing.T) {
	t.Parallel()
	asRoot(t)
	b := newBench(t, func(c *Config) { c.RunAs, c.AllowUsers = "nobody", []string{"daemon"} })
	secret := b.file("secret", "K=v\n")
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	look := `id -un; id -gn; echo $HOME $USER $LOGNAME $SHELL $TMPDIR; stat -c %U . "$LANJOBS_DIR" "$LANJOBS_SOCKET" "$LANJOBS_OUTPUT" given; sh given
touch mine && echo may write; cat ` + secret + ` || echo no secret; ls ` + b.cfg.Dir + ` || echo no list; echo x > ../spoiled || echo no neighbour
rm "$LANJOBS_OUTPUT" || echo output stays; echo n=42 > "$LANJOBS_OUTPUT"
api() { curl -fsS --unix-socket "$LANJOBS_SOCKET" "http://task/v1/$@"; }
printf saved | api checkpoint -T - >/dev/null && cat "$LANJOBS_CHECKPOINT"`
	for _, name := range []string{"", "daemon"} {
		spec := asking(name, look)
		spec.Files = []task.File{{Name: "given", Data: []byte("echo given"), Mode: 0o700}}
		x, e := b.run(spec)
		u, err := user.Lookup(cmp.Or(name, "nobody"))
		if err != nil {
			t.Fatal(err)
		}
		g, err := user.LookupGroupId(u.Gid)
		if err != nil {
			t.Fatal(err)
		}
		n := u.Username
		want := strings.Join([]string{n, g.Name, u.HomeDir + " " + n + " " + n + " /bin/sh /tmp", n, n, n, n, n, "given", "may write", "no secret", "no list", "no neighbour",
			"output stays", "saved"}, "\n")
		if got := b.log(x, "stdout"); got != want || e.Outcome.ExitCode != 0 {
			t.Errorf("as %s: %+v\n%s\nwant\n%s\n%s", n, e.Outcome, got, want, b.log(x, "stderr"))
		}
		if !slices.Equal(e.Outputs, []task.KV{{Name: "n", Value: "42"}}) {
			t.Errorf("as %s: outputs %v", n, e.Outputs)
		}
		dir := b.r.paths(x).dir
		b.r.Forget(x)
		b.until("its private directory is removed", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) })
	}
	// The places of one attempt are not handed to the next with the wrong owner.
	plain := asking("", "id -un; stat -c %U . $LANJOBS_SOCKET")
	if x, _ := b.run(plain); b.log(x, "stdout") != "nobody\nnobody\nnobody\n" {
		t.Errorf("%q", b.log(x, ""))
	}
}

// TestUserThatIsNotAllowedIsUnmet: the attempt never begins and is given back, neither failed nor lost.
func TestUserThatIsNotAllowedIsUnmet(t *testing.T) {
	t.Parallel()
	asRoot(t)
	b := newBench(t, func(c *Config) { c.AllowUsers = []string{"daemon", "no-such-user"} })
	for name, want := range map[string]string{"nobody": "nas does not run tasks as that user (serve --allow-user nobody)", "root": "does not run tasks as that user",
		"no-such-user": "this machine has no user"} {
		ran := filepath.Join(b.cfg.Dir, "ran")
		_, e := b.run(asking(name, "touch "+ran))
		if e.Outcome.End != task.EndUnmet || !strings.Contains(e.Outcome.Message, "user "+name+": ") || !strings.Contains(e.Outcome.Message, want) {
			t.Errorf("%s: %+v", name, e.Outcome)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
	if x, e := b.run(asking("", "id -u")); e.Outcome.ExitCode != 0 || b.log(x, "") != "0\n" {
		t.Errorf("without a user: %+v %q", e.Outcome, b.log(x, ""))
	}
}

// TestRootDoesNothingForATaskThatItsUserMayNot: reading files of variables, and writing the job's files into a directory of choice.
func TestRootDoesNothingForATaskThatItsUserMayNot(t *testing.T) {
	t.Parallel()
	nobody, _ := asRoot(t)
	b := newBench(t, func(c *Config) { c.RunAs = "nobody" })
	closed := filepath.Join(b.cfg.Dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	public := b.file("public", "K=public\n")
	for name, path := range map[string]string{"its own mode": b.file("private", "K=v\n"), "its folder": filepath.Join(closed, "inside"), "a link to it": filepath.Join(b.cfg.Dir, "link")} {
		switch name {
		case "its own mode":
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
		case "its folder":
			if err := os.WriteFile(path, []byte("K=v\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		case "a link to it":
			if err := errors.Join(os.WriteFile(filepath.Join(closed, "target"), []byte("K=v\n"), 0o644), os.Symlink(filepath.Join(closed, "target"), path)); err != nil {
				t.Fatal(err)
			}
		}
		spec := script("echo $K")
		spec.Stages[0].EnvFiles = []string{path}
		if _, e := b.run(spec); e.Outcome.ExitCode != 126 || !strings.Contains(e.Outcome.Message, "user nobody may not read it") {
			t.Errorf("%s: %+v", name, e.Outcome)
		}
	}
	spec := script("echo $K")
	spec.Stages[0].EnvFiles = []string{public}
	if x, e := b.run(spec); e.Outcome.ExitCode != 0 || b.log(x, "") != "public\n" {
		t.Errorf("control: %+v %q", e.Outcome, b.log(x, ""))
	}
	spec = script("ls")
	spec.Stages[0].Workdir = closed
	spec.Files = []task.File{{Name: "passwd", Data: []byte("x"), Mode: 0o644}}
	if _, e := b.run(spec); e.Outcome.ExitCode != 126 || !strings.Contains(e.Outcome.Message, "private directory only") {
		t.Errorf("files in a workdir: %+v", e.Outcome)
	}
	if _, err := os.Stat(filepath.Join(closed, "passwd")); err == nil {
		t.Error("the file was written")
	}
	spec.Files = nil
	if _, e := b.run(spec); e.Outcome.ExitCode != 126 || !strings.Contains(e.Outcome.Message, "permission denied") {
		t.Errorf("a workdir that its user may not enter: %+v", e.Outcome)
	}
	if barred := nobody.barred(closed); barred != closed {
		t.Errorf("barred at %q", barred)
	}
}

// TestTaskOfAnotherUserIsStopped: the guard's word reaches it, its reason can be read, and what ignores it is killed.
func TestTaskOfAnotherUserIsStopped(t *testing.T) {
	t.Parallel()
	asRoot(t)
	b := newBench(t, func(c *Config) { c.RunAs = "nobody" })
	x := b.start(script(`trap 'cat "$LANJOBS_STOP"; exit 5' TERM; echo up; while :; do sleep 0.05; done`), far())
	b.until("it is up", func() bool { return b.log(x, "stdout") == "up\n" })
	b.r.Stop(x, task.StopCancel, 10*task.Second)
	if e := b.exit(x); b.log(x, "stdout") != "up\ncancel\n" {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	x = b.start(script(`trap '' TERM; echo up; sleep 1000 & setsid sleep 1000 & wait; sleep 1000`), far())
	b.until("it is up", func() bool { return b.log(x, "stdout") == "up\n" })
	b.r.Stop(x, task.StopCancel, 0)
	b.exit(x)
	b.nothingLeft(x)
}

// TestReattachedEndpointIsStillItsUsers: the next agent opens the socket again for the same user.
func TestReattachedEndpointIsStillItsUsers(t *testing.T) {
	t.Parallel()
	nobody, _ := asRoot(t)
	b := newBench(t, func(c *Config) { c.RunAs = "nobody" })
	x := b.start(script(`echo up; while ! [ -e go ]; do sleep 0.05; done; curl -fsS --unix-socket "$LANJOBS_SOCKET" http://task/v1/lease >/dev/null && echo heard`), far())
	b.until("it is up", func() bool { return b.log(x, "stdout") == "up\n" })
	if err := b.r.Close(); err != nil {
		t.Fatal(err)
	}
	b.cfg.RunAs = "" // what runs keeps its user
	b.open()
	info, err := os.Stat(b.r.paths(x).socket)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != nobody.UID {
		t.Errorf("%+v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(b.r.paths(x).dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if e := b.exit(x); b.log(x, "stdout") != "up\nheard\n" {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
}

func TestUsersAreCheckedBeforeTheNodeStarts(t *testing.T) {
	t.Parallel()
	asRoot(t)
	open := shortDir(t)
	if err := os.Chmod(open, 0o711); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(open, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		runAs   string
		allowed []string
		dir     string
		want    string
	}{
		{"", nil, closed + "/data/runner", ""},
		{"root", nil, closed + "/data/runner", ""}, // that is who it runs as
		{"nobody", []string{"daemon"}, open + "/data/runner", ""},
		{"nobody", nil, closed + "/data/runner", "user nobody may not enter " + closed},
		{"", []string{"no-such-user"}, open + "/data/runner", `no user "no-such-user"`},
	} {
		err := CheckUsers(c.runAs, c.allowed, c.dir)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
