package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"lanjobs/task"
	"lanjobs/transport"
)

// afar is a cluster that a bench can log in to.
type afar struct {
	api  *fakeAPI
	info transport.ClusterInfo
	ca   *transport.CA
	cut  bool // it cannot be reached
}

func newAfar(t *testing.T, name string) *afar {
	t.Helper()
	info, ca, err := transport.NewCluster(name)
	if err != nil {
		t.Fatal(err)
	}
	a := &afar{api: newFakeAPI(t), info: info, ca: ca}
	a.api.view.Name = name
	a.api.view.Nodes[0].Addresses = []string{"10.0.0.9:7420"}
	a.api.mux.HandleFunc("DELETE /v1/clients/self", a.api.locked(func(*http.Request) any { return transport.ClientView{} }))
	a.api.mux.HandleFunc("GET /v1/clients", a.api.locked(func(*http.Request) any {
		return list("ClientList", 7, []transport.ClientView{{ID: "c0123456789a", Name: "anna@laptop", Role: "operator", By: "root@mini-1"}})
	}))
	a.api.mux.HandleFunc("DELETE /v1/clients/{ref}", a.api.locked(func(*http.Request) any { return transport.ClientView{ID: "c0123456789a", Name: "anna@laptop"} }))
	return a
}

// admit makes an access to it.
func (a *afar) admit(t *testing.T, name string) *transport.Access {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	csr := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	hash, err := transport.CSRKeyHash(csr)
	if err != nil {
		t.Fatal(err)
	}
	id := transport.ClientIDOf(hash)
	cert, err := a.ca.IssueClient(csr, id)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &transport.Access{ID: id, Name: name, Role: "operator", ClusterID: a.info.ID, ClusterName: a.info.Name, CACert: a.info.CACert, Cert: cert,
		Key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), Peer: "mini-1.local:7420",
		Members: []transport.Member{{ID: "n1", Name: "mini-1", Addrs: []string{"10.0.0.1:7420"}}}}
}

// away is a bench without a node, that can log in to clusters.
func away(t *testing.T, clusters ...*afar) *bench {
	b := newBench(t)
	b.up = false
	config := t.TempDir()
	b.w.configDir = func() (string, error) { return config, nil }
	next := 0
	b.w.logIn = func(_ context.Context, cfg transport.LoginConfig) (*transport.Access, error) {
		a := clusters[next%len(clusters)]
		next++
		return a.admit(t, cfg.Name), nil
	}
	b.w.access = func(a *transport.Access) (http.RoundTripper, error) {
		for _, c := range clusters {
			if c.info.ID == a.ClusterID {
				return doorFunc(func(r *http.Request) (*http.Response, error) {
					if c.cut {
						return nil, task.NewProblem(task.ErrNoLeader, `cannot reach "home": 10.0.0.1:7420 (no answer in time).`, "")
					}
					return handlerDoor{c.api}.RoundTrip(r)
				}), nil
			}
		}
		return nil, errors.New("no such cluster")
	}
	return b
}

type doorFunc func(*http.Request) (*http.Response, error)

