package cli

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

func TestStatusHealth(t *testing.T) {
	b := newBench(t)
	b.expect(exitDone, "status")
	b.wants("stdout", b.out.String(), "this machine only   healthy   lanjobs 1.4.0\n")
	home(b)
	b.api.view.Health = "degraded"
	b.expect(exitBad, "status")
	b.api.leader = false
	b.expect(exitUnreachable, "status")
	b.wants("stdout", b.out.String(), "home   no leader   leader none")
	b.wants("stdout", b.out.String(), "this is what was known 12s ago")
	b.expect(exitUnreachable, "status", "-o", "json")
	b.expect(exitNotFound, "ls", "--cluster", "garage")
	b.wants("stderr", b.err.String(), `the node here belongs to "home", not to "garage".`)
}

func TestSubmitStartsNode(t *testing.T) {
	b := newBench(t)
	b.up = false
	b.write("job.yaml", helloFile)
	b.expect(exitNoNode, "submit", "--no-start", "job.yaml")
	b.expect(exitNoNode, "submit", "--cluster", "home", "job.yaml")
	if len(b.launched) != 0 {
		t.Fatalf("started %q", b.launched)
	}
	b.expect(exitDone, "submit", "job.yaml")
	if b.out.String() != "j000001\n" || len(b.launched) != 1 || strings.Join(b.launched[0], " ") != "serve --data-dir "+b.w.nodes.config().DataDir {
		t.Errorf("output %q, started %q", b.out, b.launched)
	}
	b.wants("stderr", b.err.String(), `lanjobs: started a node in the background ("this machine only", no network; log: `)
	b.wants("stderr", b.err.String(), "It does not survive a restart of this machine")
	b.expect(exitDone, "submit", "job.yaml", "-q")
	if len(b.launched) != 1 || b.err.String() != "" {
		t.Errorf("started %q, stderr %q", b.launched, b.err)
	}
}

// TestDryRun asks the node here as well, and hands nothing in.
func TestDryRun(t *testing.T) {
	b := newBench(t)
	b.write("job.yaml", helloFile)
	b.api.note = "no machine can run it now: gpu=true, 0 of 4"
	b.expect(exitDone, "submit", "job.yaml", "--dry-run")
	b.wants("stderr", b.err.String(), "job.yaml: hello is valid (1 stage, 1 shard); nothing was submitted.\nlanjobs: no machine can run it now: gpu=true, 0 of 4.\n")
	if len(b.api.jobs) != 0 || b.out.String() != "" {
		t.Errorf("%d jobs, output %q", len(b.api.jobs), b.out)
	}
}

// TestNodeDoesNotStart: the end of its log, as far as it is of this start, says why.
func TestNodeDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		b.write("job.yaml", helloFile)
		log := filepath.Join(b.w.nodes.config().DataDir, logName)
		if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(log, []byte("an old line\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.w.launch = func(string, []string, string) (<-chan error, error) {
			f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			_, _ = f.WriteString("the disk is full\n")
			exited := make(chan error, 1)
			exited <- errors.New("exit status 1")
			return exited, f.Close()
		}
		b.expect(exitBad, "submit", "job.yaml")
		b.wants("stderr", b.err.String(), "lanjobs: the node in the background did not start (exit status 1).\n      the disk is full\n      Its log: ")
		if strings.Contains(b.err.String(), "old line") {
			t.Errorf("tells of an earlier start: %s", b.err)
		}
		b.w.launch = func(string, []string, string) (<-chan error, error) { return make(chan error), nil }
		start := time.Now()
		b.expect(exitBad, "submit", "job.yaml")
		if took := time.Since(start); took > startPatience+time.Second {
			t.Errorf("waited %s", took)
		}
	})
}

func TestInit(t *testing.T) {
	b := newBench(t)
	b.up = false
	b.expect(exitDone, "init", "--name", "garage", "--listen", "192.168.1.5", "--node-name", "mini")
	b.wants("stdout", b.out.String(), `Cluster "garage" is ready on mini (TCP and UDP port 7420).  CA SHA256 3F9A-7C21-0B4E`)
	if b.created.Listen != "192.168.1.5:7420" || strings.Join(b.launched[0][3:], " ") != "--listen 192.168.1.5:7420 --node-name mini" {
		t.Errorf("created %+v, started %q", b.created, b.launched)
	}
	b.expect(exitConflict, "init")
	b.wants("stderr", b.err.String(), `this machine is a member of "garage" already`)
}

