package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/task"
	"lanjobs/transport"
)

// carded gives a machine of newCluster a network card.
func (c *cluster) carded(id task.NodeID, name string, macs ...string) {
	c.t.Helper()
	c.do(0, &fsm.RegisterNode{Info: task.NodeInfo{ID: id, Name: name, OS: "darwin", Arch: "arm64", CPUs: 8, Slots: 8, Laptop: true, MACs: macs}, Incarnation: 1})
}

func TestEveryoneWakes(t *testing.T) {
	c := newCluster(t)
	c.ask("POST", "/v1/nodes/nas/wake", "").problem(409, "conflict", "no network card of nas is known")
	c.ask("POST", "/v1/nodes/naz/wake", "").problem(404, "not_found", `Did you mean "nas"?`)
	c.carded("n2", "mini-2", "02:00:00:00:00:01", "02:00:00:00:00:02")
	var asked []task.NodeID
	c.call = func(_ context.Context, to task.NodeID, method transport.Method, request, reply any) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		q := request.(*transport.WakeRequest)
		if method != transport.MethodWake || strings.Join(q.MACs, " ") != "02:00:00:00:00:01 02:00:00:00:00:02" {
			t.Errorf("%s %+v", method, q)
		}
		asked = append(asked, to)
		if to == "n4" {
			return task.NewProblem(task.ErrNoLeader, "it does not answer", "")
		}
		reply.(*transport.WakeReply).Sent = []string{"192.168.1.255"}
		return nil
	}
	c.do(0, &fsm.SetOnline{Node: "n2", Reason: task.ReasonAsleep})
	for _, leads := range []bool{true, false} { // without a leader it is needed most
		asked = nil
		c.standing = Standing{Leads: leads, Copy: true}
		var v transport.WakeView
		c.ask("POST", "/v1/nodes/mini-2/wake", "").ok(&v)
		if len(asked) != 3 || v.Sent != 2 || len(v.From) != 3 || v.Node.Name != "mini-2" {
			t.Errorf("asked %v: %+v", asked, v)
		}
		for _, s := range v.From {
			if (s.Problem != "") != (s.Name == "pc-win") || s.Name == "mini-2" {
				t.Errorf("%+v", s)
			}
		}
	}
	c.standing = Standing{Leads: true, Leader: "n1", Copy: true}
	c.call = nil
	c.ask("POST", "/v1/nodes/mini-2/wake", "").problem(409, "conflict", "no machine could send a packet: mini-1: it does not answer")
	c.do(0, &fsm.SetNode{Node: "n2", Action: fsm.NodeLeave})
	c.ask("POST", "/v1/nodes/mini-2/wake", "").problem(409, "conflict", "no longer a member")
}

// Asleep by its own word, silent, and left are three states; who is back says how long it slept (R16).
func TestSleepInViews(t *testing.T) {
	c := newCluster(t)
	see := func(state, note string) {
		t.Helper()
		var n task.NodeView
		if c.get("/v1/nodes/mini-2").ok(&n); n.State != state || n.Note != note || n.Since == nil {
			t.Errorf("%s %q since %v, want %s %q", n.State, n.Note, n.Since, state, note)
		}
	}
	see(nodeReady, "")
	c.do(0, &fsm.SetOnline{Node: "n2", Reason: task.ReasonAsleep})
	see(nodeAsleep, "")
	c.do(0, &fsm.SetOnline{Node: "n2", Online: true, Reason: "slept 7h12m"})
	see(nodeReady, "slept 7h12m")
	c.do(0, &fsm.SetOnline{Node: "n2", Reason: "not heard of for 1 minute"})
	see(nodeSilent, "asleep?") // it is a laptop
	c.do(0, &fsm.SetOnline{Node: "n2", Online: true})
	see(nodeReady, "")
	c.do(0, &fsm.SetNode{Node: "n2", Action: fsm.NodeLeave})
	see(nodeLeft, "has left")

	c = newCluster(t)
	c.do(0, &fsm.SetOnline{Node: "n2", Reason: task.ReasonAsleep})
	c.wall = c.wall.Add(30 * time.Hour)
	c.submit("name: only\nplacement: {require: [node=mini-2]}\nrun: echo\n")
	var w task.List[transport.WhyView]
	c.get("/v1/jobs/only/why?stage=main&shards=0").ok(&w)
	found := false
	for _, i := range w.Items {
		found = found || strings.HasPrefix(i.Why, "mini-2 is asleep for ") || i.Node == "mini-2" && strings.HasPrefix(i.Why, "is asleep for ")
	}
	if !found {
		t.Errorf("%+v", w.Items)
	}
	// Whatever it does once it is back is nobody's news the day after.
	c.do(0, &fsm.SetOnline{Node: "n2", Online: true, Reason: "slept 7h12m"})
	c.seen["n2"] = leader.Seen{Ago: time.Second}
}

func TestASchedulePutsDownWhomItWakes(t *testing.T) {
	c := newCluster(t)
	const text = "name: nightly\nschedule: {cron: \"0 3 * * *\", wake: [%]}\nrun: echo\n"
	for _, path := range []string{"/v1/jobs", "/v1/jobs?dry_run=1"} {
		c.ask("POST", path, strings.Replace(text, "%", "nas, minni-2", 1)).problem(400, "invalid", `there is no node "minni-2"; nothing was submitted. Did you mean "mini-2"?`)
	}
	if len(c.commands) != 0 {
		t.Errorf("%+v", c.commands)
	}
	var r task.SubmitReply
	c.ask("POST", "/v1/jobs", strings.Replace(text, "%", "nas, mini-2", 1)).ok(&r)
	var s task.ScheduleView
	c.get("/v1/schedules/nightly").ok(&s)
	if s.Schedule.Wake != "nas,mini-2" {
		t.Errorf("%+v", s.Schedule)
	}
}
