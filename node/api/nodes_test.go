package api

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/task"
	"lanjobs/transport"
)

func TestNodeReferences(t *testing.T) {
	c := newCluster(t)
	c.machine("5b0c9a62-aaaa", "twin", 1)
	c.machine("5b0c9a62-bbbb", "twin", 1)
	for ref, want := range map[string]nodeID{"nas": "n3", "n3": "n3", "5b0c9a62-a": "5b0c9a62-aaaa"} {
		var n task.NodeView
		if c.get("/v1/nodes/" + ref).ok(&n); n.ID != want {
			t.Errorf("%s is %s", ref, n.ID)
		}
	}
	c.get("/v1/nodes/twin").problem(400, "invalid", `"twin" is more than one machine: 5b0c9a62-aaaa (twin), 5b0c9a62-bbbb (twin) | write the id`)
	c.get("/v1/nodes/5b0c").problem(400, "invalid", "more than one machine")
	c.get("/v1/nodes/naz").problem(404, "not_found", `no node "naz". Did you mean "nas"? | All machines: lanjobs node ls`)
	c.do(0, &fsm.SetNode{Node: "5b0c9a62-aaaa", Action: fsm.NodeRemove})
	var n task.NodeView
	if c.get("/v1/nodes/twin").ok(&n); n.ID != "5b0c9a62-bbbb" {
		t.Errorf("the one that is left is meant, not %s", n.ID)
	}
	c.do(0, &fsm.SetNode{Node: "5b0c9a62-bbbb", Action: fsm.NodeLeave})
	// Without a member of that name the one that left last is meant.
	if c.get("/v1/nodes/twin").ok(&n); n.ID != "5b0c9a62-bbbb" || n.State != nodeLeft || n.Note != "has left" {
		t.Errorf("%+v", n)
	}
}

func TestNodeListLeavesOutThoseThatLeft(t *testing.T) {
	c := newCluster(t)
	c.do(0, &fsm.SetNode{Node: "n4", Action: fsm.NodeRemove})
	for query, want := range map[string]int{"": 3, "?all=1": 4, "?limit=1000&after=": 3} {
		var l task.List[task.NodeView]
		if c.get("/v1/nodes" + query).ok(&l); len(l.Items) != want || l.Kind != "NodeList" {
			t.Errorf("%s: %d %s", query, len(l.Items), l.Kind)
		}
	}
}

func TestDrainAndResume(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nshards: 2\nrun: echo\n")
	c.confirm("n3", c.grant("n3", "j7k3q9", 0, 0, 1)...)
	var n task.NodeView
	c.ask("POST", "/v1/nodes/nas/drain", `{"deadline_seconds":90,"reason":"new disk"}`).ok(&n)
	if n.State != nodeDraining || n.Running != 2 || n.Note != "stops what runs in 1m30s" {
		t.Errorf("%+v", n)
	}
	if got := c.commands[0].(*fsm.SetNode); got.By != "anna" || got.Reason != "new disk" || got.After != 90*task.Second {
		t.Errorf("%+v", got)
	}
	var w task.List[transport.WhyView]
	c.get("/v1/jobs/hello/why").ok(&w)
	if len(w.Items) != 1 || w.Items[0].Shards != "0-1" || !strings.HasPrefix(w.Items[0].Why, "nas is draining: it is stopped in 1m30s") {
		t.Errorf("%+v", w.Items)
	}
	n = task.NodeView{}
	c.ask("POST", "/v1/nodes/nas/resume", "").ok(&n)
	if n.State != nodeReady || n.Note != "" {
		t.Errorf("%+v", n)
	}
	c.ask("POST", "/v1/nodes/nas/drain", "").ok(&n)
	if n.Note != "stops what runs" {
		t.Errorf("without a deadline: %+v", n)
	}
	c.ask("POST", "/v1/nodes/nasty/drain", "").problem(404, "not_found", "")
}

