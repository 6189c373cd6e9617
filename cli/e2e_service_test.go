//go:build e2e && linux

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// userHome is a user of a machine whose systemd is a script (testdata/systemctl).
type userHome struct {
	*lab
	env []string
	n   *member
}

func newHome(t *testing.T) *userHome {
	l := newLab(t)
	bin, run := filepath.Join(l.dir, "tools"), filepath.Join(l.dir, "run")
	for _, dir := range []string{bin, filepath.Join(run, "systemd"), filepath.Join(l.dir, "home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile(filepath.Join("testdata", "systemctl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"systemctl": string(script), "loginctl": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h := &userHome{lab: l}
	h.n = l.add("data", "")
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !strings.HasPrefix(name, "XDG_") && name != "HOME" && name != "PATH" {
			h.env = append(h.env, kv)
		}
	}
	h.env = append(h.env, "HOME="+filepath.Join(l.dir, "home"), "XDG_RUNTIME_DIR="+run, "PATH="+bin+":"+os.Getenv("PATH"), "LANJOBS_DATA_DIR="+h.n.dir, "NO_COLOR=1")
	t.Cleanup(func() { // the script's loop would start the node again
		_ = os.Remove(filepath.Join(run, "fake", "on"))
	})
	return h
}

func (h *userHome) do(want int, args ...string) (out, diag string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.exe, args...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = h.env, h.dir, &stdout, &stderr
	err := cmd.Run()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		h.t.Fatal(err)
	}
	if code != want {
		h.t.Fatalf("lanjobs %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, want, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// TestProcService: installing takes over the node that runs, its jobs and its labels; a killed agent comes back without its task
// noticing; who leaves stays down; the next command that needs a node starts the service.
func TestProcService(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.n.spawn("serve", "--node-name", "box", "--label", "gpu=true")
	h.waitFor(30*time.Second, "it runs", func() bool { return h.status(h.n).Health == "healthy" })
	id := h.submit(h.n, h.file("carry", lease(longLease), untilGate))
	h.starts("carry", 1, 20*time.Second)

	out, diag := h.do(0, "service", "install", "--user")
	if !strings.Contains(out, "✓ the service is installed and is ready") && !strings.Contains(out, "ok the service is installed and is ready") || !strings.Contains(diag, "gives its work back and ends") {
		t.Errorf("%s%s", out, diag)
	}
	h.starts("carry", 2, 30*time.Second) // given back, and begun again by the service
	var p transport.ProcessView
	h.waitFor(20*time.Second, "the service's node answers", func() bool { return h.process(&p) })
	first := p.PID
	if !p.Service || strings.Join(p.Flags, " ") != "--label gpu=true" || p.Exe != filepath.Join(h.dir, "home", ".local", "bin", "lanjobs") {
		t.Errorf("%+v", p)
	}
	h.renewed(id, longLease)
	h.signal(syscall.SIGKILL, first)
	h.waitFor(30*time.Second, "it is started again", func() bool { return h.process(&p) && p.PID != first })
	h.open("carry")
	h.ends(h.n, id, task.JobSucceeded, 30*time.Second)
	h.ledger.oneStart(t, "carry", 2)

	before := p.PID
	h.do(0, "service", "install", "--user") // again: restarted in order
	h.waitFor(30*time.Second, "it is started again", func() bool { return h.process(&p) && p.PID != before })
	h.do(0, "service", "status")
	if out, _ := h.do(0, "doctor", "-q"); !strings.Contains(out, "a service manager runs it") {
		t.Errorf("%s", out)
	}
	h.do(0, "leave", "--yes")
	h.do(3, "service", "status")
	if h.process(&p) {
		t.Error("who left was started again")
	}
	h.write(filepath.Join(h.dir, "job.yaml"), "name: next\nrun: exit 0\n")
	if _, diag := h.do(0, "submit", "job.yaml"); !strings.Contains(diag, "started the service") {
		t.Errorf("%s", diag)
	}
	h.do(0, "service", "stop")
	h.do(3, "service", "status")
	h.do(0, "service", "uninstall")
	if out, _ := h.do(3, "service", "status"); !strings.Contains(out, "not installed") {
		t.Errorf("%s", out)
	}
}

// process asks the node for its process.
func (h *userHome) process(into *transport.ProcessView) bool {
	client := transport.NewAPIClient(transport.SocketDoor(transport.SocketPath(h.n.dir)))
	return client.Get(context.Background(), "/v1/process", into) == nil
}

// TestProcDoctor: the checks of a cluster on loopback, of all its members, and what they say when one is down.
func TestProcDoctor(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	a, c := l.nodes[0], l.nodes[2]
	levels := func(v *task.DoctorView) map[string]task.Level {
		m := map[string]task.Level{}
		for _, f := range v.Findings {
			m[f.Check] = f.Level
		}
		return m
	}
	var odd string
	defer func() {
		if t.Failed() {
			t.Log(odd)
		}
	}()
	// judge asks for all three until nothing is odd: an answer that came late is a finding, too.
	judge := func(what string, each func(*task.DoctorView) bool) {
		t.Helper()
		l.waitFor(60*time.Second, what, func() bool {
			var all task.List[*task.DoctorView]
			odd = ""
			if !l.ask(a, &all, "doctor", "--all") || len(all.Items) != 3 {
				odd = fmt.Sprintf("%+v", all)
			}
			for _, v := range all.Items {
				if !each(v) {
					odd += fmt.Sprintf("%s: %+v\n", v.Name, v)
				}
			}
			return odd == ""
		})
	}
	judge("all is well", func(v *task.DoctorView) bool {
		m := levels(v)
		for _, check := range []string{"binary", "folder", "paths", "zones", "clock", "ports", "certificate", "quorum"} {
			if m[check] != task.LevelOK {
				return false
			}
		}
		return m["service"] == task.LevelWarn && m["disk"] != "" && m["sleep"] != ""
	})
	if err := os.Chmod(a.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, code := l.cli(a, "", "doctor"); code != 1 {
		t.Errorf("an open folder: exit %d", code)
	}
	if _, diag, _ := l.cli(a, "", "doctor", "--fix"); !strings.Contains(diag, "fixed  chmod 700") {
		t.Errorf("%s", diag)
	}
	c.kill(syscall.SIGKILL)
	judge("the others miss c", func(v *task.DoctorView) bool {
		if v.Name == "c" {
			return v.Silent && v.Why != ""
		}
		m := levels(v)
		return m["ports"] == task.LevelOK && m["network"] == task.LevelWarn && m["quorum"] == task.LevelWarn
	})
	if _, _, code := l.cli(a, "", "doctor", "--node", "c"); code != 6 {
		t.Errorf("a silent machine: exit %d", code)
	}
}