// TestInitKeepsJobs: a node that runs "this machine only" is asked, not replaced.
func TestInitKeepsJobs(t *testing.T) {
	b := newBench(t)
	b.expect(exitDone, "init")
	if b.created != nil || len(b.launched) > 0 || b.api.view.Name != "home" {
		t.Errorf("created %v, started %q", b.created, b.launched)
	}
	b = newBench(t)
	b.up = false
	b.settle("")
	b.expect(exitDone, "init", "-o", "json")
	if b.created == nil || len(b.launched) != 1 {
		t.Errorf("created %v, started %q", b.created, b.launched)
	}
	b.wants("stdout", b.out.String(), `"ca_fingerprint": "3F9A-7C21-0B4E"`)
}

func TestInitForeground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.up = false
		time.AfterFunc(time.Second, func() { b.breakDown() })
		b.expect(exitBad, "init", "--foreground")
		b.wants("stderr", b.err.String(), "lanjobs: disk full")
		b.wants("stdout", b.out.String(), "is ready")
	})
}

func TestJoin(t *testing.T) {
	b := newBench(t)
	b.up = false
	b.api.view.Sentence = "2 machines: not yet fault tolerant, a third one makes it so"
	b.api.view.Nodes = []task.NodeView{{ID: "n1", Name: "pc-win", Role: "worker", State: "ready"}}
	b.w.stdin = strings.NewReader("LJ1-abc\n")
	b.expect(exitDone, "join", "mini-1.local", "--token-file", "-", "--node-name", "pc-win", "--label", "gpu=true", "--worker")
	if strings.Join(b.joined, " ") != "mini-1.local:7420 LJ1-abc pc-win" || strings.Join(b.launched[0][3:], " ") != "--node-name pc-win --label gpu=true" {
		t.Errorf("joined %q, started %q", b.joined, b.launched)
	}
	b.wants("stdout", b.out.String(), `✓ joined "home" as pc-win, worker (2 machines: not yet fault tolerant, a third one makes it so)`)
}

// TestJoinSaysWhatTheMachineIs: it comes in as a worker and is given its part a moment later; what is printed is what it is then.
func TestJoinSaysWhatTheMachineIs(t *testing.T) {
	for _, c := range []struct {
		then   string // its role after a second
		others int
		voters int // after two
		want   string
	}{
		{"standby", 1, 1, "as pc-win, standby, may become a voter (x)"},
		{"standby", 2, 1, "as pc-win, standby, may become a voter (x)"},
		{"voter", 2, 3, "as pc-win, voter (x)"},
		{"standby", 3, 3, "as pc-win, standby, may become a voter (x)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.up = false
			b.api.view.Sentence, b.api.view.Voters = "x", 1
			b.api.view.Nodes = []task.NodeView{{ID: "n1", Name: "pc-win", Role: "worker", State: "ready"}}
			for range c.others {
				b.api.view.Nodes = append(b.api.view.Nodes, task.NodeView{ID: "n2", Role: "voter", State: "ready"})
			}
			self := func(role string) {
				b.api.change(func() {
					nodes := slices.Clone(b.api.view.Nodes)
					nodes[0].Role = role
					b.api.view.Nodes = nodes
				})
			}
			time.AfterFunc(time.Second, func() { self("standby") })
			time.AfterFunc(2*time.Second, func() { self(c.then); b.api.change(func() { b.api.view.Voters = c.voters }) })
			b.w.stdin = strings.NewReader("LJ1-abc\n")
			b.expect(exitDone, "join", "mini-1.local", "--token-file", "-")
			b.wants("stdout", b.out.String(), c.want)
		})
	}
}

// TestJoinFromOwnNode: a node of this machine only makes room if nothing of it is unfinished.
func TestJoinFromOwnNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.api.view.Nodes = []task.NodeView{{ID: "n1", Name: "mini-1", Role: "voter", State: "ready"}}
		j := b.api.add(task.Spec{Name: "a"})
		b.expect(exitConflict, "join", "nas", "--token", "LJ1-abc")
		b.wants("stderr", b.err.String(), "this machine's own node has work to do (1 unfinished job).")
		if b.api.gone {
			t.Fatal("it was told to leave all the same")
		}
		j.view.State, b.api.view.Name = task.JobSucceeded, "garage"
		b.expect(exitConflict, "join", "nas", "--token", "LJ1-abc")
		b.wants("stderr", b.err.String(), `this machine belongs to "garage". lanjobs leave`)
		b.api.view.Name = ""
		b.expect(exitDone, "join", "nas", "--token", "LJ1-abc")
		last := b.api.requests
		left := false
		for _, r := range last {
			left = left || r.path == "/v1/leave"
		}
		if !left || len(b.joined) == 0 {
			t.Errorf("left %t, joined %q", left, b.joined)
		}
	})
}

