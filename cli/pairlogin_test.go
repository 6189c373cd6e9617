package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// byCode lets a bench log in by a code; answer is what comes of it.
func (b *bench) byCode(home *afar, answer func(transport.CodeLogin) (*transport.PairGrant, error)) {
	b.w.logInByCode = func(_ context.Context, cfg transport.CodeLogin) (*transport.Access, error) {
		cfg.Show("K7QF2M9X", 10*time.Minute)
		g, err := answer(cfg)
		if err != nil {
			return nil, err
		}
		cfg.Approved(*g)
		a := home.admit(b.t, cfg.Name)
		a.Role = g.Role
		return a, nil
	}
}

func TestLoginByCode(t *testing.T) {
	home := newAfar(t, "home")
	b := away(t, home)
	var asked transport.CodeLogin
	b.byCode(home, func(cfg transport.CodeLogin) (*transport.PairGrant, error) {
		asked = cfg
		cfg.Say("something happened.")
		return &transport.PairGrant{By: "root@mini-1", Cluster: "home", Role: cfg.Role}, nil
	})
	b.expect(exitDone, "login", "mini-1")
	want := `Found a lanjobs cluster at mini-1:7420. To let you in as viewer, on any member type:
    lanjobs approve K7QF-2M9X
Works once, for 10 minutes. Waiting… (Ctrl-C gives up; nothing has been changed here)
something happened.
✓ approved by root on mini-1
`
	if !strings.HasPrefix(b.err.String(), want) {
		t.Errorf("stderr\n%s\nwant\n%s", b.err, want)
	}
	b.wants("stdout", b.out.String(), `✓ logged in to "home" as anna@`)
	if asked.Peer != "mini-1:7420" || asked.Role != "viewer" || asked.Version == "" || !strings.HasPrefix(asked.Name, "anna@") {
		t.Errorf("asked with %+v", asked)
	}
	b.expect(exitDone, "status")
	b.wants("stdout", b.out.String(), "home   healthy")

	b.expect(exitDone, "login", "mini-1", "--role", "admin", "-q")
	if asked.Role != "admin" || b.err.String() != "    lanjobs approve K7QF-2M9X\n" {
		t.Errorf("asked for %q; with -q: %q", asked.Role, b.err)
	}
	b.expect(exitDone, "login", "mini-1", "-o", "json", "-q")
	b.wants("stdout", b.out.String(), `"kind": "PairingCode"`)
	b.wants("stdout", b.out.String(), `"role": "viewer"`)
}

// TestLoginByCodeTellsOfAnotherRole: who let this person in had the last word.
func TestLoginByCodeTellsOfAnotherRole(t *testing.T) {
	home := newAfar(t, "home")
	b := away(t, home)
	b.byCode(home, func(transport.CodeLogin) (*transport.PairGrant, error) {
		return &transport.PairGrant{By: "root@mini-1", Role: "viewer"}, nil
	})
	b.expect(exitDone, "login", "mini-1", "--role", "admin")
	b.wants("stderr", b.err.String(), "✓ approved by root on mini-1, as viewer (asked for: admin)")
}

func TestLoginByCodeRefused(t *testing.T) {
	home := newAfar(t, "home")
	b := away(t, home)
	b.byCode(home, func(transport.CodeLogin) (*transport.PairGrant, error) {
		return nil, task.NewProblem(task.ErrNotAllowed, "root@mini-1 did not let you in.", "Nothing has been changed here")
	})
	b.expect(exitNotAllowed, "login", "mini-1")
	b.wants("stderr", b.err.String(), "lanjobs: root@mini-1 did not let you in.\n      Nothing has been changed here")
	if _, err := os.Stat(b.logins()); runtime.GOOS != "windows" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a folder of logins: %v", err)
	}
}

func TestApproveAPerson(t *testing.T) {
	b := newBench(t)
	home(b)
	anna := transport.PairingView{Name: "anna@laptop", OS: "darwin", Arch: "arm64", Version: "1.4.0", Address: "192.168.1.30", AskedSeconds: 5, Role: "viewer"}
	b.api.waiting = []transport.PairingView{waiter(), anna}
	b.expect(exitDone, "approve")
	b.wants("stdout", b.out.String(), "NAME         WANTS            SYSTEM")
	b.wants("stdout", b.out.String(), "anna@laptop  login as viewer  darwin/arm64")

	b.w.inTTY, b.w.stdin = true, strings.NewReader("\n")
	b.expect(exitBad, "approve", "K7QF-2M9X")
	b.wants("stderr", b.err.String(), "  anna@laptop wants to log in as viewer (reads only)   darwin/arm64   lanjobs 1.4.0   from 192.168.1.30   asked 5s ago\nLet anna@laptop in as viewer? [y/N] ")
	if b.api.refused != 1 || len(b.api.approved) != 0 {
		t.Errorf("refused %d, approved %v", b.api.refused, b.api.approved)
	}
	b.w.stdin = strings.NewReader("y\n")
	b.expect(exitDone, "approve", "K7QF-2M9X")
	b.wants("stdout", b.out.String(), "✓ anna@laptop is let in as viewer. To shut out: lanjobs client rm anna@laptop\n")
	b.w.stdin = strings.NewReader("y\n")
	b.expect(exitDone, "approve", "K7QF-2M9X", "--role", "operator")
	b.wants("stderr", b.err.String(), "Let anna@laptop in as operator instead (reads, submits and acts on jobs: runs programs on the machines)? [y/N] ")
	want := []transport.PairDecision{{Role: "viewer"}, {Role: "operator"}}
	if len(b.api.approved) != 2 || b.api.approved[0] != want[0] || b.api.approved[1] != want[1] {
		t.Errorf("approved %+v, want %+v", b.api.approved, want)
	}
}

// TestApproveRoleOfTheOtherKind: a slip that says which roles fit; nobody is let in or sent away.
func TestApproveRoleOfTheOtherKind(t *testing.T) {
	b := newBench(t)
	home(b)
	anna := transport.PairingView{Name: "anna@laptop", OS: "darwin", Arch: "arm64", Version: "1.4.0", Role: "viewer"}
	for _, c := range []struct {
		who  transport.PairingView
		role string
		want string
	}{
		{anna, "worker", "lanjobs approve: anna@laptop wants to log in: --role worker is for machines, viewer, operator and admin fit. The code is still good: lanjobs approve K7QF-2M9X"},
		{anna, "voter", "--role voter is for machines"},
		{waiter(), "viewer", "lanjobs approve: pc-win is a machine that wants to join: --role viewer is for people, worker and voter fit."},
		{waiter(), "admin", "--role admin is for people"},
		{waiter(), "boss", `--role "boss" is none of voter, worker, viewer, operator, admin.`},
	} {
		b.api.waiting = []transport.PairingView{c.who}
		b.expect(exitUsage, "approve", "-y", "K7QF-2M9X", "--role", c.role)
		b.wants("stderr", b.err.String(), c.want)
	}
	if b.api.refused != 0 || len(b.api.approved) != 0 {
		t.Errorf("refused %d, approved %v", b.api.refused, b.api.approved)
	}
}

// TestClientNames: what the system calls somebody may have signs that a cluster would not take.
func TestClientNames(t *testing.T) {
	for user, want := range map[string]string{"anna": "anna@", "": "somebody@", `PC\Anna Smith`: `PC\Anna-Smith@`, "a\x1bb\xff": "a-b-@"} {
		if got := clientName(user); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %q, want %s…", user, got, want)
		}
	}
}