func TestUnstableAndClear(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nplacement:\n  require: [node=nas]\nrun: echo\n")
	info := c.state.Node("n3").Info
	c.do(0, &fsm.RegisterNode{Info: info, Incarnation: 9, Caring: true, Crashes: task.UnstableAfter})
	var n task.NodeView
	if c.get("/v1/nodes/nas").ok(&n); n.State != nodeUnstable || n.Note != "crashed 3 times in a row; nothing new until: lanjobs node clear nas" {
		t.Errorf("%+v", n)
	}
	var j task.JobView
	if c.get("/v1/jobs/hello").ok(&j); j.Note != "no machine: node=nas crashed 3 times in a row: it gets nothing new" {
		t.Errorf("%s", j.Note)
	}
	c.ask("POST", "/v1/nodes/nas/drain", "").ok(&n)
	if n.State != nodeUnstable || n.Note != "crashed 3 times in a row; draining, empty: it may be switched off" {
		t.Errorf("one hides the other: %+v", n)
	}
	asleep := task.NodeView{}
	c.do(0, &fsm.SetOnline{Node: "n3", Reason: task.ReasonAsleep})
	c.members[2].Away = time.Minute
	if c.get("/v1/nodes/nas").ok(&asleep); asleep.State != nodeAsleep || asleep.Note != "crashed 3 times in a row, draining" {
		t.Errorf("%+v", asleep)
	}
	c.members[2].Away = 0
	c.do(0, &fsm.SetOnline{Node: "n3", Online: true})
	c.ask("POST", "/v1/nodes/nas/resume", "").ok(&n)
	n = task.NodeView{}
	c.ask("POST", "/v1/nodes/nas/clear", "").ok(&n)
	if n.State != nodeReady || n.Note != "" {
		t.Errorf("%+v", n)
	}
	if got := c.commands[len(c.commands)-1].(*fsm.SetNode); got.By != "anna" || got.Action != fsm.NodeClear {
		t.Errorf("%+v", got)
	}
	c.ask("POST", "/v1/nodes/nasty/clear", "").problem(404, "not_found", "")
}

func TestLabels(t *testing.T) {
	c := newCluster(t)
	var n task.NodeView
	c.ask("POST", "/v1/nodes/pc-win/label", `{"set":[{"name":"gpu","value":"true"},{"name":"group","value":"encoders"}]}`).ok(&n)
	if len(n.Labels) != 2 || n.Labels[0] != kv("gpu", "true") || n.Labels[1] != kv("group", "encoders") {
		t.Errorf("%+v", n.Labels)
	}
	c.ask("POST", "/v1/nodes/pc-win/label", `{"set":[{"name":"group","value":""}]}`).ok(&n)
	if len(n.Labels) != 1 {
		t.Errorf("%+v", n.Labels)
	}
}

func TestRemove(t *testing.T) {
	c := newCluster(t)
	c.ask("DELETE", "/v1/nodes/mini-1", "").problem(409, "conflict", "mini-1 leads now and cannot be removed from afar. | On mini-1: lanjobs leave")
	c.members[1].Away = time.Minute // mini-2 is silent: without nas only mini-1 of two voters would answer
	c.ask("DELETE", "/v1/nodes/nas", "").problem(409, "conflict", "without nas only 1 of 2 voters would answer")
	if c.state.Node("n3").Gone != "" {
		t.Fatal("removed")
	}
	var n task.NodeView
	c.ask("DELETE", "/v1/nodes/mini-2", "").ok(&n) // a silent one may go: the others answer
	if n.State != nodeLeft || n.Note != "was removed" || n.Role != string(RoleWorker) {
		t.Errorf("%+v", n)
	}
	c.ask("DELETE", "/v1/nodes/nas?force=1", "").ok(nil)
	c.ask("DELETE", "/v1/nodes/n3", "").ok(nil) // again: it is what was asked for
	c.ask("POST", "/v1/nodes/n3/drain", "").problem(409, "conflict", "nas is no longer a member")
	c.ask("DELETE", "/v1/nodes/pc-win", "").ok(nil)
}

func TestClusterSentences(t *testing.T) {
	type m struct {
		role Role
		away time.Duration
	}
	v, w, off := m{role: RoleVoter}, m{role: RoleWorker}, m{RoleVoter, time.Minute}
	for _, x := range []struct {
		members  []m
		health   string
		survives int
		sentence string
	}{
		{[]m{v}, healthy, 0, "1 voter: this machine only"},
		{[]m{v, w}, healthy, 0, "2 machines: 1 voter, not yet fault tolerant: a third machine makes it 3"},
		{[]m{v, w, w}, healthy, 0, "3 machines: 1 voter, not yet fault tolerant: more become voters once they are up to date"},
		{[]m{v, v}, degraded, 0, "2 voters: survives no failure"},
		{[]m{v, v, v}, healthy, 1, "3 voters: survives 1 failure"},
		{[]m{v, v, off}, degraded, 0, "3 voters, m2 silent: survives no further failure"},
		{[]m{v, v, v, v, v}, healthy, 2, "5 voters: survives 2 failures"},
		{[]m{v, v, v, v, off}, degraded, 1, "5 voters, m4 silent: survives 1 further failure"},
	} {
		t.Run(x.sentence, func(t *testing.T) {
			c := bare(t)
			c.do(0, &fsm.InitCluster{ID: "c1", Name: "home"})
			c.members = nil
			for i, mm := range x.members {
				id := nodeID("n" + string(rune('1'+i)))
				c.machine(id, "m"+string(rune('0'+i)), 1)
				c.members = append(c.members, Member{ID: id, Role: mm.role, Away: mm.away})
			}
			var got task.ClusterView
			c.get("/v1/status").ok(&got)
			if got.Health != x.health || got.Sentence != x.sentence || got.Survives != x.survives {
				t.Errorf("%s, %q, survives %d", got.Health, got.Sentence, got.Survives)
			}
		})
	}
	c := newCluster(t)
	c.members = []Member{{ID: "n1", Role: RoleLeader}, {ID: "n2", Role: RoleStandby}, {ID: "n3", Role: RoleStandby}, {ID: "n4", Role: RoleStandby}}
	c.do(0, &fsm.SetNode{Node: "n2", Action: fsm.NodeDemote}, &fsm.SetNode{Node: "n4", Action: fsm.NodeDemote})
	var got task.ClusterView
	if c.get("/v1/status").ok(&got); got.Sentence != "4 machines: 1 voter, not yet fault tolerant: 2 of them may vote, which takes 3 (lanjobs node promote NODE)" {
		t.Errorf("%q", got.Sentence)
	}
	c = bare(t)
	c.machine("n1", "mini-1", 4)
	got = task.ClusterView{}
	c.get("/v1/status").ok(&got)
	if got.Name != "" || got.Sentence != "1 voter: this machine only" || got.Health != healthy || got.SelfName != "mini-1" || got.Version != "1.4.0" {
		t.Errorf("%+v", got)
	}
}