func TestJoinOverStoppedNode(t *testing.T) {
	for cluster, want := range map[string]string{
		"":       "a node that does not run has its data in ",
		"garage": `this machine belongs to "garage". lanjobs leave, or put its data aside: lanjobs join nas --replace`,
	} {
		b := newBench(t)
		b.up = false
		b.settle(cluster)
		b.expect(exitConflict, "join", "nas", "--token", "LJ1-abc")
		b.wants("stderr", b.err.String(), want)
		b.expect(exitDone, "join", "nas", "--token", "LJ1-abc", "--replace")
		if len(b.joined) == 0 {
			t.Error("has not joined")
		}
	}
}

// settle makes the data folder that of a node that does not run.
func (b *bench) settle(cluster string) {
	b.t.Helper()
	identity, err := transport.NewIdentity("mini-1")
	if err != nil {
		b.t.Fatal(err)
	}
	if cluster != "" {
		info, ca, err := transport.NewCluster(cluster)
		if err != nil {
			b.t.Fatal(err)
		}
		csr, err := identity.CSR()
		if err != nil {
			b.t.Fatal(err)
		}
		cert, err := ca.Issue(csr, identity.NodeID)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := identity.Adopt(info, cert); err != nil {
			b.t.Fatal(err)
		}
	}
	dir := b.w.nodes.config().DataDir
	if err := errors.Join(os.MkdirAll(dir, 0o700), identity.Save(dir)); err != nil {
		b.t.Fatal(err)
	}
}

func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		home(b)
		b.w.clock = testClock{}
		b.expect(exitUsage, "leave")
		b.w.inTTY, b.w.stdin = true, strings.NewReader("n\n")
		b.expect(exitBad, "leave")
		b.w.stdin = strings.NewReader("yes\n")
		b.api.leaving = 40 * time.Second
		b.expect(exitDone, "leave")
		b.api.leaving = 0
		b.wants("stdout", b.out.String(), `mini-1 has left "home"`)
		b.wants("stderr", b.err.String(), `Take mini-1 out of "home"? [y/N]`)
		// The socket is gone at once, the data a little later.
		b.api.gone = false
		b.settle("home")
		time.AfterFunc(3*time.Second, func() { _ = os.RemoveAll(b.w.nodes.config().DataDir) })
		start := time.Now()
		b.expect(exitDone, "leave", "-y")
		if took := time.Since(start); took < 3*time.Second || took > 5*time.Second {
			t.Errorf("waited %s", took)
		}
	})
}

func TestNodeRm(t *testing.T) {
	b := newBench(t)
	home(b)
	b.expect(exitNotFound, "node", "rm", "nass", "-y")
	b.wants("stderr", b.err.String(), `no node "nass".`)
	b.expect(exitDone, "node", "rm", "mini-2", "--yes")
	if b.api.view.Nodes[1].State != "left" {
		t.Error("still there")
	}
}

func TestDrainWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		home(b)
		b.w.clock = testClock{}
		time.AfterFunc(10*time.Second, func() { b.api.change(func() { b.api.view.Nodes[2].Running = 0 }) })
		start := time.Now()
		b.expect(exitDone, "node", "drain", "nas", "--wait", "--deadline", "90s", "--reason", "new disk")
		if took := time.Since(start); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("waited %s", took)
		}
		body := ""
		for _, r := range b.api.requests {
			if strings.HasSuffix(r.path, "/drain") {
				body = r.body
			}
		}
		if body != `{"deadline_seconds":90,"reason":"new disk"}` {
			t.Errorf("sent %s", body)
		}
	})
}

