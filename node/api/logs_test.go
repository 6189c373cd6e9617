package api

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// logNode answers log requests as a node's runner does.
func (c *cluster) logNode(answer func(to nodeID, r *transport.LogRequest) (transport.LogReply, error)) {
	c.call = func(_ context.Context, to nodeID, method transport.Method, request, reply any) error {
		if method != transport.MethodReadLog {
			c.t.Errorf("%s was called", method)
		}
		r, err := answer(to, request.(*transport.LogRequest))
		*reply.(*transport.LogReply) = r
		return err
	}
}

const logPath = "/v1/jobs/hello/shards/main/0/attempts/"

func TestLogOfAnAttempt(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nretry: {jitter: 0%, initial: 0}\nrun: echo\n")
	c.get(logPath+"0/log").problem(404, "not_found", "j7k3q9/main/0 has not run yet. | Why: lanjobs show j7k3q9/main/0 --why")
	c.fail("n4", "j7k3q9", 0, 0, 1) // attempt 1, x1
	c.do(1)
	c.confirm("n3", c.grant("n3", "j7k3q9", 0, 0)...) // attempt 2, x2, runs
	var asked *transport.LogRequest
	var at nodeID
	c.logNode(func(to nodeID, r *transport.LogRequest) (transport.LogReply, error) {
		at, asked = to, r
		return transport.LogReply{Data: []byte("hello <b>\n"), Next: 110, Done: r.Execution == "x1"}, nil
	})
	for _, x := range []struct {
		k, node, execution, done string
	}{{"0", "n3", "x2", "false"}, {"2", "n3", "x2", "false"}, {"1", "n4", "x1", "true"}} {
		a := c.get(logPath + x.k + "/log?stream=stderr&from=100&hold=10&limit=5000").ok(nil)
		want := transport.LogRequest{Job: "j7k3q9", Execution: task.ExecutionID(x.execution), Stream: "stderr", From: 100, Limit: 5000, Hold: 10 * task.Second}
		if string(at) != x.node || *asked != want {
			t.Errorf("attempt %s: asked %s %+v", x.k, at, asked)
		}
		h := a.header
		if a.body != "hello <b>\n" || h.Get("Content-Type") != typeText || h.Get(transport.HeaderLogNext) != "110" || h.Get(transport.HeaderLogDone) != x.done || h.Get(transport.HeaderLogAttempt) != x.execution {
			t.Errorf("attempt %s: %q %v", x.k, a.body, h)
		}
	}
	c.get(logPath + "0/log?tail=20").ok(nil)
	if asked.Tail != 20 || asked.Limit != maxLogPiece {
		t.Errorf("asked %+v", asked)
	}
	c.get(logPath+"3/log").problem(404, "not_found", "has had 2 attempts so far.")
	c.get("/v1/jobs/hello/shards/main/7/attempts/0/log").problem(404, "not_found", "j7k3q9/main/7 does not exist: the stage has shards 0 to 0.")
	c.get("/v1/jobs/hello/shards/mian/0/attempts/0/log").problem(404, "not_found", `Did you mean "main"?`)
	c.exit("n3", "j7k3q9", 0, 0, 2, task.Outcome{End: task.EndExited})
	if a := c.get(logPath + "0/log").ok(nil); a.header.Get(transport.HeaderLogAttempt) != "x2" {
		t.Errorf("newest is %v", a.header)
	}
}

func TestLogOfAMachineThatIsOff(t *testing.T) {
	c := newCluster(t)
	c.submit(hello)
	c.fail("n3", "j7k3q9", 0, 0, 1)
	c.do(0, &fsm.SetOnline{Node: "n3"})
	delete(c.seen, "n3")
	a := c.get(logPath + "0/log")
	p := a.problem(503, "no_leader", "nas is silent for 1h; its log is on that machine. | The end of it is in the ledger: lanjobs show j7k3q9 --attempts")
	var l transport.LogProblem
	if err := json.Unmarshal([]byte(a.body), &l); err != nil || l.Tail != "Traceback\nKeyError: 'a'\n" || l.Detail != p.Detail || !l.Retryable {
		t.Errorf("%+v %v", l, err)
	}
	// At a follower it is the same answer, not that of a missing leader.
	f := follower(t, c)
	if b := f.get(logPath + "0/log"); b.status != 503 || b.body != a.body {
		t.Errorf("at a follower: %d %s", b.status, b.body)
	}
	c.do(0, &fsm.SetOnline{Node: "n3", Online: true})
	c.get(logPath+"0/log").problem(503, "no_leader", "nas does not answer; its log is on that machine.")
	c.do(0, &fsm.SetNode{Node: "n3", Action: fsm.NodeRemove})
	c.get(logPath+"0/log").problem(404, "not_found", "nas has left the cluster; its log went with it.")
}

func TestLogThatIsGone(t *testing.T) {
	c := newCluster(t)
	c.submit(hello)
	c.fail("n3", "j7k3q9", 0, 0, 1)
	c.logNode(func(nodeID, *transport.LogRequest) (transport.LogReply, error) {
		return transport.LogReply{}, task.NewProblem(task.ErrNotFound, "no output of x1 on this machine", "")
	})
	a := c.get(logPath + "1/log")
	a.problem(404, "not_found", "nas no longer has this attempt's output.")
	var l transport.LogProblem
	if _ = json.Unmarshal([]byte(a.body), &l); l.Tail == "" {
		t.Error("without the tail")
	}
	c.logNode(func(nodeID, *transport.LogRequest) (transport.LogReply, error) {
		return transport.LogReply{}, errors.New("disk broken")
	})
	c.get(logPath+"1/log").problem(500, "internal", "disk broken")
}

func TestLogOfAnAttemptThatHasNotBegunIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.submit(hello)
		c.grant("n3", "j7k3q9", 0, 0)
		c.logNode(func(nodeID, *transport.LogRequest) (transport.LogReply, error) {
			return transport.LogReply{}, task.NewProblem(task.ErrNotFound, "no output of x1 on this machine", "")
		})
		start := time.Now()
		a := c.get(logPath + "0/log?hold=10&from=7").ok(nil)
		if a.body != "" || a.header.Get(transport.HeaderLogNext) != "7" || a.header.Get(transport.HeaderLogDone) != "false" || time.Since(start) != time.Second {
			t.Errorf("%q %v after %s", a.body, a.header, time.Since(start))
		}
		// A machine that takes the request and says nothing is given up.
		c.call = func(ctx context.Context, _ nodeID, _ transport.Method, _, _ any) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		start = time.Now()
		c.get(logPath+"0/log?hold=10").problem(503, "no_leader", "nas does not answer")
		if d := time.Since(start); d != 10*time.Second+logWait {
			t.Errorf("after %s", d)
		}
	})
}

func TestLogOfAnAttemptThatIsNoLongerRecorded(t *testing.T) {
	c := newCluster(t)
	c.submit("name: hello\nretry: {jitter: 0%, initial: 0, attempts: 1000}\nrun: echo\n")
	for range task.MaxHistory + 2 {
		c.fail("n3", "j7k3q9", 0, 0, 1)
		c.do(1)
	}
	c.get(logPath+"1/log").problem(404, "not_found", "where attempt 1 of j7k3q9/main/0 ran is no longer recorded. | It is in the audit log: lanjobs events --job j7k3q9")
}
