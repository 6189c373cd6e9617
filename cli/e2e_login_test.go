//go:build e2e && linux

package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"lanjobs/transport"
)

// asks starts a login without a token, and gives the code once it is shown.
func (p *person) asks(args ...string) (*followed, string) {
	p.lab.t.Helper()
	f := p.follow(append([]string{"login"}, args...)...)
	p.lab.waitFor(30*time.Second, p.name+" shows a code", func() bool { return shownCode.MatchString(f.String()) })
	return f, shownCode.FindStringSubmatch(f.String())[1]
}

// refuses types a code on a member and says no, as "approve" does when its question is answered so.
func (l *lab) refuses(n *member, code string) {
	l.t.Helper()
	api := transport.NewAPIClient(transport.SocketDoor(transport.SocketPath(n.dir)))
	v := &transport.PairingView{}
	err := api.Post(context.Background(), "/v1/pairings", "", transport.PairCodeBody{Code: code}, v)
	if err == nil {
		err = api.Delete(context.Background(), "/v1/pairings/"+v.ID, "", nil)
	}
	if err != nil {
		l.t.Error(err)
	}
}

// accessFile is where a person's login would be kept.
func (p *person) accessFile() string {
	return filepath.Join(p.dir, "config", "lanjobs", "logins", "home", "login.json")
}

// TestProcLoginByCode: people on machines without a node are let in by codes that are typed on any member, with the role that was asked for
// or another; one is refused, one gives up, and none of them passes for a machine.
func TestProcLoginByCode(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	lead := l.leader()
	rest := l.others(lead)

	anna := l.person("anna")
	waiting, code := anna.asks(rest[0].peer)
	l.want(rest[1], 0, "login as viewer", "approve")
	l.want(rest[1], 2, "viewer, operator and admin fit. The code is still good", "approve", "-y", code, "--role", "worker")
	l.want(rest[1], 0, "is let in as viewer.", "approve", "-y", code)
	waiting.waits("✓ approved by ")
	waiting.ends(0, 30*time.Second)
	anna.want(0, "3 voters", "", "status")
	anna.want(4, "a viewer: this takes the role operator", "", "node", "drain", lead.name)
	l.want(lead, 4, "no waiting machine has the code", "approve", "-y", code)

	// Another role than was asked for; then from that login somebody else, by the same command.
	boss := l.person("boss")
	waiting, code = boss.asks(lead.peer, "--role", "operator")
	l.want(rest[0], 0, "wants to log in as operator", "approve", "-y", code, "--role", "admin")
	waiting.waits(", as admin (asked for: operator)")
	waiting.ends(0, 30*time.Second)
	ben := l.person("ben")
	waiting, code = ben.asks(rest[1].peer, "--role", "operator")
	anna.want(4, "a viewer: this takes the role admin", "", "approve", "-y", code)
	boss.want(0, "is let in as operator.", "", "approve", "-y", code)
	waiting.ends(0, 30*time.Second)
	ben.want(0, "", "", "ls")

	// A machine stays a machine.
	d := l.add("d", fmt.Sprintf("127.0.0.4:%d", l.port))
	code = l.asks(d, rest[0].peer, "--worker")
	l.want(lead, 2, "d is a machine that wants to join: --role admin is for people, worker and voter fit.", "approve", "-y", code, "--role", "admin")
	l.want(lead, 0, "✓ d is in.", "approve", "-y", code)

	eve := l.person("eve")
	waiting, _ = eve.asks(lead.peer)
	l.waitFor(20*time.Second, "eve waits", func() bool { who, ok := l.waiting(lead); return ok && who != "" })
	if err := waiting.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	waiting.ends(130, 20*time.Second)
	l.waitFor(20*time.Second, "eve waits no longer", func() bool { who, ok := l.waiting(lead); return ok && who == "" })
	eve.want(3, "no node is running", "", "status")

	waiting, code = eve.asks(lead.peer)
	l.refuses(lead, code)
	waiting.ends(4, 30*time.Second)
	waiting.waits("did not let you in.")
	if _, err := os.Stat(eve.accessFile()); err == nil {
		t.Error("who was refused has a login")
	}
	if _, err := os.Stat(anna.accessFile()); err != nil {
		t.Error(err)
	}
	if out := l.must(lead, "token", "ls", "-o", "name"); out != "" {
		t.Errorf("tokens are left: %s", out)
	}
}
