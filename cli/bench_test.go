package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lanjobs/cli/service"
	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/transport"
)

// testClock is the time of package time, which stands still in a synctest bubble until nobody runs.
type testClock struct{}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (testClock) Boot() task.Boot                        { return task.Boot(time.Since(epoch)) }
func (testClock) Awake() time.Duration                   { return time.Since(epoch) }
func (testClock) Wall() time.Time                        { return time.Now() }
func (testClock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (testClock) NewTimer(d time.Duration) task.Timer    { return testTimer{time.NewTimer(d)} }

type testTimer struct{ t *time.Timer }

func (t testTimer) C() <-chan time.Time        { return t.t.C }
func (t testTimer) Stop() bool                 { return t.t.Stop() }
func (t testTimer) Reset(d time.Duration) bool { return t.t.Reset(d) }

// stillClock shows the same moment always, so that tables can be compared.
type stillClock struct{ testClock }

func (stillClock) Wall() time.Time { return time.Date(2026, 11, 29, 12, 4, 11, 0, time.Local) }

// bench is one machine with a terminal, and perhaps a node.
type bench struct {
	t        *testing.T
	w        *world
	api      *fakeAPI
	out, err *safeBuffer
	up       bool // a node answers at the socket
	denied   bool // it belongs to someone else
	launched [][]string
	created  *node.Config
	joined   []string
	joinErr  error
	found    []transport.Found
	paired   func(talk node.PairTalk) error // what happens while this machine waits with its code
	inside   *fakeNode
	services *fakeServices // nil = no service manager
	root     bool
	findings []task.Finding // of this machine without a node
	env      map[string]string
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newBench is a machine with a node that answers.
func newBench(t *testing.T) *bench {
	b := &bench{t: t, api: newFakeAPI(t), out: &safeBuffer{}, err: &safeBuffer{}, up: true, env: map[string]string{"LANG": "en_US.UTF-8"}}
	dir := t.TempDir()
	b.w = &world{
		stdin: strings.NewReader(""), stdout: b.out, stderr: b.err,
		size: func() (int, int) { return 0, 0 }, getenv: func(k string) string { return b.env[k] },
		goos: "linux", user: "anna", dir: dir, exe: "/usr/bin/lanjobs", version: "1.4.0", clock: testClock{},
		door:   func(string) http.RoundTripper { return b },
		launch: b.launch,
		services: servicing{
			manager: func(user bool) (service.Manager, error) {
				if b.services == nil {
					return nil, service.ErrNoManager
				}
				return b.services.of(user), nil
			},
			root:     func() bool { return b.root },
			programs: func(bool, string) string { return filepath.Join(dir, "bin") },
			account:  b.account,
		},
		lock: lockFile,
		nodes: nodes{
			config: func() node.Config {
				cfg := node.DefaultConfig()
				cfg.DataDir, cfg.Name = filepath.Join(dir, "data"), "mini-1"
				return cfg
			},
			open: func(_ context.Context, cfg node.Config) (liveNode, error) {
				n := &fakeNode{api: b.api, cfg: cfg, stop: make(chan struct{})}
				b.api.change(func() { b.inside = n })
				return n, nil
			},
			check: func(_ context.Context, cfg node.Config) *task.DoctorView {
				return &task.DoctorView{Name: cfg.Name, Findings: b.findings}
			},
			fix: func(_ context.Context, _ node.Config, _ string, port int, _ []task.Finding) []string {
				b.findings = nil
				return []string{fmt.Sprintf("let %d in", port)}
			},
			create: func(cfg node.Config, name string) (*transport.InitView, error) {
				b.created = &cfg
				b.api.view.Name = name
				return &transport.InitView{Cluster: name, Node: cfg.Name, Fingerprint: "3F9A-7C21-0B4E"}, nil
			},
			find: func(context.Context, node.Config) ([]transport.Found, error) { return b.found, nil },
			pair: func(ctx context.Context, cfg node.Config, peer string, worker bool, talk node.PairTalk) (admission, error) {
				talk.Show("K7QF-2M9X", 10*time.Minute)
				if b.paired != nil {
					if err := b.paired(talk); err != nil {
						return admission{}, err
					}
				}
				return admission{by: "anna@mini-1", join: func(context.Context) (string, error) {
					b.joined = []string{peer, "by code", cfg.Name}
					b.api.change(func() { b.api.view.Name, b.api.gone = "home", false })
					return "home", ctx.Err()
				}}, nil
			},
			join: func(_ context.Context, cfg node.Config, peer, token string, worker bool) (string, error) {
				if b.joinErr != nil {
					return "", b.joinErr
				}
				b.joined = []string{peer, token, cfg.Name}
				b.api.view.Name = "home"
				return "home", nil
			},
		},
	}
	return b
}

// RoundTrip is the door to the node here.
func (b *bench) RoundTrip(r *http.Request) (*http.Response, error) {
	b.api.mu.Lock()
	gone := b.api.gone
	b.api.mu.Unlock()
	switch {
	case b.denied:
		return nil, transport.ErrSocketPermission
	case !b.up || gone:
		return nil, transport.ErrNoNode
	}
	return handlerDoor{b.api}.RoundTrip(r)
}

func (b *bench) launch(_ string, args []string, _ string) (<-chan error, error) {
	b.launched = append(b.launched, args)
	b.up = true
	b.api.change(func() { b.api.gone = false })
	return make(chan error), nil
}

// run runs a command line and gives its exit code.
func (b *bench) run(args ...string) int {
	b.t.Helper()
	return b.runCtx(b.t.Context(), args...)
}

func (b *bench) runCtx(ctx context.Context, args ...string) int {
	b.t.Helper()
	b.out.b.Reset()
	b.err.b.Reset()
	return execute(ctx, b.w, append([]string{"lanjobs"}, args...))
}

// expect runs a command line and compares its exit code.
func (b *bench) expect(code int, args ...string) {
	b.t.Helper()
	if got := b.run(args...); got != code {
		b.t.Fatalf("lanjobs %s: exit %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), got, code, b.out, b.err)
	}
}

func (b *bench) wants(what, have, part string) {
	b.t.Helper()
	if !strings.Contains(have, part) {
		b.t.Errorf("%s has no %q:\n%s", what, part, have)
	}
}

// write puts a file into the working directory.
func (b *bench) write(name, text string) string {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.w.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return name
}

// fakeNode is a node in this process.
type fakeNode struct {
	api     http.Handler
	cfg     node.Config
	once    sync.Once
	stop    chan struct{}
	fault   error
	stopped bool
	atOnce  bool
}

func (n *fakeNode) API() http.Handler { return n.api }

func (n *fakeNode) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-n.stop:
	}
	n.stopped = true
	return n.fault
}

func (n *fakeNode) Stop(ctx context.Context) error {
	n.atOnce = ctx.Err() != nil
	n.once.Do(func() { close(n.stop) })
	return nil
}

// breakDown ends the node in this process by itself.
func (b *bench) breakDown() {
	b.api.change(func() {
		b.inside.fault = errors.New("disk full")
		b.inside.once.Do(func() { close(b.inside.stop) })
	})
}

const helloFile = "name: hello\nrun: echo hello\n"

const scoreFile = "name: score\nshards: 4\nrun: echo $LANJOBS_SHARD\n"

const nightFile = "name: night\nschedule: {cron: \"0 3 * * *\", timezone: Europe/Berlin}\nrun: echo hello\n"