func TestCancel(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"a", "b", "c"} {
		b.api.add(task.Spec{Name: name})
	}
	b.expect(exitNotFound, "cancel", "a", "b", "nonsense", "-y")
	for _, j := range b.api.jobs {
		if j.view.State.Final() {
			t.Fatalf("a wrong name among several stopped %s", j.view.Name)
		}
	}
	b.expect(exitDone, "cancel", "a", "--reason", "too hot")
	b.wants("stdout", b.out.String(), "a j000001 cancelled\n")
	if b.api.jobs[0].view.Reason != "too hot" {
		t.Errorf("reason %q", b.api.jobs[0].view.Reason)
	}
	b.w.inTTY, b.w.stdin = true, strings.NewReader("y\n")
	b.expect(exitDone, "cancel", "b", "c", "-o", "json")
	b.wants("stderr", b.err.String(), "Cancel 2 jobs? [y/N]")
	b.wants("stdout", b.out.String(), `"kind": "JobList"`)
	b.expect(exitDone, "cancel", "a")
	b.wants("stdout", b.out.String(), "a j000001 had ended before: cancelled\n")
}

func TestRetryBody(t *testing.T) {
	for line, want := range map[string]string{
		"retry v":                     `{}`,
		"retry v --dead --from-start": `{"dead":true,"from_start":true}`,
		"retry v --all -y":            `{"all":true}`,
		"retry v/b/1,3-5":             `{"stage":"b","shards":[{"first":1,"last":1},{"first":3,"last":5}]}`,
	} {
		b := newBench(t)
		b.api.add(task.Spec{Name: "v", Stages: []task.StageSpec{{Name: "a", Shards: 1}, {Name: "b", Shards: 9}}})
		b.expect(exitDone, strings.Fields(line)...)
		if last := b.api.requests[len(b.api.requests)-1]; last.body != want || last.path != "/v1/jobs/j000001/retry" || last.id == "" {
			t.Errorf("%s sent %s %s to %s", line, last.id, last.body, last.path)
		}
	}
}

func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		time.AfterFunc(time.Second, func() { b.breakDown() })
		b.expect(exitBad, "serve", "--label", "gpu=true", "--slots", "3", "--tempo", "2.5", "--log-format", "json", "--listen", ":7421", "--node-name", "nas")
		cfg := b.inside.cfg
		if cfg.Embedded || cfg.Slots != 3 || cfg.Tempo != 2.5 || cfg.Listen != "[::]:7421" || cfg.Name != "nas" || cfg.Labels[0].Value != "true" || cfg.Log == nil || cfg.Clock == nil {
			t.Errorf("%+v", cfg)
		}
	})
}

// TestStuckNode: a node that takes a request and never answers is no reason to wait for ever.
func TestStuckNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.w.door = func(string) http.RoundTripper {
			return handlerDoor{http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
		}
		b.w.errTTY = true
		start := time.Now()
		b.expect(exitUnreachable, "status")
		if took := time.Since(start); took > time.Minute {
			t.Errorf("waited %s", took)
		}
		b.wants("stderr", b.err.String(), "contacting the node here")
		b.wants("stderr", b.err.String(), "no answer from the node here within 10s")
	})
}

func TestCompletionLive(t *testing.T) {
	b := newBench(t)
	home(b)
	calendar(b)
	for line, want := range map[string]string{
		"pause sc":                    "score",
		"schedule show ni":            "nightly-backup",
		"schedule rm ":                "nightly-backup once",
		"queue set v":                 "video",
		"ls --queue l":                "low",
		"ls --name sc":                "score",
		"queue set video --balance r": "round-robin",
		"ls --state ex":               "expired",
		"logs ":                       "j7jw01 j7k2xz nightly-backup score",
		"cancel sc":                   "score",
		"node show n":                 "nas",
		"node drain ":                 "mini-1 mini-2 nas pc-win",
		"events --node mi":            "mini-1 mini-2",
		"run --on p":                  "pc-win",
		"help e":                      "environment events exit-codes",
		"token ":                      "create ls rm",
		"task st":                     "state",
		"submit -- --wa":              "",
		"submit jo":                   "",
		"-o json ls --st":             "--state",
		"__comp":                      "",
	} {
		words := strings.Split(line, " ")
		b.expect(exitDone, append([]string{"__complete", "--"}, words...)...)
		if got := strings.Join(strings.Fields(b.out.String()), " "); got != want {
			t.Errorf("%q completes to %q, want %q", line, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.w.door = func(string) http.RoundTripper {
			return handlerDoor{http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
		}
		start := time.Now()
		b.expect(exitDone, "__complete", "--", "logs", "")
		if took := time.Since(start); took > completeWithin {
			t.Errorf("kept a person waiting for %s", took)
		}
	})
}
