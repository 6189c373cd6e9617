package api

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/node/observe"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

var update = flag.Bool("update", false, "write the golden files anew")

// noon is the wall clock of the tests' machines.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// clock shows a wall clock that stands still; its timers run.
type clock struct{ *memnet.Clock }

func newClock() clock { return clock{memnet.NewClock()} }

func (c clock) Wall() time.Time { return noon }

// cluster is a real ledger behind the interfaces that the API needs, on one member of a cluster whose other members are
// as the test says.
type cluster struct {
	t  *testing.T
	mu sync.RWMutex // guards all below

	state     *fsm.State
	index     uint64
	wall      time.Time // of the next batch
	ids       []task.JobID
	made      int // ids beyond those
	standing  Standing
	members   []Member
	seen      map[task.NodeID]leader.Seen
	progress  map[task.Token]string
	commands  []fsm.Command // proposed through Leader
	lose      int           // so many proposals are committed and their answers lost
	refuse    int           // so many are never committed
	audit     *observe.Audit
	forward   func(context.Context, *transport.APIRequest) (*transport.APIReply, error)
	call      func(ctx context.Context, to task.NodeID, method transport.Method, request, reply any) error
	inits     []transport.InitBody
	left      *transport.LeaveBody
	recovered []string

	api *API
	log *bytes.Buffer
}

// newCluster is a cluster "home" with mini-1 (leader, this member), mini-2 and nas (voters) and pc-win (worker).
func newCluster(t *testing.T) *cluster {
	c := bare(t)
	c.do(0, &fsm.InitCluster{ID: "c1", Name: "home", CACert: caCert(t), CAKey: []byte("key")})
	c.machine("n1", "mini-1", 8, "os=darwin")
	c.machine("n2", "mini-2", 8, "os=darwin", "laptop=true")
	c.machine("n3", "nas", 2, "os=linux")
	c.machine("n4", "pc-win", 4, "os=windows", "gpu=yes")
	c.do(0, &fsm.Elected{Node: "n1", Term: 7})
	c.members = []Member{{ID: "n1", Role: RoleLeader, Addresses: []string{"192.168.1.5:7420", "10.0.0.5:7420"}}, {ID: "n2", Role: RoleVoter, Addresses: []string{"192.168.1.6:7420"}},
		{ID: "n3", Role: RoleVoter}, {ID: "n4", Role: RoleWorker, Refusal: "certificate of another cluster"}}
	return c
}