func (f doorFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (b *bench) logins() string {
	dir, _ := b.w.configDir()
	return filepath.Join(dir, "lanjobs", "logins")
}

const loginToken = "LJ1-AAAA"

func TestLoginIsUsedWhereNoNodeRuns(t *testing.T) {
	home := newAfar(t, "home")
	b := away(t, home)
	b.write("job.yaml", helloFile)
	b.expect(exitNoNode, "status")
	b.expect(exitDone, "login")
	b.wants("stdout", b.out.String(), "No logins. To get one: lanjobs login MACHINE")
	b.w.stdin = strings.NewReader(loginToken + "\n")
	b.expect(exitDone, "login", "mini-1", "--token-file", "-")
	b.wants("stdout", b.out.String(), `✓ logged in to "home" as anna@`)
	if info, err := os.Stat(filepath.Join(b.logins(), "home", transport.AccessFile)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%+v, %v", info, err)
	}
	b.expect(exitDone, "status")
	b.wants("stdout", b.out.String(), "home   healthy")
	b.expect(exitDone, "submit", "job.yaml")
	if len(b.launched) > 0 || len(home.api.jobs) != 1 || len(b.api.requests) > 0 {
		t.Errorf("started %q, %d jobs there, %d requests here", b.launched, len(home.api.jobs), len(b.api.requests))
	}
	b.expect(exitDone, "login", "-o", "name")
	b.wants("stdout", b.out.String(), "home\n")
	// Where the cluster is now was learned from its status.
	var members []transport.Member
	text, err := os.ReadFile(filepath.Join(b.logins(), "home", transport.MembersFile))
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil || len(members) != 1 || members[0].Addrs[0] != "10.0.0.9:7420" {
		t.Errorf("%s, %v", text, err)
	}
	// What is about this machine does not go there.
	for _, line := range []string{"leave -y", "node drain --self", "backup save --passphrase-file none", "recover --dry-run"} {
		b.expect(exitNoNode, strings.Fields(line)...)
		b.wants("stderr", b.err.String(), `is about the node here: your login to "home" is no node.`)
	}
	b.findings = []task.Finding{{Check: "disk", Level: task.LevelOK, Text: "fine"}}
	b.expect(exitDone, "doctor")
	b.wants("stdout", b.out.String(), "ok  disk  fine\n")
	sealed, err := transport.SealBackup([]byte(`{"cluster_id":"c1"}`+"\n"), []byte("four words"))
	if err != nil {
		t.Fatal(err)
	}
	b.write("old.backup", string(sealed))
	b.expect(exitUsage, "backup", "restore", "old.backup")
	b.wants("stderr", b.err.String(), "there is no terminal to ask for the passphrase on")
	if n := home.api.count("POST", "/v1/doctor") + home.api.count("GET", "/healthz"); n > 0 {
		t.Errorf("%d questions about this machine went there", n)
	}
	b.expect(exitDone, "init", "--name", "own")
	if b.created == nil {
		t.Error("init went elsewhere")
	}
}

func TestNodeHereComesFirst(t *testing.T) {
	home := newAfar(t, "home")
	b := away(t, home)
	b.expect(exitDone, "login", "mini-1", "--token", loginToken)
	b.up = true
	b.api.view.Name = "garage"
	b.expect(exitDone, "status")
	b.wants("stdout", b.out.String(), "garage   healthy")
	b.expect(exitDone, "ls", "--cluster", "garage")
	b.expect(exitDone, "status", "--cluster", "home")
	b.wants("stdout", b.out.String(), "home   healthy")
	b.expect(exitDone, "ls", "--cluster", "home", "-o", "json")
	b.expect(exitNotFound, "ls", "--cluster", "attic")
	b.wants("stderr", b.err.String(), `the node here belongs to "garage", not to "attic".`)
	b.wants("stderr", b.err.String(), "You are logged in to: home")
	// A node that goes away is not exchanged for a login in the middle of a command; a folder that was named has no stand-in.
	b.up = false
	b.expect(exitNoNode, "status", "--data-dir", filepath.Join(b.w.dir, "data"))
	// One that belongs to somebody else has: that is what logins are for.
	b.denied = true
	b.expect(exitDone, "status", "--data-dir", filepath.Join(b.w.dir, "data"))
	b.wants("stdout", b.out.String(), "home   healthy")
}

func TestSocketOfAnotherUser(t *testing.T) {
	b := away(t, newAfar(t, "home"))
	b.denied = true
	b.expect(exitNotAllowed, "status")
	b.wants("stderr", b.err.String(), `you are "anna" (socket: permission denied).`)
	b.wants("stderr", b.err.String(), "or get your own access: sudo lanjobs login localhost --grant anna")
}

func TestSeveralLogins(t *testing.T) {
	home, other, same := newAfar(t, "home"), newAfar(t, "garage"), newAfar(t, "home")
	b := away(t, home, other, same, home)
	b.expect(exitDone, "login", "mini-1", "--token", loginToken)
	b.expect(exitDone, "login", "garage-1", "--token", loginToken)
	b.expect(exitUsage, "status")
	b.wants("stderr", b.err.String(), `you are logged in to "garage" and "home": say which is meant.`)
	b.expect(exitDone, "status", "--cluster", "garage")
	b.wants("stdout", b.out.String(), "garage   healthy")
	b.expect(exitNoNode, "status", "--cluster", "attic")
	b.wants("stderr", b.err.String(), `you have no login called "attic".`)
	b.wants("stderr", b.err.String(), "You are logged in to: garage, home")
	// Another cluster of the same name is kept beside it.
	b.expect(exitDone, "login", "mini-9", "--token", loginToken)
	b.wants("stderr", b.err.String(), `You have a login to another cluster called "home": this one is --cluster home-2`)
	b.expect(exitDone, "status", "--cluster", "home-2")
	// The same cluster again takes the earlier one's place, which is given up there.
	before := len(home.api.requests)
	b.expect(exitDone, "login", "mini-1", "--token", loginToken)
	if r := home.api.requests[before:]; len(r) != 1 || r[0].method != "DELETE" || r[0].path != "/v1/clients/self" {
		t.Errorf("%+v", r)
	}
	b.expect(exitDone, "login", "-o", "name")
	b.wants("stdout", b.out.String(), "garage\nhome\nhome-2\n")
	b.expect(exitUsage, "logout")
	b.expect(exitDone, "logout", "--cluster", "home-2")
	b.wants("stdout", b.out.String(), `logged out of "home"`)
	b.expect(exitNotFound, "logout", "--cluster", "home-2")
	b.expect(exitDone, "status", "--cluster", "home")
}

func TestLogout(t *testing.T) {
	home := newAfar(t, "home")
	b := away(t, home, home)
	b.expect(exitNotFound, "logout")
	b.expect(exitDone, "login", "mini-1", "--token", loginToken)
	b.expect(exitDone, "logout")
	if r := home.api.requests[len(home.api.requests)-1]; r.method != "DELETE" || r.path != "/v1/clients/self" {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(b.logins(), "home")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder: %v", err)
	}
	b.expect(exitDone, "login", "mini-1", "--token", loginToken)
	home.api.refuse = task.NewProblem(task.ErrNotAllowed, "removed already", "")
	b.expect(exitDone, "logout")
	if b.err.String() != "" {
		t.Errorf("one that is gone there already: %s", b.err)
	}
}

// TestLogoutWithoutTheCluster: the key goes all the same, and the person is told what is left to do.
func TestLogoutWithoutTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home := newAfar(t, "home")
		b := away(t, home)
		b.expect(exitDone, "login", "mini-1", "--token", loginToken)
		home.cut = true
		b.expect(exitDone, "logout")
		b.wants("stderr", b.err.String(), `the cluster could not be told (cannot reach "home": 10.0.0.1:7420 (no answer in time).)`)
		b.wants("stderr", b.err.String(), "an admin types: lanjobs client rm c")
		if _, err := os.Stat(filepath.Join(b.logins(), "home")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its folder: %v", err)
		}
	})
}

