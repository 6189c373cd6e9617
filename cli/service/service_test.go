package service

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// box is a machine in memory.
type box struct {
	files   map[string]string
	env     map[string]string
	answers map[string]string // of programs, by the beginning of their command line
	fails   map[string]string
	ran     []string
}

func (b *box) Run(_ context.Context, name string, args ...string) (string, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	b.ran = append(b.ran, line)
	for begin, text := range b.fails {
		if strings.HasPrefix(line, begin) {
			return text, errors.New(text)
		}
	}
	for begin, text := range b.answers {
		if strings.HasPrefix(line, begin) {
			return text, nil
		}
	}
	return "", nil
}

func (b *box) ReadFile(name string) ([]byte, error) {
	if text, ok := b.files[name]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (b *box) WriteFile(name string, text []byte) error { b.files[name] = string(text); return nil }
func (b *box) Remove(name string) error                 { delete(b.files, name); return nil }
func (b *box) Getenv(name string) string                { return b.env[name] }
func (b *box) UID() int                                 { return 501 }
func (b *box) Home() string                             { return "/home/anna" }

func (b *box) Exists(name string) bool {
	for file := range b.files {
		if file == name || strings.HasPrefix(file, name+"/") {
			return true
		}
	}
	return false
}

func newBox() *box {
	return &box{files: map[string]string{"/run/systemd/system/x": "", "/run/user/501/systemd/private": ""}, env: map[string]string{"XDG_RUNTIME_DIR": "/run/user/501"},
		answers: map[string]string{"systemctl --version": "systemd 255 (255.4-1)\n+PAM"}, fails: map[string]string{}}
}

func manager(t *testing.T, b *box, goos string, user bool) Manager {
	t.Helper()
	m, err := New(b, goos, user)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var spec = Spec{Exe: "/usr/local/bin/lanjobs", Args: []string{"serve", "--service", "--data-dir", "/home/anna/.local/share/lanjobs", "--label", "disk=my data", "--label", "load=50%"},
	User: "anna", Home: "/home/anna", DataDir: "/home/anna/.local/share/lanjobs", LogFile: "/home/anna/.local/share/lanjobs/node.log"}

func TestUnits(t *testing.T) {
	old := newBox()
	old.answers["systemctl --version"] = "systemd 249 (249.11-0ubuntu3)"
	own := spec
	own.User, own.Exe = "", "/home/anna/.local/bin/lanjobs"
	for _, c := range []struct {
		name, goos string
		box        *box
		user       bool
		spec       Spec
		place      string
	}{
		{"systemd.service", "linux", newBox(), false, spec, "/etc/systemd/system/lanjobs.service"},
		{"systemd-249.service", "linux", old, false, spec, "/etc/systemd/system/lanjobs.service"},
		{"systemd-user.service", "linux", newBox(), true, own, "/home/anna/.config/systemd/user/lanjobs.service"},
		{"launchd.plist", "darwin", newBox(), false, spec, "/Library/LaunchDaemons/lanjobs.plist"},
		{"launchd-user.plist", "darwin", newBox(), true, own, "/home/anna/Library/LaunchAgents/lanjobs.plist"},
	} {
		place, text := manager(t, c.box, c.goos, c.user).Unit(c.spec)
		if place != c.place {
			t.Errorf("%s is in %s", c.name, place)
		}
		file := filepath.Join("testdata", c.name)
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != text {
			t.Errorf("%s differs (%v); go test -update writes it anew:\n%s", c.name, err, text)
		}
		if strings.Contains(text, "7420") || strings.Contains(text, "listen") {
			t.Errorf("%s names an address", c.name)
		}
	}
}

// TestSystemdTakesTheUnit asks the real systemd, where it is installed, whether it understands every line.
func TestSystemdTakesTheUnit(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	real, err := System{}.Run(t.Context(), "systemctl", "--version")
	if err != nil {
		t.Skip("no systemctl here")
	}
	b := newBox()
	b.answers["systemctl --version"] = real // a line that it does not know would be a warning
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := spec
	s.Exe, s.User = self, "root"
	_, text := manager(t, b, "linux", false).Unit(s)
	file := filepath.Join(t.TempDir(), "lanjobs.service")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "verify", "--man=no", file).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "lanjobs.service") {
			t.Errorf("systemd-analyze: %s", line)
		}
	}
	t.Logf("systemd-analyze: %v\n%s", err, out)
}

// TestNoWordBeginsALine: labels of a running node reach a unit that root writes.
func TestNoWordBeginsALine(t *testing.T) {
	s := spec
	s.Args = []string{"serve", "--label", "a=b\r\nUser=root\n\tx", "--data-dir", "/da\nta"}
	s.DataDir = "/da\nta"
	_, text := manager(t, newBox(), "linux", false).Unit(s)
	if strings.Contains(text, "\nUser=root") || strings.Contains(text, "\nta") || !strings.Contains(text, `"a=b\x0d\x0aUser=root\x0a\x09x"`) {
		t.Error(text)
	}
}

