//go:build linux

package runner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lanjobs/task"
)

func TestScriptRunsWithOutputAndLogs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, e := b.run(script(`echo hello; echo oops >&2; echo "n=42" >> "$LANJOBS_OUTPUT"; pwd; umask; cat`))
	if e.Outcome.End != task.EndExited || e.Outcome.ExitCode != 0 {
		t.Fatalf("outcome %+v", e.Outcome)
	}
	dir := b.r.paths(x).dir
	if got, want := b.log(x, "stdout"), "hello\n"+dir+"\n0022\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if got := b.log(x, "stderr"); got != "oops\n" {
		t.Errorf("stderr %q", got)
	}
	if !slices.Equal(e.Outputs, []task.KV{{Name: "n", Value: "42"}}) {
		t.Errorf("outputs %v", e.Outputs)
	}
	b.r.Forget(x)
	b.until("private directory removed", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) })
	if got := b.log(x, "stderr"); got != "oops\n" {
		t.Errorf("after Forget the log is %q", got)
	}
}

func TestOutputsAreTakenOnSuccessOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, e := b.run(script(`echo "n=42" >> "$LANJOBS_OUTPUT"; exit 3`))
	if e.Outcome.ExitCode != 3 || e.Outputs != nil {
		t.Errorf("outcome %+v, outputs %v", e.Outcome, e.Outputs)
	}
	_, e = b.run(script(`echo fine; echo "no equals sign" >> "$LANJOBS_OUTPUT"`))
	if e.Outcome.ExitCode != task.DataError || !strings.Contains(e.Outcome.Message, "line 1 is not name=value") || e.Outcome.Tail != "fine\n" {
		t.Errorf("outcome %+v", e.Outcome)
	}
	if v := task.DefaultRetry().Judge(e.Outcome); v != task.VerdictPermanent {
		t.Errorf("verdict %v", v)
	}
}

// C57: a POSIX shell for run, none for command.
func TestQuoting(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, e := b.run(script(`echo "a  b" | tr a-z A-Z > out && echo 'it'"'"'s' && false || echo ok; cat out`))
	if got := b.log(x, "stdout"); got != "it's\nok\nA  B\n" || e.Outcome.ExitCode != 0 {
		t.Errorf("%q, %+v", got, e.Outcome)
	}
	args := []string{"a b", "$HOME", "*", "", "ün ï", "'", `"`, `back\slash`, "new\nline", "-n", "$(id)", "${NOT_SET}", "$$", "\xff\xfe"}
	x, _ = b.run(command(append([]string{self(t), "args"}, args...)...))
	var got []string
	if err := json.Unmarshal([]byte(b.log(x, "stdout")), &got); err != nil {
		t.Fatal(err)
	}
	args[len(args)-1] = "\ufffd\ufffd" // JSON's way to show them
	if !slices.Equal(got, args) {
		t.Errorf("got  %q\nwant %q", got, args)
	}
	spec := command(self(t), "args", "${LANJOBS_ITEM}", "${X}", "$LANJOBS_ITEM", "${LANJOBS_ITEM")
	spec.Stages[0].Items = []string{"in/a ${X} b.mov"}
	spec.Stages[0].Env = []task.KV{{Name: "X", Value: "<${LANJOBS_ITEM_STEM}>"}}
	x, _ = b.run(spec)
	if got, want := b.log(x, "stdout"), `["in/a ${X} b.mov","\u003ca ${X} b\u003e","$LANJOBS_ITEM","${LANJOBS_ITEM"]`+"\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// C60, 1: scripts that were written on Windows.
func TestScriptsWithForeignLineEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, text := range map[string]string{
		"CRLF":           "if true\r\nthen\r\n  echo yes\r\nfi\r\n",
		"mark before #!": "\ufeff#!/bin/sh\necho yes\n",
		"stops at fault": "echo yes\nfalse\necho no\n",
		"long":           "echo yes\n" + strings.Repeat("# "+strings.Repeat("x", 98)+"\n", 1500),
	} {
		x, e := b.run(script(text))
		if got := b.log(x, ""); got != "yes\n" {
			t.Errorf("%s: %q, %+v", name, got, e.Outcome)
		}
		if want := map[bool]int{true: 1}[name == "stops at fault"]; e.Outcome.ExitCode != want {
			t.Errorf("%s: exit %d", name, e.Outcome.ExitCode)
		}
	}
	for _, shell := range []string{"bash", "python3"} {
		spec := script("print('py')")
		if shell == "bash" {
			spec = script("[[ a < b ]] && echo py")
		}
		spec.Stages[0].Shell = shell
		if x, e := b.run(spec); b.log(x, "stdout") != "py\n" {
			t.Errorf("%s: %+v %q", shell, e.Outcome, b.log(x, ""))
		}
	}
}

