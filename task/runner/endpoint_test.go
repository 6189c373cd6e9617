//go:build linux

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// The examples of UX 3, word for word.
const shExample = `api() { p=$1; shift; curl -fsS --unix-socket "$LANJOBS_SOCKET" "http://task/v1/$p" "$@"; }
n=$(api checkpoint); n=${n:-0};  printf %s $((n+1)) | api checkpoint -T -;  api progress -d "done=3&total=10"
`

const pythonExample = `import http.client, os, socket
class Task(http.client.HTTPConnection):
    def connect(self): self.sock = socket.socket(socket.AF_UNIX); self.sock.connect(os.environ["LANJOBS_SOCKET"])
def call(method, path, body=None):
    c = Task("task"); c.request(method, "/v1/" + path, body); r = c.getresponse(); data = r.read()
    if r.status == 409: raise SystemExit(7)
    return data
n = int(call("GET", "checkpoint") or 0); call("PUT", "checkpoint", str(n + 1))
`

func TestExamplesOfTheManual(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if x, e := b.run(script(shExample)); e.Outcome.ExitCode != 0 || b.log(x, "") != `{"seq":1}`+"\n" {
		t.Errorf("sh: %+v %q", e.Outcome, b.log(x, ""))
	}
	if string(b.backend.checkpoint.Data) != "1" || !slices.Equal(b.backend.progress, []string{"3/10"}) {
		t.Errorf("sh: checkpoint %q, progress %q", b.backend.checkpoint.Data, b.backend.progress)
	}
	python := script(pythonExample)
	python.Stages[0].Shell = "python3"
	if x, e := b.run(python); e.Outcome.ExitCode != 0 {
		t.Errorf("python: %+v %q", e.Outcome, b.log(x, ""))
	}
	if string(b.backend.checkpoint.Data) != "2" {
		t.Errorf("python: checkpoint %q", b.backend.checkpoint.Data)
	}
	b.backend.set(func(f *fakeBackend) { f.lost = true })
	if _, e := b.run(python); e.Outcome.ExitCode != 7 {
		t.Errorf("python with a lost lease: %+v", e.Outcome)
	}
	if x, e := b.run(script(shExample)); e.Outcome.ExitCode == 0 || !strings.Contains(b.log(x, "stderr"), "409") {
		t.Errorf("sh with a lost lease: %+v %q", e.Outcome, b.log(x, ""))
	}
}

// ask opens a client to an attempt's socket, made as the Go example of UX 3 makes it.
func (b *bench) ask(x task.ExecutionID) func(method, path, body string, header ...string) (int, string, http.Header) {
	task := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", b.r.paths(x).socket)
	}}}
	b.tb.Cleanup(task.CloseIdleConnections)
	return func(method, path, body string, header ...string) (int, string, http.Header) {
		b.tb.Helper()
		req, err := http.NewRequest(method, "http://task/v1/"+path, strings.NewReader(body))
		if err != nil {
			b.tb.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := task.Do(req)
		if err != nil {
			return 0, err.Error(), nil
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			b.tb.Fatal(err)
		}
		return resp.StatusCode, string(data), resp.Header
	}
}

// sleeper is an attempt that lasts as long as the test.
func (b *bench) sleeper() task.ExecutionID {
	b.tb.Helper()
	x := b.start(command("sleep", "600"), far())
	b.tb.Cleanup(func() { b.r.Stop(x, task.StopCancel, 0) })
	return x
}

func TestEndpointAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ask := b.ask(b.sleeper())
	b.backend.inputs = []Input{{0, "part0", "a"}, {0, "part1", "b"}, {2, "part0", "c d"}}
	big := strings.Repeat("x", task.MaxCheckpointBytes)
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		want               string // contained
	}{
		{"GET", "checkpoint", "", nil, 204, ""},
		{"PUT", "checkpoint", "one", nil, 200, `{"seq":1}`},
		{"PUT", "checkpoint", big, nil, 200, `{"seq":2}`},
		{"PUT", "checkpoint", big + "x", nil, 413, "too_large"},
		{"GET", "checkpoint", "", nil, 200, "xxx"},
		{"GET", "lease", "", nil, 200, `{"valid":true,"remaining_seconds":35`},
		{"POST", "lease", "", nil, 200, `"valid":true`},
		{"PUT", "outputs/part0", "work/0.mkv\n", nil, 204, ""},
		{"PUT", "outputs/part0", "two\r\nlines", nil, 400, "without NUL and CR"},
		{"PUT", "outputs/list", "two\nlines\n", nil, 204, ""},
		{"PUT", "outputs/part0", strings.Repeat("x", 4097), nil, 413, "at most 4096"},
		{"PUT", "outputs/part0", strings.Repeat("x", 5000), nil, 413, "larger than allowed"},
		{"PUT", "outputs/a%20b", "x", nil, 400, "output name"},
		{"GET", "inputs/segments", "", nil, 200, "0\tpart0\ta\n0\tpart1\tb\n2\tpart0\tc d\n"},
		{"GET", "inputs/segments.part0", "", nil, 200, "a\nb\nc d\n"},
		{"GET", "inputs/segments/part0", "", nil, 200, "a\nb\nc d\n"},
		{"GET", "inputs/segments?missing=1", "", nil, 200, "0\n0\n2\n"},
		{"GET", "inputs/segments", "", []string{"Accept", "application/json"}, 200, `[{"shard":0,"name":"part0","value":"a"}`},
		{"GET", "state/k", "", nil, 404, "not_found"},
		{"PUT", "state/k", "v1", []string{"If-Match", `"0"`}, 200, `{"version":1}`},
		{"PUT", "state/k", "v2", []string{"If-None-Match", "*"}, 412, "conflict"},
		{"PUT", "state/k", "v2", []string{"If-Match", "1"}, 200, `{"version":2}`},
		{"PUT", "state/k", "v3", []string{"If-Match", `"1"`}, 412, "conflict"},
		{"PUT", "state/k", "v3", nil, 200, `{"version":3}`},
		{"PUT", "state/a/b", "x", nil, 200, `{"version":1}`},
		{"PUT", "state/k", "x", []string{"If-Match", "new"}, 400, "not a version"},
		{"PUT", "state/k", "x", []string{"If-Match", ""}, 400, "not a version"},
		{"PUT", "state/k", "x", []string{"If-None-Match", `"1"`}, 400, "* alone"},
		{"PUT", "state/%00", "x", nil, 400, "without control characters"},
		{"PUT", "state/%ff", "x", nil, 400, "not UTF-8"},
		{"PUT", "state//mnt/x", "x", nil, 400, "a / in a key is %2F"}, // the mux would redirect, which curl -f takes for success
		{"PUT", "state/%2Fmnt", "x", nil, 200, `{"version":1}`},
		{"PUT", "state/k", strings.Repeat("x", task.MaxStateValueBytes+1), nil, 413, "too_large"},
		{"GET", "state/k", "", nil, 200, "v3"},
		{"POST", "defer", "10m", nil, 204, ""},
		{"POST", "defer", "soon", nil, 400, "write 10m"},
		{"POST", "progress", "", nil, 400, "progress is empty"},
		{"GET", "nonsense", "", nil, 404, "no GET /v1/nonsense"},
		{"DELETE", "checkpoint", "", nil, 404, "no DELETE"},
	} {
		status, body, header := ask(c.method, c.path, c.body, c.header...)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s %.20q: %d %.200s, want %d %s", c.method, c.path, c.body, status, body, c.status, c.want)
		}
		if status >= 400 && header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: type %s", c.method, c.path, header.Get("Content-Type"))
		}
		if c.path == "state/k" && status == 200 && header.Get("ETag") == "" {
			t.Errorf("%s %s: no ETag", c.method, c.path)
		}
	}
	if b.backend.deferred != 10*task.Minute || !slices.Equal(b.backend.outputs, []task.KV{{Name: "part0", Value: "work/0.mkv"}, {Name: "list", Value: "two\nlines"}}) {
		t.Errorf("deferred %d, outputs %v", b.backend.deferred, b.backend.outputs)
	}
}

