package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lanjobs/cli/service"
	"lanjobs/task"
	"lanjobs/transport"
)

// fakeServices are the service managers of a bench: that of the machine, and that of its user.
type fakeServices struct{ machine, user fakeManager }

func (s *fakeServices) of(user bool) service.Manager {
	if user {
		return &s.user
	}
	return &s.machine
}

// fakeManager keeps what it was told.
type fakeManager struct {
	state   service.State
	spec    service.Spec
	check   error
	install error
	run     func(bool) // hears that the service runs, or no longer
	acts    []string
}

func (m *fakeManager) Check(context.Context) error { return m.check }
func (m *fakeManager) Unit(s service.Spec) (place, text string) {
	return m.state.Unit, "run " + strings.Join(append([]string{s.Exe}, s.Args...), " ") + "\n"
}

func (m *fakeManager) act(what string, runs bool) error {
	m.acts = append(m.acts, what)
	m.state.Running = runs
	m.run(runs)
	return nil
}

func (m *fakeManager) Install(_ context.Context, s service.Spec) error {
	m.spec = s
	m.state.Installed, m.state.Ours, m.state.AtBoot, m.state.DataDir, m.state.Exe, m.state.User = true, true, true, s.DataDir, s.Exe, s.User
	return errors.Join(m.act("install", true), m.install)
}

func (m *fakeManager) Uninstall(context.Context) error {
	m.state.Installed = false
	return m.act("uninstall", false)
}
func (m *fakeManager) Start(context.Context) error                  { return m.act("start", true) }
func (m *fakeManager) Stop(context.Context) error                   { return m.act("stop", false) }
func (m *fakeManager) State(context.Context) (service.State, error) { return m.state, nil }

// account finds users of the bench: anna calls, also as root by sudo.
func (b *bench) account(name string) (*account, error) {
	switch {
	case name == "" && b.root:
		return &account{Name: "root", Home: "/root"}, nil
	case name == "" || name == "anna":
		return &account{Name: "anna", Home: "/home/anna", UID: os.Getuid(), GID: os.Getgid()}, nil
	}
	return nil, errors.New("unknown user")
}

// withServices gives a bench managers whose service is its node.
func withServices(t *testing.T) *bench {
	b := newBench(t)
	b.services = &fakeServices{}
	b.up = false
	for _, m := range []*fakeManager{&b.services.machine, &b.services.user} {
		m.state = service.State{Manager: "systemd", Unit: "/etc/machine.service"}
		m.run = func(on bool) {
			b.up = on
			b.api.change(func() { b.api.gone, b.api.process.Service = false, on })
		}
	}
	b.services.user.state.Unit = "/home/user.service"
	b.w.exe = filepath.Join(b.w.dir, "fresh")
	b.write("fresh", "the program")
	return b
}