// C60, 2 and 4: what cannot start says so, and is tried elsewhere.
func TestStartFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	plain := b.file("plain", "echo never\n")
	noInterpreter := b.file("crlf.sh", "#!/bin/sh\r\necho never\n")
	garbage := b.file("garbage", "\x01\x02\x03")
	for _, f := range []string{noInterpreter, garbage} {
		if err := os.Chmod(f, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(dir string) *task.Spec { s := script("echo never"); s.Stages[0].Workdir = dir; return s }
	withEnvFile := func(path string) *task.Spec {
		s := script("echo never")
		s.Stages[0].EnvFiles = []string{path}
		return s
	}
	for _, c := range []struct {
		name string
		spec *task.Spec
		code int
		want string
	}{
		{"missing program", command("no-such-program", "x"), 127, `no program "no-such-program" on PATH`},
		{"missing path", command("./tool"), 127, "no program"},
		{"not executable", command(plain), 126, "not executable"},
		{"a directory", command("/tmp"), 126, "is a directory"},
		{"bad interpreter", command(noInterpreter), 127, "interpreter that its #! line names"},
		{"not a program", command(garbage), 126, "not a program for this machine"},
		{"no directory", in("/no/such/place"), 126, "no such directory /no/such/place on nas"},
		{"a file as directory", in(plain), 126, "not a directory"},
		{"home sign", in("~/x"), 126, "~ is not expanded"},
		{"relative", in("x/y"), 126, "not an absolute path"},
		{"env file missing", withEnvFile("/no/env"), 126, "env file /no/env: no such file"},
		{"env file line", withEnvFile(b.file("bad.env", "A=1\nsecret word\n")), 126, "line 2 is not KEY=value"},
		{"env file own names", withEnvFile(b.file("own.env", "LANJOBS_FENCE=1\n")), 126, "line 1: names that begin with LANJOBS"},
		{"zero byte", command("echo", "a\x00b"), 126, "holds a zero byte"},
		{"too long", command("echo", strings.Repeat("x", 200<<10)), 126, "too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, e := b.run(c.spec)
			o := e.Outcome
			if o.End != task.EndStartFailed || o.ExitCode != c.code || !strings.Contains(o.Message, c.want) {
				t.Errorf("outcome %+v, want %d … %s", o, c.code, c.want)
			}
			if v := task.DefaultRetry().Judge(o); v != task.VerdictElsewhere {
				t.Errorf("verdict %v", v)
			}
			if strings.Contains(o.Message, "secret") {
				t.Error("the message tells what stands in an env file")
			}
		})
	}
}