// bare is this machine only, without a leader.
func bare(t *testing.T) *cluster {
	c := &cluster{t: t, state: fsm.New(), wall: noon.Add(-time.Hour), seen: map[task.NodeID]leader.Seen{}, progress: map[task.Token]string{},
		standing: Standing{Leads: true, Leader: "n1", Copy: true}, log: &bytes.Buffer{},
		ids: []task.JobID{"j7k3q9", "j7k2xz", "j7jw01", "j7h2aa", "j7h2ab", "j7h2ac"}}
	c.members = []Member{{ID: "n1", Role: RoleLeader}}
	log := slog.New(slog.NewTextHandler(c.log, nil))
	var err error
	if c.audit, err = observe.Open(observe.DefaultConfig(t.TempDir(), newClock(), slog.New(slog.DiscardHandler))); err != nil {
		t.Fatal(err)
	}
	n := 0
	c.api, err = New(Config{Self: "n1", Name: "mini-1", Version: "1.4.0", Clock: newClock(), Log: log, Ledger: c, Leader: c, Peers: c, Machine: c, Audit: c.audit,
		NewID: func() task.RequestID { n++; return task.RequestID(fmt.Sprintf("made-%d", n)) }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func caCert(t *testing.T) []byte {
	info, _, err := transport.NewCluster("home")
	if err != nil {
		t.Fatal(err)
	}
	return []byte(info.CACert)
}

// do applies commands; none may be refused.
func (c *cluster) do(elapsed task.Millis, cs ...fsm.Command) []fsm.Result {
	c.t.Helper()
	rs := c.apply(elapsed, cs...)
	for i, r := range rs {
		if r.Err != nil {
			c.t.Fatalf("%T refused: %v", cs[i], r.Err)
		}
	}
	return rs
}

func (c *cluster) apply(elapsed task.Millis, cs ...fsm.Command) []fsm.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index++
	b := &fsm.Batch{Elapsed: elapsed, Wall: c.wall.UnixMilli(), Leader: "n1", Commands: cs}
	rs, events, err := c.state.Apply(c.index, b.Encode())
	if err != nil {
		c.t.Fatal(err)
	}
	c.audit.Append(events)
	return rs
}

// lead lets time pass on the cluster clock and the wall.
func (c *cluster) lead(d time.Duration) {
	c.t.Helper()
	for ; d > 0; d -= 10 * time.Second {
		step := min(d, 10*time.Second)
		c.wall = c.wall.Add(step)
		c.do(task.MillisOf(step))
	}
}

// machine admits and registers a node, and has it heard a second ago. Labels may name its os.
func (c *cluster) machine(id task.NodeID, name string, slots int, labels ...string) {
	c.t.Helper()
	info := task.NodeInfo{ID: id, Name: name, OS: "linux", Arch: "amd64", CPUs: slots, Slots: slots, Version: "1.4.0", Voter: true}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		if k == "os" {
			info.OS = v
		} else {
			info.Labels = append(info.Labels, task.KV{Name: k, Value: v})
		}
	}
	if c.state.Cluster.ID != "" {
		c.do(0, &fsm.AdmitNode{Node: id, Name: name})
	}
	c.do(0, &fsm.RegisterNode{Info: info, Incarnation: 1})
	c.seen[id] = leader.Seen{Ago: time.Second, Load: task.Load{CPU: 0.5, MemFreeMB: 2000, DiskFreeMB: 50000}}
}

// submit stores a job file.
func (c *cluster) submit(text string) task.JobID {
	c.t.Helper()
	spec, faults := jobfile.Load("job.yaml", []byte(text), jobfile.Options{})
	if len(faults) > 0 {
		c.t.Fatal(jobfile.Render("job.yaml", faults))
	}
	data, err := json.Marshal(spec)
	if err != nil {
		c.t.Fatal(err)
	}
	sum, err := digest(spec)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.do(0, &fsm.SubmitJob{RequestID: task.RequestID(fmt.Sprintf("r%d", c.index)), Job: c.nextID(), Spec: data, Digest: sum, By: "anna"})[0].Job
}

func (c *cluster) nextID() task.JobID {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.ids[0]
	c.ids = c.ids[1:]
	if len(c.ids) == 0 {
		c.made++
		c.ids = []task.JobID{task.JobID(fmt.Sprintf("j9%04d", c.made))}
	}
	return id
}

func (c *cluster) grant(node task.NodeID, job task.JobID, stage int, shards ...int) []task.Token {
	c.t.Helper()
	toks := c.do(0, &fsm.Grant{Node: node, Incarnation: 1, Job: job, Stage: stage, Shards: shards})[0].Tokens
	for i, tok := range toks {
		if tok == 0 {
			c.t.Fatalf("shard %d was not granted to %s", shards[i], node)
		}
	}
	return toks
}

func (c *cluster) confirm(node task.NodeID, toks ...task.Token) {
	c.t.Helper()
	c.do(0, &fsm.Renew{Node: node, Incarnation: 1, Tokens: toks})
}

func (c *cluster) exit(node task.NodeID, job task.JobID, stage, shard int, tok task.Token, o task.Outcome) {
	c.t.Helper()
	c.do(0, &fsm.Report{Node: node, Reports: []task.Report{{Job: job, Stage: stage, Shard: shard, Token: tok, Outcome: o}}})
}

// run grants, confirms and ends shards with exit 0.
func (c *cluster) run(node task.NodeID, job task.JobID, stage int, shards ...int) {
	c.t.Helper()
	for _, k := range shards {
		tok := c.grant(node, job, stage, k)[0]
		c.confirm(node, tok)
		c.exit(node, job, stage, k, tok, task.Outcome{End: task.EndExited})
	}
}

// fail grants, confirms and ends a shard with an exit code.
func (c *cluster) fail(node task.NodeID, job task.JobID, stage, shard, code int) {
	c.t.Helper()
	tok := c.grant(node, job, stage, shard)[0]
	c.confirm(node, tok)
	c.exit(node, job, stage, shard, tok, task.Outcome{End: task.EndExited, ExitCode: code, Tail: "Traceback\nKeyError: 'a'\n"})
}

// The interfaces.

func (c *cluster) Read(f func(*fsm.State)) { c.mu.RLock(); defer c.mu.RUnlock(); f(c.state) }
func (c *cluster) Standing() Standing      { c.mu.RLock(); defer c.mu.RUnlock(); return c.standing }
func (c *cluster) Members() []Member       { c.mu.RLock(); defer c.mu.RUnlock(); return c.members }
func (c *cluster) Progress(t task.Token) string {
	return c.progress[t] // called within Read
}
func (c *cluster) View(s *fsm.State) *plan.View { // called within Read
	if !c.standing.Leads {
		return nil
	}
	v := &plan.View{State: s, Now: s.Clock, Self: c.api.cfg.Self, Nodes: map[task.NodeID]plan.Presence{}}
	for id, seen := range c.seen {
		if n := s.Node(id); n != nil {
			v.Nodes[id] = plan.Presence{Heard: true, Load: seen.Load}
			if seen.Ago < quietAfter {
				v.Nodes[id] = plan.Presence{Want: n.Info.Slots, Heard: true, Load: seen.Load}
			}
		}
	}
	return v
}
func (c *cluster) Seen(id task.NodeID) (leader.Seen, bool) { s, ok := c.seen[id]; return s, ok }

func (c *cluster) Propose(_ context.Context, cmd fsm.Command) (fsm.Result, error) {
	c.mu.Lock()
	lead, refuse, lose := c.standing.Leads, c.refuse > 0, c.refuse == 0 && c.lose > 0
	switch {
	case refuse:
		c.refuse--
	case lose:
		c.lose--
	}
	c.commands = append(c.commands, cmd)
	c.mu.Unlock()
	if !lead || refuse {
		return fsm.Result{}, task.NewProblem(task.ErrNoLeader, "this machine does not lead now", "")
	}
	r := c.apply(1, cmd)[0]
	if lose {
		return fsm.Result{}, task.NewProblem(task.ErrNoLeader, "leadership has ended here: its fate is unknown, repeat it", "")
	}
	return r, nil
}

func (c *cluster) SubmitAll(ctx context.Context, jobs []fsm.SubmitJob) ([]fsm.Result, []error) {
	results, errs := make([]fsm.Result, len(jobs)), make([]error, len(jobs))
	for i := range jobs {
		jobs[i].Job = c.nextID()
		results[i], errs[i] = c.Propose(ctx, &jobs[i])
	}
	return results, errs
}

func (c *cluster) Forward(ctx context.Context, r *transport.APIRequest) (*transport.APIReply, error) {
	c.mu.RLock()
	forward := c.forward
	c.mu.RUnlock()
	if forward == nil {
		return nil, task.NewProblem(task.ErrNoLeader, "no leader is known now", "")
	}
	return forward(ctx, r)
}

func (c *cluster) Call(ctx context.Context, to task.NodeID, method transport.Method, request, reply any) error {
	if c.call == nil {
		return task.NewProblem(task.ErrNoLeader, "it does not answer", "")
	}
	return c.call(ctx, to, method, request, reply)
}

func (c *cluster) Init(_ context.Context, b transport.InitBody, by string) (*transport.InitView, error) {
	c.inits = append(c.inits, b)
	return &transport.InitView{Cluster: b.Cluster, ClusterID: "c1", Node: "mini-1", Fingerprint: "3F9A-7C21"}, nil
}

func (c *cluster) Leave(_ context.Context, b transport.LeaveBody, by string) error {
	c.left = &b
	return nil
}

// answer is what a client got.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// ask sends a request as anna. header is pairs.
func (c *cluster) ask(method, path, body string, header ...string) *answer {
	c.t.Helper()
	r := httptest.NewRequestWithContext(WithBy(c.t.Context(), "anna"), method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return c.serve(r)
}

func (c *cluster) serve(r *http.Request) *answer {
	c.t.Helper()
	w := httptest.NewRecorder()
	c.api.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	a := &answer{t: c.t, status: w.Code, header: w.Header(), body: string(body)}
	if a.header.Get("X-Content-Type-Options") != "nosniff" || a.header.Get("Content-Security-Policy") == "" {
		c.t.Errorf("%s %s: headers %v", r.Method, r.URL, a.header)
	}
	if kind := a.header.Get("Content-Type"); a.status >= 400 && kind != typeProblem && r.URL.Path != "/readyz" {
		c.t.Errorf("%s %s: an error of type %q", r.Method, r.URL, kind)
	}
	return a
}

func (c *cluster) get(path string) *answer { c.t.Helper(); return c.ask("GET", path, "") }

// ok expects success and reads the body.
func (a *answer) ok(v any) *answer {
	a.t.Helper()
	if a.status != 200 && a.status != 201 {
		a.t.Fatalf("status %d: %s", a.status, a.body)
	}
	if v != nil {
		reflect.ValueOf(v).Elem().SetZero() // a field that is left out is zero, whatever was read before
		if err := json.Unmarshal([]byte(a.body), v); err != nil {
			a.t.Fatalf("%v in %s", err, a.body)
		}
	}
	return a
}

// problem expects an error.
func (a *answer) problem(status int, code, words string) *task.Problem {
	a.t.Helper()
	p := &task.Problem{}
	if err := json.Unmarshal([]byte(a.body), p); err != nil {
		a.t.Fatalf("%v in %q", err, a.body)
	}
	if a.status != status || p.Code != code || !strings.Contains(p.Detail+" | "+p.Hint, words) {
		a.t.Errorf("got %d %s: %s | %s\nwant %d %s: …%s…", a.status, p.Code, p.Detail, p.Hint, status, code, words)
	}
	return p
}

// golden compares with a file of testdata.
func (a *answer) golden(name string) {
	a.t.Helper()
	a.ok(nil)
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(a.body), "", "  "); err != nil {
		a.t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			a.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		a.t.Fatal(err)
	}
	if !bytes.Equal(want, out.Bytes()) {
		a.t.Errorf("%s differs (go test -update writes it anew):\n%s", path, out.String())
	}
}

type nodeID = task.NodeID

func outputRef(job task.JobID) task.ShardRef { return task.ShardRef{Job: job} }
func kv(name, value string) task.KV          { return task.KV{Name: name, Value: value} }