func TestTokens(t *testing.T) {
	c := newCluster(t)
	var v transport.TokenView
	a := c.ask("POST", "/v1/tokens", `{"ttl_seconds":600,"uses":2,"worker":true}`, transport.HeaderRequestID, "q").ok(&v)
	parsed, err := transport.ParseJoinToken(v.Token)
	if err != nil || a.status != 201 || v.LeftSeconds != 600 || v.UsesLeft != 2 || !v.Worker || v.By != "anna" {
		t.Fatalf("%+v %v", v, err)
	}
	stored := c.state.JoinTokens()[0]
	if !bytes.Equal(transport.HashSecret(parsed.Secret), stored.Hash) || stored.ID != v.ID {
		t.Errorf("stored %+v", stored)
	}
	if len(v.Join) != 2 || v.Join[0] != "lanjobs join 192.168.1.5:7420 --token "+v.Token {
		t.Errorf("join lines %q", v.Join)
	}
	for _, cmd := range c.commands {
		if text := strings.ToUpper(string((&fsm.Batch{Commands: []fsm.Command{cmd}}).Encode())); strings.Contains(text, parsed.Secret) {
			t.Error("the secret went into the log")
		}
	}
	if strings.Contains(c.log.String(), parsed.Secret) {
		t.Error("the secret was logged")
	}
	var l task.List[transport.TokenView]
	c.get("/v1/tokens").ok(&l)
	if len(l.Items) != 1 || l.Items[0].ID != v.ID || l.Items[0].Token != "" || l.Kind != "TokenList" {
		t.Errorf("%+v", l)
	}
	c.ask("POST", "/v1/tokens", "").ok(&v)
	if v.LeftSeconds != 3600 || v.UsesLeft != 1 {
		t.Errorf("defaults: %+v", v)
	}
	c.ask("DELETE", "/v1/tokens/"+v.ID, "").ok(nil)
	c.ask("DELETE", "/v1/tokens/"+v.ID, "").problem(404, "not_found", "no join token")
	c.lead(10 * time.Minute)
	if c.get("/v1/tokens").ok(&l); len(l.Items) != 0 {
		t.Errorf("one that has ended is listed: %+v", l)
	}
}

func TestATokenOfNoCluster(t *testing.T) {
	c := bare(t)
	c.ask("POST", "/v1/tokens", `{}`).problem(409, "conflict", "no cluster yet, so there is nothing to join. | Make one of it: lanjobs init")
}

func TestInitAndLeave(t *testing.T) {
	c := bare(t)
	var v transport.InitView
	if a := c.ask("POST", "/v1/init", `{"cluster":"home","listen":"0.0.0.0:7420"}`).ok(&v); a.status != 201 || v.Cluster != "home" || v.Fingerprint == "" {
		t.Errorf("%d %+v", a.status, v)
	}
	if len(c.inits) != 1 || c.inits[0].Listen != "0.0.0.0:7420" {
		t.Errorf("%+v", c.inits)
	}
	c.ask("POST", "/v1/init", `{"cluster":"home"}`).ok(nil)
	c.ask("POST", "/v1/leave", `{"force":true}`).ok(nil)
	if c.left == nil || !c.left.Force {
		t.Errorf("%+v", c.left)
	}
}