func TestLoginFlagsAreChecked(t *testing.T) {
	b := away(t, newAfar(t, "home"))
	for _, c := range []struct{ line, want string }{
		{"login mini-1 --role boss", `--role "boss" is none of viewer, operator, admin`},
		{"login http://mini-1 --token x", "write a host name or an address"},
		{"login mini-1 --token x --token-file y", "give one"},
		{"login --grant ben", "PEER is missing"},
		{"login 10.0.0.1 --grant ben", "--grant is about the node of this machine"},
		{"login localhost --grant ben --token x", "--grant makes its own token"},
		{"token create --role king", "is none of viewer"},
		{"token create --role viewer --worker", "--worker is for machines and --role for people"},
	} {
		b.expect(exitUsage, strings.Fields(c.line)...)
		b.wants("stderr", b.err.String(), c.want)
	}
	b.w.goos = "windows"
	b.expect(exitUsage, "login", "localhost", "--grant", "ben")
	b.wants("stderr", b.err.String(), "not supported on Windows")
}

func TestDamagedLoginSaysSo(t *testing.T) {
	b := away(t, newAfar(t, "home"))
	b.expect(exitDone, "login", "mini-1", "--token", loginToken)
	if err := os.WriteFile(filepath.Join(b.logins(), "home", transport.AccessFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.expect(exitNotAllowed, "status")
	b.wants("stderr", b.err.String(), "is damaged")
	b.wants("stderr", b.err.String(), "Log in again")
}

func TestClientCommands(t *testing.T) {
	home := newAfar(t, "home")
	b := away(t, home)
	b.expect(exitDone, "login", "mini-1", "--token", loginToken)
	b.expect(exitDone, "client", "ls")
	b.wants("stdout", b.out.String(), "c0123456789a  anna@laptop  operator  -      root@mini-1")
	b.expect(exitDone, "client", "rm", "anna@laptop")
	b.wants("stdout", b.out.String(), "anna@laptop (c0123456789a) is shut out")
	if r := home.api.requests[len(home.api.requests)-1]; r.path != "/v1/clients/anna@laptop" {
		t.Errorf("%+v", r)
	}
}

// TestRulesReachTheBackgroundNode: what the owner allows goes to the node as it was said; taking it back is a word of its own.
func TestRulesReachTheBackgroundNode(t *testing.T) {
	b := newBench(t)
	b.up = false
	b.expect(exitDone, "join", "mini-1", "--token", loginToken, "--refuse-queue", "heavy", "--refuse-queue", "night", "--run-as", "nobody", "--allow-user", "")
	b.wants("started", strings.Join(b.launched[0], "|"), "|--refuse-queue|heavy|--refuse-queue|night|--run-as|nobody|--allow-user|")
}

// TestNoNameOfAClusterIsAPath: the cluster that lets somebody in says its name, and a folder gets it.
func TestNoNameOfAClusterIsAPath(t *testing.T) {
	for _, name := range []string{"../../autostart", "..", "", "a/b", "Home"} {
		b := away(t, newAfar(t, name))
		b.expect(exitBad, "login", "mini-1", "--token", loginToken)
		b.wants("stderr", b.err.String(), "is no name of a cluster")
		if _, err := os.Lstat(b.logins()); err == nil {
			t.Errorf("%q: something was kept", name)
		}
	}
}