func TestServiceInstall(t *testing.T) {
	b := withServices(t)
	m := &b.services.machine
	b.expect(exitNoNode, "service", "status")
	b.expect(exitNotAllowed, "service", "install")
	b.wants("stderr", b.err.String(), "a service of this machine needs root.")
	b.wants("stderr", b.err.String(), "sudo lanjobs service install   or for you alone, without root: lanjobs service install --user")
	b.expect(exitUsage, "service", "install", "--user", "--as", "anna")
	b.expect(exitDone, "service", "install", "--dry-run", "--slots", "3")
	b.wants("stdout", b.out.String(), "serve --service --data-dir "+b.w.nodes.config().DataDir+" --slots 3\n")
	if len(m.acts) > 0 {
		t.Fatalf("a dry run did %v", m.acts)
	}
	b.root = true
	b.env["SUDO_USER"] = "anna"
	b.expect(exitNotFound, "service", "install", "--as", "bob")
	b.expect(exitDone, "service", "install", "--data-dir", filepath.Join(b.w.dir, "data"))
	b.wants("stdout", b.out.String(), "✓ the service is installed and is ready: systemd runs "+filepath.Join(b.w.dir, "bin", "lanjobs")+" as anna")
	b.wants("stdout", b.out.String(), "Undo: sudo lanjobs service uninstall")
	if m.spec.User != "anna" || m.spec.Home != "/home/anna" || slices.Contains(m.spec.Args, "--listen") {
		t.Errorf("%+v", m.spec)
	}
	if text, err := os.ReadFile(m.spec.Exe); err != nil || string(text) != "the program" {
		t.Errorf("%q %v", text, err)
	}
	b.expect(exitDone, "service", "install", "--data-dir", filepath.Join(b.w.dir, "data"))
	b.wants("stderr", b.err.String(), "already.")
	b.expect(exitConflict, "service", "install", "--data-dir", filepath.Join(b.w.dir, "other"))
	b.wants("stderr", b.err.String(), "installed for another data folder")
	b.expect(exitDone, "service", "status")
	b.expect(exitDone, "service", "stop")
	b.expect(exitNoNode, "service", "status")
	b.expect(exitDone, "service", "start")
	b.expect(exitDone, "service", "uninstall")
	b.expect(exitDone, "service", "uninstall")
	b.wants("stdout", b.out.String(), "nothing to undo")
	b.expect(exitNoNode, "service", "start")
	if want := []string{"install", "install", "stop", "start", "uninstall"}; !slices.Equal(m.acts, want) {
		t.Errorf("%v", m.acts)
	}
}

// TestServiceOfAnotherUser: without --data-dir it is that of the person who called sudo, not root's.
func TestServiceOfAnotherUser(t *testing.T) {
	b := withServices(t)
	b.root, b.env["SUDO_USER"] = true, "anna"
	b.expect(exitDone, "service", "install", "-n")
	if want := "/home/anna/"; !strings.Contains(b.out.String(), "--data-dir "+want) {
		t.Errorf("%s", b.out)
	}
}

// TestServiceTakesOver stops the node in the background first and keeps the flags that it has.
func TestServiceTakesOver(t *testing.T) {
	b := withServices(t)
	b.up = true
	b.api.change(func() {
		b.api.process = transport.ProcessView{PID: 7, Flags: []string{"--label", "gpu=true", "--slots", "3"}}
	})
	b.expect(exitDone, "service", "install", "--user", "--slots", "5")
	m := &b.services.user
	if got := strings.Join(m.spec.Args[4:], " "); got != "--slots 5 --label gpu=true" || m.spec.User != "" {
		t.Errorf("%q %+v", got, m.spec)
	}
	if b.api.count("POST", "/v1/process/stop") != 1 {
		t.Error("the node was not stopped")
	}
	b.wants("stderr", b.err.String(), "(process 7): it gives its work back and ends")
	// Again: the service's own node is its manager's to restart, and keeps its flags.
	b.api.change(func() { b.api.process.Flags = []string{"--label", "gpu=true"} })
	b.expect(exitDone, "service", "install", "--user")
	if b.api.count("POST", "/v1/process/stop") != 1 || strings.Join(m.spec.Args[4:], " ") != "--label gpu=true" {
		t.Errorf("%+v", m.spec)
	}
	// A command that would start a node in the background starts the service.
	b.expect(exitDone, "service", "stop")
	b.write("job.yaml", helloFile)
	b.expect(exitDone, "submit", "job.yaml")
	b.wants("stderr", b.err.String(), "lanjobs: started the service")
	if len(b.launched) != 0 || m.acts[len(m.acts)-1] != "start" {
		t.Errorf("%v %v", b.launched, m.acts)
	}
}