func TestWhetherAMachineVotes(t *testing.T) {
	c := newCluster(t)
	c.do(0, &fsm.AdmitNode{Node: "n9", Name: "helper", Worker: true})
	var n task.NodeView
	for role, want := range map[string]string{"voter": "promoted", "worker": "demoted", "auto": ""} {
		n = task.NodeView{}
		if c.ask("POST", "/v1/nodes/nas/role", `{"role":"`+role+`"}`).ok(&n); n.Seat != want {
			t.Errorf("%s: %+v", role, n)
		}
		if got := c.commands[len(c.commands)-1].(*fsm.SetNode); got.By != "anna" {
			t.Errorf("%+v", got)
		}
	}
	c.ask("POST", "/v1/nodes/nas/role", `{"role":"king"}`).problem(400, "invalid", "voter, worker or auto")
	c.ask("POST", "/v1/nodes/helper/role", `{"role":"voter"}`).problem(409, "conflict", "joined with --worker")
	c.ask("POST", "/v1/nodes/helper/role", `{"role":"worker"}`).ok(&n)
}

func TestStatusWarnsBeforeTheNextSleepStopsTheCluster(t *testing.T) {
	for _, c := range []struct {
		name    string
		away    time.Duration
		battery []nodeID
		want    string
	}{
		{"all well", 0, nil, ""},
		{"one on battery", 0, []nodeID{"n2"}, ""},
		{"two voters on battery", 0, []nodeID{"n2", "n3"}, "2 of 3 voters run on battery (mini-2, nas): if more than 1 of them sleep"},
		{"a worker on battery", 0, []nodeID{"n2", "n4"}, ""},
		{"one asleep", time.Hour, nil, "If one more voter sleeps or fails, nothing can be changed until one is back: wake mini-2"},
	} {
		cl := newCluster(t)
		cl.members[1].Away = c.away
		for _, id := range c.battery {
			cl.seen[id] = leader.Seen{Load: task.Load{Battery: true}}
		}
		var v task.ClusterView
		cl.get("/v1/status").ok(&v)
		if got := strings.Join(v.Notices, "|"); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// A machine on which fail what others can do is marked wherever machines are shown (R45).
func TestAMachineThatFailsIsMarkedWhereverItIsShown(t *testing.T) {
	c := newCluster(t)
	id := c.submit("name: hello\nshards: 6\nretry: {attempts: 9, initial: 1s}\nrun: echo\n")
	for k := range 6 {
		c.fail("n4", id, 0, k, 1)
	}
	c.lead(2 * time.Second)
	c.run("n3", id, 0, 0, 1, 2, 3, 4, 5)
	const note = "6 of its last 6 attempts failed and then succeeded elsewhere"
	var one task.NodeView
	c.get("/v1/nodes/pc-win").ok(&one)
	var all task.List[task.NodeView]
	c.get("/v1/nodes").ok(&all)
	var cluster task.ClusterView
	c.get("/v1/status").ok(&cluster)
	var labelled task.NodeView
	c.ask("POST", "/v1/nodes/pc-win/label", `{"set":[{"name":"a","value":"b"}]}`).ok(&labelled)
	for i, n := range append(append([]task.NodeView{one, labelled}, all.Items...), cluster.Nodes...) {
		if want := map[bool]string{true: note}[n.Name == "pc-win"]; n.Note != want {
			t.Errorf("%d: %s says %q, want %q", i, n.Name, n.Note, want)
		}
	}
}

// TestOwnersRulesAreShown: as the machine told them; labels set from afar allow nobody.
func TestOwnersRulesAreShown(t *testing.T) {
	for _, c := range []struct {
		info task.NodeInfo
		want task.RulesView
	}{
		{task.NodeInfo{}, task.RulesView{RefuseQueues: []string{}, AllowUsers: []string{}, Inhibit: "mains", ReservePercent: 20}},
		{task.NodeInfo{Reserve: -1, Inhibit: "never"}, task.RulesView{RefuseQueues: []string{}, AllowUsers: []string{}, Inhibit: "never"}},
		{task.NodeInfo{Reserve: 50, Refuses: []string{"gpu"}, RunAs: "tasks", Labels: []task.KV{{Name: "user.anna", Value: "true"}, {Name: "user.tasks", Value: "true"}}},
			task.RulesView{RefuseQueues: []string{"gpu"}, RunAs: "tasks", AllowUsers: []string{"anna"}, Inhibit: "mains", ReservePercent: 50}},
	} {
		if got := rulesOf(&c.info); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v", c.info, got)
		}
	}
	f := newCluster(t)
	f.do(0, &fsm.SetNode{Node: "n3", Action: fsm.NodeLabel, Labels: []task.KV{{Name: "user.root", Value: "true"}}})
	var n task.NodeView
	if f.get("/v1/nodes/nas").ok(&n); len(n.Rules.AllowUsers) != 0 || n.Rules.Inhibit != "mains" {
		t.Errorf("%+v", n.Rules)
	}
}
