package api

import (
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/node/leader"
	"lanjobs/task"
)

const transcode = `
name: transcode
labels: {team: media}
retry: {jitter: 0%}
stages:
  - {name: init, run: ./init.sh}
  - {name: segments, shards: 8, parallelism: 3, retry: {attempts: 5, initial: 30s, jitter: 0%}, run: ./segment.sh}
  - {name: merge, run: ./merge.sh}
`

// busy is a cluster in the middle of things: a job that runs with a checkpoint, a retry and a full stage, one that failed,
// one that no machine can take; mini-2 asleep, pc-win draining.
func busy(t *testing.T) *cluster {
	c := newCluster(t)
	transcodeID := c.submit(transcode)
	c.run("n3", transcodeID, 0, 0)
	c.run("n3", transcodeID, 1, 0, 1, 2)
	c.fail("n4", transcodeID, 1, 4, 1)
	late := c.grant("n2", transcodeID, 1, 3)
	c.confirm("n2", late...)
	c.do(0, &fsm.Checkpoint{Ref: task.ShardRef{Job: transcodeID, Stage: 1, Shard: 3}, Token: late[0], Seq: 3, Data: []byte("3")})
	c.lead(12 * time.Second)
	toks := c.grant("n3", transcodeID, 1, 5, 6)
	c.confirm("n3", toks[0])
	c.do(0, &fsm.PutOutput{Ref: task.ShardRef{Job: transcodeID, Stage: 1, Shard: 5}, Token: toks[0], Output: task.KV{Name: "part0", Value: "5.0.f9.mkv"}})
	c.progress[toks[0]] = "30%"
	c.submit("name: score\nshards: 2\nretry: {attempts: 1}\nrun: ./score.py\n")
	c.run("n4", "j7k2xz", 0, 0)
	c.fail("n4", "j7k2xz", 0, 1, 3)
	c.submit("name: train\nplacement: {require: [gpu=true]}\nrun: ./train.py\n")
	c.do(0, &fsm.SetOnline{Node: "n2", Reason: "not heard of for 1 minute"}, &fsm.SetNode{Node: "n4", Action: fsm.NodeDrain, After: 5 * task.Minute, By: "anna"})
	c.members[1].Away = 4 * time.Minute
	c.seen["n2"] = leader.Seen{Ago: 4 * time.Minute}
	c.lead(3 * time.Second)
	return c
}

func TestViewsOfABusyCluster(t *testing.T) {
	c := busy(t)
	for path, file := range map[string]string{
		"/v1/status":         "status.json",
		"/v1/jobs":           "jobs.json",
		"/v1/jobs/transcode": "job.json",
		"/v1/jobs/transcode/shards?why=1&attempts=1": "shards.json",
		"/v1/jobs/transcode/why":                     "why.json",
		"/v1/jobs/train/why":                         "why_train.json",
		"/v1/jobs/score/why":                         "why_score.json",
		"/v1/nodes":                                  "nodes.json",
		"/v1/nodes/pc-win":                           "node.json",
		"/v1/events?job=transcode/segments/3":        "events.json",
		"/v1/jobs/transcode/shards?state=failed":     "shards_none.json",
	} {
		t.Run(file, func(t *testing.T) { c.t = t; c.get(path).golden(file) })
	}
}

func TestStatusWithoutALeader(t *testing.T) {
	c := busy(t)
	c.standing = Standing{Silence: 90 * time.Second, Copy: true}
	c.members[0].Role = RoleVoter
	c.members[2].Away = 3 * time.Minute
	a := c.get("/v1/status")
	a.golden("status_no_leader.json")
	if got := a.header.Get("Lanjobs-Stale-Seconds"); got != "90.000" {
		t.Errorf("stale for %s", got)
	}
}