// C60, 3: documented values, whatever the node was started with.
func TestEnvironmentOfATask(t *testing.T) {
	t.Setenv("SECRET_OF_THE_NODE", "x")
	t.Setenv("LANG", "de_DE@euro")
	t.Setenv("HOME", "")
	b := newBench(t)
	spec := script("env | sort")
	spec.Stages[0].EnvFiles = []string{b.file("a.env", "\ufeff# restic\r\nexport TOKEN='a b'\r\nMODE=file\n")}
	spec.Stages[0].Env = []task.KV{{Name: "MODE", Value: "job"}, {Name: "PATH", Value: "${PATH}:/opt/x"}, {Name: "OUT", Value: "${LANJOBS_JOB_ID}-${MODE}"}}
	spec.Stages[0].Items = []string{"a", "in/b.tar.gz"}
	spec.Stages[0].Shards = 2
	a := b.assignment()
	a.Shard, a.Attempt, a.ScheduledFor = 1, 3, 1795928400000
	a.Checkpoint = &task.Checkpoint{Seq: 7, Data: []byte("part 3")}
	x := b.startAs(a, spec, far())
	if e := b.exit(x); e.Outcome.ExitCode != 0 {
		t.Fatalf("%+v", e.Outcome)
	}
	got := map[string]string{}
	for line := range strings.Lines(b.log(x, "stdout")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	p := b.r.paths(x)
	for name, want := range map[string]string{
		"LANJOBS": "1", "LANJOBS_JOB_ID": "j000001", "LANJOBS_JOB_NAME": "test", "LANJOBS_STAGE": "main", "LANJOBS_SHARD": "1", "LANJOBS_SHARDS": "2",
		"LANJOBS_ITEM": "in/b.tar.gz", "LANJOBS_ITEM_NAME": "b.tar.gz", "LANJOBS_ITEM_STEM": "b.tar", "LANJOBS_ITEM_DIR": "in",
		"LANJOBS_ATTEMPT": "3", "LANJOBS_EXECUTION_ID": string(x), "LANJOBS_FENCE": "1001", "LANJOBS_NODE": "nas", "LANJOBS_QUEUE": "default",
		"LANJOBS_SCHEDULED_FOR": "2026-11-29T05:00:00Z", "LANJOBS_DIR": p.dir, "LANJOBS_CHECKPOINT": p.checkpoint, "LANJOBS_OUTPUT": p.output,
		"LANJOBS_STOP": p.stop, "LANJOBS_SOCKET": p.socket,
		"TOKEN": "a b", "MODE": "job", "OUT": "j000001-job", "LANG": "C.UTF-8", "HOME": homeOfUser(t), "PWD": p.dir,
	} {
		if got[name] != want {
			t.Errorf("%s=%q, want %q", name, got[name], want)
		}
	}
	if _, ok := got["SECRET_OF_THE_NODE"]; ok {
		t.Error("the node's own environment was passed on")
	}
	if path := got["PATH"]; !strings.HasPrefix(path, filepath.Dir(self(t))+":") || !strings.HasSuffix(path, ":/opt/x") {
		t.Errorf("PATH=%s", path)
	}
	if data, err := os.ReadFile(p.checkpoint); err != nil || string(data) != "part 3" {
		t.Errorf("checkpoint file %q, %v", data, err)
	}
}

func homeOfUser(t *testing.T) string {
	t.Helper()
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(passwd)) {
		if f := strings.Split(line, ":"); len(f) > 5 && f[2] == itoa(os.Getuid()) {
			return f[5]
		}
	}
	return ""
}

