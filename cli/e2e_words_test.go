//go:build e2e && linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// TestProcQuoting: the shell form is what a POSIX shell makes of it, the list form reaches a program byte for byte, over the command
// line and over HTTP (C57).
func TestProcQuoting(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a")
	n := l.nodes[0]
	id := l.submit(n, `name: shell
run: |
  echo "a  b" | tr a-z A-Z > out && cat out && echo 'it'"'"'s' && false || echo ok
`)
	l.ends(n, id, task.JobSucceeded, 20*time.Second)
	if out := l.must(n, "logs", id); out != "A  B\nit's\nok" {
		t.Errorf("the shell form printed %q", out)
	}
	words := []string{"a b", "$HOME", "*", "", "ün ï", "'", "\"", "back\\slash", "new\nline", "-n", "$(id)", "${HOME"}
	args, err := json.Marshal(append([]string{"python3", "-c", "import json,sys; print(json.dumps(sys.argv[1:]))"}, words...))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"name": "list", "command": ` + string(args) + `}`
	code, reply := l.http(n, "POST", "/v1/jobs", http.Header{"Content-Type": {"application/yaml"}}, []byte(body))
	var over task.SubmitReply
	if err := json.Unmarshal(reply, &over); err != nil || code != 201 {
		t.Fatalf("HTTP %d %s", code, reply)
	}
	for _, id := range []string{l.submit(n, body), string(over.ID)} {
		l.ends(n, id, task.JobSucceeded, 20*time.Second)
		var got []string
		if out := l.must(n, "logs", id); json.Unmarshal([]byte(out), &got) != nil || !slices.Equal(got, words) {
			t.Errorf("the program got %q", out)
		}
	}
}

// TestProcSurroundings: what a command finds around it does not depend on how the node was started, and what cannot start fails
// with the true reason (C60).
func TestProcSurroundings(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	n := l.add("a", fmt.Sprintf("127.0.0.1:%d", l.port))
	n.wrap = []string{"env", "-i"} // as service managers do
	l.start()
	id := l.submit(n, "name: env\nrun: |\n  echo \"PATH=$PATH|HOME=$HOME|LANG=$LANG|UMASK=$(umask)|PWD=$(pwd)|DIR=$LANJOBS_DIR\"\n")
	l.ends(n, id, task.JobSucceeded, 20*time.Second)
	got := map[string]string{}
	for _, kv := range strings.Split(l.must(n, "logs", id), "|") {
		name, value, _ := strings.Cut(kv, "=")
		got[name] = value
	}
	home, _ := os.UserHomeDir()
	if !strings.Contains(got["PATH"], "/usr/bin") || got["HOME"] != home || !strings.HasSuffix(got["LANG"], "UTF-8") || strings.TrimLeft(got["UMASK"], "0") != "22" || got["PWD"] != got["DIR"] {
		t.Errorf("a command finds %q", got)
	}
	// Line ends of Windows in the file are those of the file, not of the script.
	id = l.submit(n, "name: crlf\r\nrun: |\r\n  for i in 1 2; do\r\n    echo \"line $i\"\r\n  done\r\n")
	l.ends(n, id, task.JobSucceeded, 20*time.Second)
	if out := l.must(n, "logs", id); out != "line 1\nline 2" {
		t.Errorf("printed %q", out)
	}
	plain := filepath.Join(l.dir, "plain")
	l.write(plain, "no program\n")
	for name, c := range map[string]struct{ keys, reason string }{
		"missing":  {"command: [/no/such/program]", "no program /no/such/program"},
		"unknown":  {"command: [no-such-program-anywhere]", "on path"},
		"nothing":  {"command: [" + plain + "]", "permission denied"},
		"nowhere":  {"workdir: /no/such/folder\nrun: echo hi", "no such"},
		"nosource": {"env_files: [/no/such/file]\nrun: echo hi", "no such file"},
	} {
		id := l.submit(n, "name: "+name+"\nretry: {attempts: 2, initial: 200ms}\n"+c.keys+"\n")
		l.ends(n, id, task.JobFailed, 30*time.Second)
		as := l.attempts(n, id)
		if len(as) != 2 || !strings.Contains(strings.ToLower(as[1].Reason), c.reason) {
			t.Errorf("%s: attempts %+v; want two because of %q", name, as, c.reason)
		}
	}
	l.want(n, 0, "healthy", "status")
}