func TestEndpointWithoutLeaseOrLeader(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ask := b.ask(b.sleeper())
	writes := [][2]string{{"PUT", "checkpoint"}, {"PUT", "outputs/a"}, {"PUT", "state/k"}, {"POST", "lease"}, {"POST", "defer"}}
	b.backend.set(func(f *fakeBackend) { f.noLeader = -1 })
	for _, w := range writes {
		status, body, header := ask(w[0], w[1], "1m")
		if status != 503 || header.Get("Retry-After") != "1" || !strings.Contains(body, `"type":"no_leader"`) {
			t.Errorf("%v without leader: %d %s", w, status, body)
		}
	}
	b.backend.set(func(f *fakeBackend) { f.noLeader, f.lost = 0, true })
	for _, w := range append(writes, [2]string{"POST", "progress"}) {
		if status, body, _ := ask(w[0], w[1], "1m"); status != 409 || !strings.Contains(body, `"type":"lease_lost"`) {
			t.Errorf("%v with a lost lease: %d %s", w, status, body)
		}
	}
	if status, body, _ := ask("GET", "lease", ""); status != 200 || !strings.Contains(body, `{"valid":false,"remaining_seconds":0,"fence":`) {
		t.Errorf("lease: %d %s", status, body)
	}
	if b.backend.seq != 0 || len(b.backend.progress) != 0 {
		t.Error("something reached the backend under a lost lease")
	}
}

func TestTaskInfo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spec := command("sleep", "600")
	spec.Stages[0].Items = []string{"a.mov"}
	a := b.assignment()
	a.Checkpoint = &task.Checkpoint{Seq: 7, Data: []byte("seven")}
	x := b.startAs(a, spec, far())
	ask := b.ask(x)
	_, body, _ := ask("GET", "task", "")
	var got TaskInfo
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	p := b.r.paths(x)
	want := TaskInfo{JobID: "j000001", JobName: "test", Stage: "main", Shards: 1, Item: "a.mov", Attempt: 1, ExecutionID: x, Fence: a.Token,
		Node: "nas", Queue: "default", Dir: p.dir, Workdir: p.dir, CheckpointSeq: 7}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, body, h := ask("GET", "checkpoint", ""); body != "seven" || h.Get("ETag") != `"7"` {
		t.Errorf("checkpoint as assigned: %q %s", body, h.Get("ETag"))
	}
	info, err := os.Stat(p.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v %v", info, err)
	}
	b.r.Stop(x, task.StopCancel, 0)
	b.exit(x)
	if _, err := os.Stat(p.socket); !os.IsNotExist(err) {
		t.Errorf("the socket outlived its attempt: %v", err)
	}
}

// R26: the file follows each accepted checkpoint, so that the next life of the agent knows it.
func TestCheckpointFileFollows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x, e := b.run(script(`[ ! -e "$LANJOBS_CHECKPOINT" ]
for i in 1 2 3; do echo $i | curl -fsS --unix-socket "$LANJOBS_SOCKET" http://task/v1/checkpoint -T - > /dev/null; done
cat "$LANJOBS_CHECKPOINT"; exit 1`))
	if got := b.log(x, "stdout"); got != "3\n" {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	if cp := loadCheckpoint(b.r.paths(x)); cp == nil || cp.Seq != 3 || string(cp.Data) != "3\n" {
		t.Errorf("%+v", cp)
	}
}

func TestProgressIsThrottled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ask := b.ask(b.sleeper())
	begin := time.Now()
	for _, p := range []string{"1/10", "2/10", "3/10", "4/10 almost"} {
		if status, body, _ := ask("POST", "progress", p); status != 204 {
			t.Errorf("%d %s", status, body)
		}
	}
	sent := time.Since(begin)
	var got []string
	b.until("the last one arrives", func() bool {
		b.backend.mu.Lock()
		defer b.backend.mu.Unlock()
		got = slices.Clone(b.backend.progress)
		return slices.Contains(got, "4/10 almost")
	})
	if got[0] != "1/10" || len(got) > 2+int(sent.Seconds()) {
		t.Errorf("%q within %s", got, sent)
	}
}