func TestFilesAndWorkdir(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files := []task.File{{Name: "bin/tool.sh", Mode: 0o755, Data: []byte("#!/bin/sh\necho tool $1\n")}, {Name: "data", Mode: 0o640, Data: []byte{0, 255, 13, 10}}}
	spec := command("bin/tool.sh", "x")
	spec.Files = files
	if x, e := b.run(spec); b.log(x, "stdout") != "tool x\n" {
		t.Errorf("private: %+v %q", e.Outcome, b.log(x, ""))
	}
	shared := filepath.Join(b.cfg.Dir, "shared")
	if err := os.Mkdir(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	spec = script(`bin/tool.sh "$PWD"; stat -c %a data; wc -c < data`)
	spec.Files = files
	spec.Stages[0].Workdir = "${ROOT}/shared"
	spec.Stages[0].Env = []task.KV{{Name: "ROOT", Value: b.cfg.Dir}}
	var xs []task.ExecutionID
	for range 8 { // at once, into one directory
		xs = append(xs, b.start(spec, far()))
	}
	for _, x := range xs {
		e := b.exit(x)
		if got, want := b.log(x, ""), "tool "+shared+"\n640\n4\n"; got != want {
			t.Errorf("shared: %+v %q, want %q", e.Outcome, got, want)
		}
	}
	if left, _ := filepath.Glob(shared + "/*.new"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	outside := b.file("outside", "mine")
	if err := os.Symlink(outside, filepath.Join(shared, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.cfg.Dir, filepath.Join(shared, "up")); err != nil {
		t.Fatal(err)
	}
	spec.Files = []task.File{{Name: "up/outside", Mode: 0o644, Data: []byte("stolen")}}
	if _, e := b.run(spec); e.Outcome.End != task.EndStartFailed {
		t.Errorf("a file left the directory by a link: %+v", e.Outcome)
	}
	if data, _ := os.ReadFile(outside); string(data) != "mine" {
		t.Errorf("outside is %q", data)
	}
}

func TestSignalThatWeDidNotSend(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, e := b.run(script(`echo last words; kill -9 $$`))
	if o := e.Outcome; o.End != task.EndSignal || o.Signal != 9 || o.Message != "killed by signal 9" || o.Tail != "last words\n" {
		t.Errorf("%+v", o)
	}
}

// C56: the command's kill score is the normal one, the guard's too, whatever the service file gave the node.
func TestKillScoreIsNormal(t *testing.T) {
	const own = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(own)
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(own, []byte("-500"), 0); err != nil {
		t.Skip("may not lower the kill score:", err)
	}
	t.Cleanup(func() { _ = os.WriteFile(own, before, 0) })
	b := newBench(t)
	x, _ := b.run(script("cat /proc/self/oom_score_adj"))
	if got := b.log(x, "stdout"); got != "0\n" {
		t.Errorf("oom_score_adj %q", got)
	}
}

// C56: where a memory control group can be made, a command that outgrows it is told apart from one that somebody killed.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	group := filepath.Join("/sys/fs/cgroup/memory", "lanjobs-test-"+itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skip("no memory control group for us:", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	if err := os.WriteFile(group+"/memory.limit_in_bytes", []byte("50000000"), 0); err != nil {
		t.Skip(err)
	}
	b := newBench(t)
	grab := ` echo $$ > ` + group + `/cgroup.procs; `
	_, e := b.run(script(grab + `exec python3 -c 'x = bytearray(300 << 20)'`))
	if o := e.Outcome; o.End != task.EndOutOfMemory || o.Message != "killed by signal 9 (out of memory)" {
		t.Errorf("%+v", o)
	}
	_, e = b.run(script(grab + `python3 -c 'x = bytearray(300 << 20)'; exit $?`)) // a grandchild
	if o := e.Outcome; o.ExitCode != 137 || !strings.Contains(o.Message, "out of memory") {
		t.Errorf("grandchild: %+v", o)
	}
}

// Nothing that one attempt leaves in the environment of the next: fresh directory, signals at their defaults, no open files.
func TestNextAttemptStartsFresh(t *testing.T) {
	inherited, err := unix.Dup(0) // not closed on exec, as a careless parent may leave it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	b := newBench(t)
	x, _ := b.run(script(`touch junk; chmod 755 .`))
	b.r.Forget(x)
	x, _ = b.run(script(`:`)) // leaves an empty directory, which is used again
	b.r.Forget(x)
	b.until("directory kept", func() bool { e, err := os.ReadDir(b.r.spares.dir); return err == nil && len(e) == 1 })
	x, _ = b.run(script(`ls -A; stat -c %a .; sh -c 'ls /proc/self/fd | wc -l'; grep -E 'SigIgn|SigBlk' /proc/self/status`))
	want := "700\n4\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" // 0 1 2 and the directory that ls reads
	// 32 is the C library's own (thread cancellation): a guard built with cgo, as for the race detector, may hand it on ignored.
	if got := strings.Replace(b.log(x, ""), "SigIgn:\t0000000080000000", "SigIgn:\t0000000000000000", 1); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if e, err := os.ReadDir(b.r.spares.dir); err != nil || len(e) != 0 {
		t.Errorf("the kept directory was not used: %v %v", e, err)
	}
}
