package api

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/transport"
)

// why gives a job's reasons as lines.
func (c *cluster) why(path string) string {
	c.t.Helper()
	var l task.List[transport.WhyView]
	c.get("/v1/jobs/" + path).ok(&l)
	var out []string
	for _, w := range l.Items {
		line := w.Stage + "/" + w.Shards + ": " + w.Why
		if w.Node != "" {
			line = w.Stage + "/" + w.Shards + " " + w.Node + ": " + w.Why
		}
		if w.Fix != "" {
			line += " [" + w.Fix + "]"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (c *cluster) wantWhy(path, want string) {
	c.t.Helper()
	if got := c.why(path); got != strings.TrimSpace(want) {
		c.t.Errorf("why %s:\n%s\nwant:\n%s", path, got, strings.TrimSpace(want))
	}
}

func TestWhyMachineByMachine(t *testing.T) {
	c := newCluster(t)
	c.submit("name: filler\nshards: 2\nrun: echo\n")
	c.confirm("n3", c.grant("n3", "j7k3q9", 0, 0, 1)...)
	c.submit("name: hello\nshards: 3\nplacement: {require: [\"os!=windows\"]}\nrun: echo\n")
	c.do(0, &fsm.SetOnline{Node: "n2"}, &fsm.AdmitNode{Node: "n5", Name: "pi"})
	c.seen["n2"] = leader.Seen{Ago: 12 * time.Minute}
	c.wantWhy("hello/why", `
main/0-2 mini-1: leads, and runs nothing while nas can
main/0-2 mini-2: is silent for 12m, asleep? [wake or start it]
main/0-2 nas: is full (2/2)
main/0-2 pc-win: does not meet os!=windows (has os=windows)
main/0-2 pi: was admitted but has not started yet [start lanjobs on it]`)
	var j task.JobView
	c.get("/v1/jobs/hello").ok(&j)
	if want := "no machine: os!=windows: nas is full (2/2), mini-2 is silent for 12m, asleep?, pi was admitted but has not started yet and 1 more"; j.Note != want {
		t.Errorf("note is %q", j.Note)
	}
	c.do(0, &fsm.SetNode{Node: "n3", Action: fsm.NodeDrain})
	if got := c.why("hello/why"); !strings.Contains(got, "nas: is draining [lanjobs node resume nas]") || !strings.Contains(got, "mini-1: has room (0/8): takes it next") {
		t.Errorf("%s", got)
	}
	c.wantWhy("filler/why", "main/0-1: nas is draining: it is being stopped and runs again elsewhere")
	c.get("/v1/jobs/hello/why?stage=x").problem(404, "not_found", "Its stages: main")
	if got := c.why("hello/why?shards=1"); !strings.HasPrefix(got, "main/1 mini-1") {
		t.Errorf("%s", got)
	}
}

func TestWhyOfEachState(t *testing.T) {
	c := newCluster(t)
	c.submit(transcode)
	c.wantWhy("transcode/why?stage=merge", "merge/0: waits for stage segments (0 of 8 shards done)")
	c.run("n3", "j7k3q9", 0, 0)
	c.wantWhy("transcode/why?stage=init", "")
	c.fail("n4", "j7k3q9", 1, 0, 1)
	c.lead(5 * time.Second)
	c.fail("n4", "j7k3q9", 1, 1, 1)
	c.wantWhy("transcode/why?stage=segments&shards=0-1", "segments/0-1: retry in 25s, the others later: exit 1 on pc-win (1 of 5 attempts used)")
	c.wantWhy("transcode/why?stage=segments&shards=1", "segments/1: retry in 30s: exit 1 on pc-win (1 of 5 attempts used)")
	c.grant("n4", "j7k3q9", 1, 2)
	c.lead(12 * time.Second)
	c.wantWhy("transcode/why?stage=segments&shards=2", "segments/2: assigned to pc-win 12s ago and not confirmed: goes back in 18s")
	c.lead(20 * time.Second)
	c.apply(0, &fsm.Expire{Tokens: c.state.Lapsed(c.state.Clock)})
	again := c.grant("n3", "j7k3q9", 1, 0)
	c.confirm("n3", again...)
	c.wantWhy("transcode/why?stage=segments&shards=0", "segments/0: runs again after exit 1 on pc-win (1 of 5 attempts used)")
	c.lead(100 * time.Second)
	c.wantWhy("transcode/why?stage=segments&shards=0", "segments/0: nas has not renewed for 1m40s: another machine takes over in 3m20s")
	c.do(0, &fsm.CancelJob{Job: "j7k3q9"})
	c.wantWhy("transcode/why", "segments/0: nas is stopping it (cancelled)")

	c.submit("name: score\nretry: {attempts: 1}\nrun: echo\n")
	c.fail("n4", "j7k2xz", 0, 0, 64)
	c.wantWhy("score/why", "main/0: dead: exit 64 on pc-win (1 of 1 attempts used) [lanjobs retry j7k2xz --dead]")
	c.submit(hello)
	c.run("n3", "j7jw01", 0, 0)
	c.wantWhy("hello/why", "")
}

func TestWhyAShardWaitsForAnotherMachine(t *testing.T) {
	c := newCluster(t)
	c.submit("name: filler\nshards: 2\nrun: echo\n")
	c.confirm("n3", c.grant("n3", "j7k3q9", 0, 0, 1)...)
	c.submit("name: hello\nplacement: {require: [\"os in (linux,windows)\"]}\nretry: {initial: 0, jitter: 0%}\nrun: echo\n")
	c.fail("n4", "j7k2xz", 0, 0, 69)
	c.do(1)
	const want = "waits for a machine that it has not failed on: nas is full (2/2); exit 69 on pc-win (1 of 3 attempts used)"
	c.wantWhy("hello/why", "main/0: "+want)
	var l task.List[task.ShardView]
	if c.get("/v1/jobs/hello/shards?why=1").ok(&l); l.Items[0].Why != want {
		t.Errorf("%q", l.Items[0].Why)
	}
}

// A machine that died a moment ago still has its shards by modulo. Nobody may believe that it is about to take them.
func TestWhyAShardWaitsForAMachineThatIsQuiet(t *testing.T) {
	c := newCluster(t)
	balance := task.BalanceModulo
	c.do(0, &fsm.SetQueue{Name: "mod", Balance: &balance})
	c.submit("name: m\nqueue: mod\nshards: 2\nplacement: {require: [\"node in (nas,pc-win)\"]}\nrun: echo\n")
	c.run("n3", "j7k3q9", 0, 0)
	c.seen["n4"] = leader.Seen{Ago: 28 * time.Second}
	c.wantWhy("m/why", `
main/1 mini-1: does not meet node in (nas,pc-win)
main/1 mini-2: does not meet node in (nas,pc-win)
main/1 nas: is not its machine: by modulo it belongs to pc-win
main/1 pc-win: does not ask for work, last heard of 28s ago: after 1m it counts as silent, and others take its shards [start or wake it]`)
	var j task.JobView
	if c.get("/v1/jobs/m").ok(&j); !strings.Contains(j.Note, "pc-win does not ask for work, last heard of 28s ago") {
		t.Errorf("note is %q", j.Note)
	}
	c.seen["n4"] = leader.Seen{Ago: time.Second}
	if got := c.why("m/why"); !strings.Contains(got, "pc-win: has room (0/4): takes it next") {
		t.Errorf("%s", got)
	}
}

// What could not start says by itself where.
func TestAPlaceIsNamedOnce(t *testing.T) {
	c := newCluster(t)
	c.submit(hello)
	tok := c.grant("n3", "j7k3q9", 0, 0)[0]
	c.exit("n3", "j7k3q9", 0, 0, tok, task.Outcome{End: task.EndStartFailed, ExitCode: 126, Message: "no such directory /nope on nas"})
	if got := c.why("hello/why"); strings.Count(got, "on nas") != 1 || !strings.Contains(got, "could not start: no such directory /nope on nas (1 of 3 attempts used)") {
		t.Errorf("%s", got)
	}
}

func TestOneShard(t *testing.T) {
	c := newCluster(t)
	c.submit(transcode)
	c.run("n3", "j7k3q9", 0, 0)
	c.fail("n4", "j7k3q9", 1, 2, 1)
	var s task.ShardView
	c.get("/v1/jobs/transcode/shards/segments/2").ok(&s)
	if s.Stage != "segments" || s.Shard != 2 || s.State != stateBackoff || len(s.History) != 1 || !strings.Contains(s.Why, "exit 1 on pc-win (1 of 5 attempts used)") {
		t.Errorf("%+v", s)
	}
	c.get("/v1/jobs/transcode/shards/segments/8").problem(404, "not_found", "j7k3q9/segments/8 does not exist: the stage has shards 0 to 7.")
	c.get("/v1/jobs/transcode/shards/segmants/0").problem(404, "not_found", `Did you mean "segments"?`)
	c.get("/v1/jobs/transcode/shards/segments/x").problem(400, "invalid", `shard "x" is not a number`)
}

func TestManyReasonsAreBounded(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nshards: 300\nretry: {attempts: 1}\nrun: echo\n")
	for k := range 300 {
		tok := c.grant("n1", "j7k3q9", 0, k)
		c.exit("n1", "j7k3q9", 0, k, tok[0], task.Outcome{End: task.EndExited, ExitCode: k%200 + 1})
	}
	var l task.List[transport.WhyView]
	c.get("/v1/jobs/hello/why").ok(&l)
	if n := len(l.Items); n != maxReasons+1 || l.Items[n-1].Why != "further reasons" {
		t.Errorf("%d reasons", n)
	}
	c.submit("name: odd\nshards: 100\nretry: {attempts: 1}\nrun: echo\n")
	for k := range 50 {
		c.fail("n1", "j7k2xz", 0, 2*k, 1)
	}
	c.get("/v1/jobs/odd/why").ok(&l)
	if want := ",… (50 in all)"; !strings.HasSuffix(l.Items[0].Shards, want) || len(l.Items[0].Shards) > 100 {
		t.Errorf("%s", l.Items[0].Shards)
	}
}

// TestReasonsAgreeWithThePlan makes random clusters and compares what is said with what plan does: what it grants had
// nothing in its way, and when it grants nothing everything had.
func TestReasonsAgreeWithThePlan(t *testing.T) {
	granted, kept := 0, 0
	for seed := range int64(800) {
		r := rand.New(rand.NewSource(seed))
		c := randomCluster(t, r)
		pv := &plan.View{State: c.state, Now: c.state.Clock, Self: "n0", Nodes: map[task.NodeID]plan.Presence{}, Flight: plan.NewFlight()}
		for _, n := range c.state.Nodes() {
			if _, heard := c.seen[n.Info.ID]; heard {
				pv.Nodes[n.Info.ID] = plan.Presence{Want: 8, Heard: true}
			}
		}
		grants := plan.Place(pv)
		c.api.look(&request{}, func(v *view) {
			for _, g := range grants {
				g := g.(*fsm.Grant)
				j := v.Job(g.Job)
				s := v.stage(j, g.Stage)
				for _, k := range g.Shards {
					if granted++; len(grants) > 1 || len(g.Shards) > 1 {
						continue // each grant changes what is said of the next
					}
					if text, _ := s.why(k); text != "is next" {
						t.Errorf("seed %d: %s/%d is granted although it %s", seed, s.spec.Name, k, text)
					}
				}
			}
			if len(grants) > 0 {
				return
			}
			v.JobsNewestFirst(func(j *fsm.Job) bool {
				for i := range j.Stages {
					s := v.stage(j, i)
					for k := range s.st.Len() {
						if !s.ready(s.st.At(k)) {
							continue
						}
						kept++
						if text, _ := s.why(k); text == "is next" || text == "" {
							t.Errorf("seed %d: %q is said of %s/%d, and it is not granted", seed, text, s.spec.Name, k)
						}
					}
				}
				return true
			})
		})
	}
	if granted < 200 || kept < 50 {
		t.Errorf("only %d granted and %d kept: the test has become blind", granted, kept)
	}
}

func randomCluster(t *testing.T, r *rand.Rand) *cluster {
	c := bare(t)
	nodes := 1 + r.Intn(4)
	for i := range nodes {
		labels := []string{fmt.Sprintf("zone=%d", r.Intn(2))}
		c.machine(task.NodeID(fmt.Sprintf("n%d", i)), fmt.Sprintf("m%d", i), 1+r.Intn(2), labels...)
	}
	c.standing.Leader, c.api.cfg.Self = "n0", "n0"
	c.members = []Member{{ID: "n0", Role: RoleLeader}}
	spec := task.Spec{Name: "x", Queue: "default", Priority: 50, Retain: task.Day}
	for i := range 2 {
		st := task.StageSpec{Name: fmt.Sprintf("s%d", i), Shards: 1 + r.Intn(3), When: task.WhenSuccess, Run: "x", Lease: task.DefaultLease(task.DefaultTTL), Retry: task.DefaultRetry()}
		st.Retry.JitterPct, st.Retry.Initial, st.Retry.Attempts = 0, 0, 5
		if r.Intn(2) == 0 {
			st.Require = []task.Requirement{{Label: "zone", Op: task.OpEqual, Values: []string{fmt.Sprint(r.Intn(2))}}}
		}
		if r.Intn(3) == 0 {
			st.Parallelism = 1
		}
		spec.Stages = append(spec.Stages, st)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	c.do(0, &fsm.SubmitJob{RequestID: "r", Job: "j1", Spec: data, Digest: data})
	for range r.Intn(30) { // some attempts that run, some that failed
		stage := r.Intn(2)
		g := &fsm.Grant{Node: task.NodeID(fmt.Sprintf("n%d", r.Intn(nodes))), Incarnation: 1, Job: "j1", Stage: stage, Shards: []int{r.Intn(spec.Stages[stage].Shards)}}
		res := c.apply(1, g)[0]
		if res.Err != nil || res.Tokens[0] == 0 {
			continue
		}
		if r.Intn(3) > 0 {
			c.apply(1, &fsm.Report{Node: g.Node, Reports: []task.Report{{Job: "j1", Stage: stage, Shard: g.Shards[0], Token: res.Tokens[0],
				Outcome: task.Outcome{End: task.EndExited, ExitCode: []int{1, 69}[r.Intn(2)]}}}})
		}
	}
	for i := range nodes {
		id := task.NodeID(fmt.Sprintf("n%d", i))
		switch r.Intn(8) {
		case 0:
			c.apply(1, &fsm.SetOnline{Node: id})
		case 1:
			c.apply(1, &fsm.SetNode{Node: id, Action: fsm.NodeDrain})
		case 2:
			delete(c.seen, id)
		}
	}
	return c
}