func TestServiceLeavesAlone(t *testing.T) {
	b := withServices(t)
	b.root = true
	m := &b.services.machine
	m.check = service.ErrNoManager
	b.expect(exitNotFound, "service", "install", "--as", "anna")
	b.wants("stderr", b.err.String(), "no service manager.")
	m.check, m.state.Installed = nil, true
	b.expect(exitConflict, "service", "install", "--as", "anna")
	b.expect(exitConflict, "service", "uninstall")
	b.wants("stderr", b.err.String(), "/etc/machine.service was not written by lanjobs service install.")
	m.state.Installed = false
	if err := os.MkdirAll(filepath.Join(b.w.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write("bin/lanjobs", "#!/bin/sh\n")
	b.expect(exitConflict, "service", "install", "--user")
	b.wants("stderr", b.err.String(), "is there and is not lanjobs.")
	if len(m.acts) > 0 {
		t.Errorf("%v", m.acts)
	}
}

// TestServiceWarns: what is not as it should be is said, and the service runs.
func TestServiceWarns(t *testing.T) {
	b := withServices(t)
	b.services.user.install = &service.Warning{Text: "it runs only while you are logged in (no)"}
	b.expect(exitDone, "service", "install", "--user")
	b.wants("stderr", b.err.String(), "lanjobs: it runs only while you are logged in (no).")
}

func TestProgramIsReplaced(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "bin", "lanjobs")
	for _, want := range []string{"is copied to", "already"} {
		if did, err := placeProgram(self, to); err != nil || !strings.Contains(did, want) {
			t.Errorf("%q %v, want %q", did, err, want)
		}
	}
	other := filepath.Join(t.TempDir(), "next")
	if err := os.WriteFile(other, []byte("next version"), 0o700); err != nil {
		t.Fatal(err)
	}
	if did, err := placeProgram(other, to); err != nil || !strings.Contains(did, "replaced") {
		t.Errorf("%q %v", did, err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestDoctorWithoutANode(t *testing.T) {
	b := newBench(t)
	b.up = false
	b.findings = []task.Finding{{Check: "ports", Level: task.LevelBad, Text: "nas does not reach it", Fix: "sudo ufw allow 7420"}, {Check: "disk", Level: task.LevelOK, Text: "fine"}}
	b.expect(exitBad, "doctor")
	if want := "bad  ports  nas does not reach it\n            fix: sudo ufw allow 7420\nok   disk   fine\n1 bad, 0 warnings\n"; b.out.String() != want {
		t.Errorf("have\n%swant\n%s", b.out, want)
	}
	b.expect(exitNoNode, "doctor", "--all")
	b.expect(exitUsage, "doctor", "--all", "--node", "nas")
	b.expect(exitUsage, "doctor", "--fix", "--all")
	b.expect(exitDone, "doctor", "--fix")
	b.wants("stderr", b.err.String(), "fixed  let 7420 in")
	b.wants("stdout", b.out.String(), "All is well.")
}

func TestDoctorOfOthers(t *testing.T) {
	b := newBench(t)
	home(b)
	b.api.change(func() {
		b.api.doctors = []*task.DoctorView{{Node: "n1", Name: "mini-1", Findings: []task.Finding{{Check: "disk", Level: task.LevelWarn, Text: "slow"}}},
			{Node: "n3", Silent: true, Why: "cannot reach it"}}
	})
	b.expect(exitDone, "doctor", "--all", "-q")
	b.wants("stdout", b.out.String(), "NODE    LEVEL   CHECK  FINDING\nmini-1  warn    disk   slow\nnas     silent  -      cannot reach it\n")
	b.wants("stdout", b.out.String(), "0 bad, 2 warnings\n")
	b.expect(exitDone, "doctor", "--all", "-o", "json")
	b.wants("stdout", b.out.String(), `"silent": true`)
}

// process answers for the fake node's process.
func (f *fakeAPI) serveProcess(mux *http.ServeMux) {
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /v1/process", f.locked(func(*http.Request) any { return f.process }))
	mux.HandleFunc("POST /v1/process/stop", f.locked(func(*http.Request) any { f.gone = true; return f.process }))
	mux.HandleFunc("POST /v1/doctor", f.locked(func(*http.Request) any { return task.List[*task.DoctorView]{Kind: "DoctorList", Items: f.doctors} }))
}

// count is how often something was asked for.
func (f *fakeAPI) count(method, path string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r.method == method && r.path == path {
			n++
		}
	}
	return n
}