func TestInstallAndRemove(t *testing.T) {
	const unit = "/etc/systemd/system/lanjobs.service"
	b := newBox()
	m := manager(t, b, "linux", false)
	if st, err := m.State(t.Context()); err != nil || st.Installed {
		t.Fatalf("%+v %v", st, err)
	}
	if err := m.Install(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	b.answers["systemctl show"] = "ActiveState=active\nMainPID=77\nUnitFileState=enabled\n"
	want := State{Manager: "systemd", Unit: unit, Installed: true, Ours: true, Running: true, AtBoot: true, PID: 77, User: "anna", DataDir: spec.DataDir, Exe: spec.Exe}
	if st, err := m.State(t.Context()); err != nil || st != want {
		t.Errorf("%+v %v", st, err)
	}
	if err := m.Uninstall(t.Context()); err != nil || b.Exists(unit) {
		t.Fatalf("%v", err)
	}
	var acts []string
	for _, line := range b.ran {
		if word := strings.Fields(line)[1]; word != "--version" && word != "show" {
			acts = append(acts, word)
		}
	}
	if want := []string{"daemon-reload", "enable", "restart", "stop", "disable", "daemon-reload"}; !slices.Equal(acts, want) {
		t.Errorf("%v", b.ran)
	}
	if err := m.Uninstall(t.Context()); err != nil {
		t.Errorf("twice: %v", err)
	}
	b.files[unit] = "[Service]\nExecStart=/opt/lanjobs serve\n"
	if st, _ := m.State(t.Context()); !st.Installed || st.Ours {
		t.Errorf("somebody's own: %+v", st)
	}
}

func TestOfAUser(t *testing.T) {
	b := newBox()
	m := manager(t, b, "linux", true)
	if err := m.Install(t.Context(), spec); err != nil || !slices.Contains(b.ran, "systemctl --user restart lanjobs") || !slices.Contains(b.ran, "loginctl enable-linger") {
		t.Errorf("%v %v", err, b.ran)
	}
	b.fails["loginctl"] = "access denied"
	if w, ok := errors.AsType[*Warning](m.Install(t.Context(), spec)); !ok || !strings.Contains(w.Text, "only while you are logged in (access denied)") {
		t.Errorf("%v", w)
	}
	b.env["XDG_RUNTIME_DIR"] = "/run/user/7"
	if err := m.Check(t.Context()); !errors.Is(err, ErrNoManager) {
		t.Errorf("%v", err)
	}
	delete(b.files, "/run/systemd/system/x")
	if err := manager(t, b, "linux", false).Check(t.Context()); !errors.Is(err, ErrNoManager) || !strings.Contains(err.Error(), "a container?") {
		t.Errorf("%v", err)
	}
}

func TestLaunchd(t *testing.T) {
	b := newBox()
	b.fails["launchctl bootout"], b.fails["launchctl print"] = "no such process", "no such process"
	m := manager(t, b, "darwin", false)
	if err := m.Install(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if want := []string{"launchctl bootout system/lanjobs", "launchctl enable system/lanjobs", "launchctl bootstrap system /Library/LaunchDaemons/lanjobs.plist"}; !slices.Equal(b.ran, want) {
		t.Errorf("%v", b.ran)
	}
	if st, err := m.State(t.Context()); err != nil || !st.Ours || st.Running || st.DataDir != spec.DataDir || st.User != "anna" {
		t.Errorf("%+v %v", st, err)
	}
	delete(b.fails, "launchctl bootout")
	delete(b.fails, "launchctl print")
	b.answers["launchctl print"] = "lanjobs = {\n\tstate = running\n\tpid = 4711\n}"
	if st, _ := m.State(t.Context()); !st.Running || st.PID != 4711 {
		t.Errorf("%+v", st)
	}
	b.ran = nil
	if err := m.Uninstall(t.Context()); err != nil || !slices.Contains(b.ran, "launchctl bootout system/lanjobs") || b.Exists("/Library/LaunchDaemons/lanjobs.plist") {
		t.Errorf("%v %v", err, b.ran)
	}
}

func TestWordsOfACommandLineComeBack(t *testing.T) {
	words := []string{"/opt/my dir/lanjobs", "serve", `a"b`, `c\d`, "$HOME", "50%", "", "plain"}
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, quoteUnit(w))
	}
	if got := splitUnit(strings.Join(quoted, " ")); !slices.Equal(got, words) {
		t.Errorf("%q became %q", words, got)
	}
}