// A socket is used by one attempt after another. What one sent must never be taken for another's.
func TestConnectionsBelongToTheirAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := shortDir(t)
	r := b.r
	e1 := &endpoint{r: r, x: "x1", rec: &record{}, paths: paths{socket: filepath.Join(dir, "x1")}}
	d, err := newDoor(e1.paths.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	d.let(e1)
	late, err := net.Dial("unix", e1.paths.socket) // the agent is frozen: nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if _, err := late.Write([]byte("PUT /v1/checkpoint HTTP/1.1\r\nHost: task\r\nContent-Length: 3\r\n\r\nold")); err != nil {
		t.Fatal(err)
	}
	e2 := &endpoint{r: r, x: "x2", a: &task.Assignment{Token: 2}, rec: &record{}, paths: paths{socket: filepath.Join(dir, "x2")}}
	d.let(e2)
	r.wg.Go(func() { d.accept(r.reception) })
	_ = late.SetReadDeadline(time.Now().Add(untilBound))
	if n, err := late.Read(make([]byte, 100)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the late connection was answered: %d %v", n, err)
	}
	if b.backend.seq != 0 {
		t.Error("the late checkpoint was saved under the next attempt")
	}
}

// An open connection ends with its attempt, and a socket that the task removed does not harm the next one.
func TestDoorsAfterTheirAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.sleeper()
	conn, err := net.Dial("unix", b.r.paths(x).socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b.r.Stop(x, task.StopCancel, 0)
	b.exit(x)
	_ = conn.SetReadDeadline(time.Now().Add(untilBound))
	if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
		t.Errorf("connection lives after the end: %v", err)
	}
	b.run(script(`rm "$LANJOBS_SOCKET"`))
	for range 3 {
		x, e := b.run(script(`curl -fsS --unix-socket "$LANJOBS_SOCKET" http://task/v1/task`))
		if !strings.Contains(b.log(x, "stdout"), `"execution_id":"`+string(x)+`"`) {
			t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
		}
	}
}

// A data folder deep down has its sockets elsewhere, where paths are short enough for every system.
func TestLongDataFolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		c.Dir = filepath.Join(c.Dir, strings.Repeat("deep/", 20), "runner")
	})
	t.Cleanup(func() { _ = os.RemoveAll(b.r.sockets) })
	x, e := b.run(script(`curl -fsS --unix-socket "$LANJOBS_SOCKET" http://task/v1/lease; echo "$LANJOBS_SOCKET"`))
	got := b.log(x, "stdout")
	if e.Outcome.ExitCode != 0 || !strings.Contains(got, `"valid":true`) {
		t.Errorf("%+v %q", e.Outcome, b.log(x, ""))
	}
	if lines := strings.Fields(got); len(lines[len(lines)-1]) > maxSocketPath {
		t.Errorf("path of %d bytes", len(lines[len(lines)-1]))
	}
	if err := os.Chmod(b.r.sockets, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := socketDir(b.cfg.Dir); err == nil {
		t.Error("a folder that others may write to was taken")
	}
	_ = os.Chmod(b.r.sockets, 0o700)
}

// A task that leaves all its connections open must not take the node's files.
func TestTaskThatLeavesItsConnectionsOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	x := b.sleeper()
	for i := range maxTaskConns + 30 {
		if status, body, _ := b.ask(x)("GET", "lease", ""); status != 200 {
			t.Fatalf("connection %d: %d %s", i, status, body)
		}
	}
	b.r.mu.Lock()
	e := b.r.attempts[x].endpoint
	b.r.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.conns) > maxTaskConns {
		t.Errorf("%d connections are open", len(e.conns))
	}
}
