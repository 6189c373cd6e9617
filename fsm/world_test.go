package fsm

import (
	"encoding/json"
	"fmt"
	"math/rand"

	"lanjobs/task"
)

// chooser is where a random history takes its choices from: a seeded generator, the bytes of a fuzzer, or rapid.
type chooser interface{ Intn(n int) int }

func seeded(seed int64) chooser { return rand.New(rand.NewSource(seed)) }

// world makes random commands about a state: mostly such as a leader would write, sometimes such as nobody should. It looks
// at the state for what exists and remembers what was, so that stale tokens and late repeats come up.
type world struct {
	chooser
	level  int // of its machines
	s      *State
	grants []granted
	jobs   int
	reqs   int
	seqs   uint64
	past   []Command // accepted ones whose repeat must be harmless
}

// granted is what is known of an assignment from the answer to its grant.
type granted struct {
	ref   task.ShardRef
	token task.Token
	node  task.NodeID
}

func (w *world) one(n int) bool { return w.Intn(n) == 0 }

func pick[T any](w *world, of ...T) T { return of[w.Intn(len(of))] }

func (w *world) node() task.NodeID { return task.NodeID(fmt.Sprintf("n%d", w.Intn(4))) }

func (w *world) incarnation(id task.NodeID) uint64 {
	inc := uint64(1)
	if n := w.s.Node(id); n != nil {
		inc = max(n.Incarnation, 1)
	}
	if w.one(12) {
		inc += uint64(w.Intn(3)) - 1
	}
	return inc
}

func (w *world) job() task.JobID {
	if w.jobs == 0 || w.one(25) {
		return "none"
	}
	if w.one(3) { // of whatever kind it is
		id, n := task.JobID("none"), w.Intn(5)
		w.s.JobsNewestFirst(func(j *Job) bool { id = j.ID; n--; return n >= 0 })
		return id
	}
	return task.JobID(fmt.Sprintf("j%d", max(w.jobs-1-w.Intn(5), 0)))
}

// request makes an id, mostly a new one.
func (w *world) request() task.RequestID {
	if !w.one(6) {
		w.reqs++
	}
	return task.RequestID(fmt.Sprintf("r%d", w.reqs))
}

// held is an assignment: mostly one that is current, sometimes an old one or one that never was.
func (w *world) held() granted {
	if len(w.grants) == 0 || w.one(40) {
		return granted{task.ShardRef{Job: w.job(), Stage: w.Intn(3) - 1, Shard: w.Intn(3) - 1}, task.Token(w.Intn(40)), w.node()}
	}
	for range 6 {
		g := w.grants[len(w.grants)-1-w.Intn(min(len(w.grants), 12))]
		if w.s.Lease(g.token) != nil || w.one(8) {
			if w.one(15) { // a good token for another shard
				g.ref = pick(w, w.grants[w.Intn(len(w.grants))].ref, task.ShardRef{Job: w.job(), Stage: g.ref.Stage, Shard: g.ref.Shard})
			}
			return g
		}
	}
	return w.grants[w.Intn(len(w.grants))]
}

func (w *world) tokens(node task.NodeID) []task.Token {
	var out []task.Token
	for range w.Intn(4) {
		g := w.held()
		if g.node == node || w.one(6) {
			out = append(out, g.token)
		}
	}
	return out
}

// kinds are the ways to make a command, with how often each is wanted.
var kinds = []struct {
	name   string
	weight int
	make   func(*world) Command
}{
	{"register", 3, (*world).register},
	{"submit", 3, (*world).submit},
	{"grant", 12, (*world).grant},
	{"renew", 6, (*world).renew},
	{"report", 9, (*world).report},
	{"expire", 3, (*world).expire},
	{"checkpoint", 4, (*world).checkpoint},
	{"output", 2, (*world).output},
	{"state", 3, (*world).state},
	{"cancel", 1, (*world).cancel},
	{"retry", 3, (*world).retry},
	{"collect", 1, (*world).collect},
	{"repeat", 4, (*world).repeat},
	{"member", 3, (*world).member},
	{"fire", 3, (*world).fire},
	{"set", 3, (*world).set},
	{"split", 5, (*world).split},
	{"care", 2, (*world).care},
}

// command makes one of any kind.
func (w *world) command() Command {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := w.Intn(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			return k.make(w)
		}
	}
	panic("unreachable")
}

func (w *world) register() Command {
	id := w.node()
	inc := w.incarnation(id)
	if w.one(3) {
		inc++
	}
	return &RegisterNode{Info: task.NodeInfo{ID: id, Name: string(id), Level: w.level, Slots: 1 + w.Intn(4), Labels: []task.KV{{Name: "b", Value: "2"}, {Name: "a", Value: "1"}}},
		Incarnation: inc, Held: w.tokens(id), Load: task.Load{CPU: 0.5}}
}

func (w *world) submit() Command {
	id := w.jobs
	if w.one(20) {
		id = max(id-1, 0)
	} else {
		w.jobs++
	}
	spec := task.Spec{Name: fmt.Sprintf("name%d", w.Intn(2)), Queue: "default", Priority: w.Intn(3) * 50, Retain: task.Millis(w.Intn(3)) * task.Minute}
	if w.one(3) {
		spec.IdempotencyKey, spec.IdempotencyWindow = pick(w, "k1", "k2"), task.Millis(1+w.Intn(20))*task.Minute
	}
	for i := range 1 + w.Intn(3) {
		st := stage(fmt.Sprintf("s%d", i), 1+w.Intn(3))
		if w.one(10) {
			st.Shards = 60 + w.Intn(10)
		}
		if i > 0 && !w.one(4) {
			st.Needs = []string{fmt.Sprintf("s%d", w.Intn(i))}
			if i > 1 && w.one(3) {
				st.Needs = []string{"s0", "s1"}
			}
		}
		st.When = pick(w, task.WhenSuccess, task.WhenSuccess, task.WhenSuccess, task.WhenFailure, task.WhenAlways)
		st.Parallelism = w.Intn(3)
		st.Lease = task.DefaultLease(pick[task.Millis](w, 2, 10, 60) * task.Second)
		st.Retry.Attempts, st.Retry.LeaseLosses = 1+w.Intn(3), 1+w.Intn(3)
		st.Retry.Initial = task.Millis(w.Intn(3)) * 4 * task.Second
		st.Success = pick(w, task.Success{}, task.Success{Percent: 50}, task.Success{Count: 1})
		w.shape(&spec, &st)
		spec.Stages = append(spec.Stages, st)
	}
	w.times(&spec)
	if w.one(30) {
		spec.Stages[0].Shards = -w.Intn(2)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		panic(err)
	}
	return &SubmitJob{RequestID: w.request(), Job: task.JobID(fmt.Sprintf("j%d", id)), Spec: data, Digest: data[:min(len(data), 20)], By: "me"}
}

func (w *world) grant() Command {
	node := w.node()
	c := &Grant{Node: node, Incarnation: w.incarnation(node), Job: w.job(), Stage: w.Intn(3)}
	if w.one(30) {
		c.Stage = -1
	}
	if j := w.s.Job(c.Job); j != nil && !w.one(6) {
		for i := range j.Stages {
			if j.Grantable(i) > 0 {
				c.Stage = i
			}
		}
		if c.Stage >= 0 && c.Stage < len(j.Stages) && !w.one(6) {
			for k := j.NextReady(c.Stage, w.Intn(2)); k >= 0 && len(c.Shards) < 3; k = j.NextReady(c.Stage, k+1) {
				c.Shards = append(c.Shards, k)
			}
			return c
		}
	}
	for k := range 4 {
		if w.one(2) {
			c.Shards = append(c.Shards, k-w.Intn(2))
		}
	}
	return c
}

func (w *world) renew() Command {
	g := w.held()
	return &Renew{Node: g.node, Incarnation: w.incarnation(g.node), Tokens: append(w.tokens(g.node), g.token), Load: task.Load{MemFreeMB: 7}}
}

func (w *world) report() Command {
	c := &Report{Node: w.node()}
	for i := range 1 + w.Intn(2) {
		g := w.held()
		if i == 0 && !w.one(15) {
			c.Node = g.node
		}
		r := task.Report{Job: g.ref.Job, Stage: g.ref.Stage, Shard: g.ref.Shard, Token: g.token}
		if w.one(30) {
			r.Shard++
		}
		r.Outcome = pick(w,
			task.Outcome{End: task.EndExited}, task.Outcome{End: task.EndExited}, task.Outcome{End: task.EndExited},
			task.Outcome{End: task.EndExited, ExitCode: 1, Tail: "tail", RunMillis: 7}, task.Outcome{End: task.EndExited, ExitCode: 1, Message: "no"},
			task.Outcome{End: task.EndExited, ExitCode: 64}, task.Outcome{End: task.EndExited, ExitCode: 75},
			task.Outcome{End: task.EndDeferred, Wait: 3 * task.Second}, task.Outcome{End: task.EndCancelled}, task.Outcome{End: task.EndDrained},
			task.Outcome{End: task.EndLeaseLost}, task.Outcome{End: task.EndStartFailed, Message: "no such file"}, task.Outcome{End: task.EndTimeout},
			task.Outcome{End: task.EndUnmet, Message: "no path"}, task.Outcome{End: task.EndUnmet, Message: "no path"},
			task.Outcome{End: task.EndLeaseExpired}, task.Outcome{End: "of a later version"})
		if w.one(3) {
			r.Outputs = []task.KV{{Name: pick(w, "a", "b"), Value: pick(w, "v", "x\n\ny\r\nz\n", "", "1\n2")}, {Name: "c", Value: "w"}}
		}
		c.Reports = append(c.Reports, r)
	}
	return c
}

func (w *world) expire() Command {
	tokens := w.s.Lapsed(w.s.Clock.Add(MaxElapsed))
	if w.one(3) || len(tokens) == 0 {
		tokens = append(tokens, w.held().token)
	}
	return &Expire{Tokens: tokens}
}

func (w *world) checkpoint() Command {
	g := w.held()
	if !w.one(4) {
		w.seqs++
	}
	return &Checkpoint{Ref: g.ref, Token: g.token, Seq: w.seqs - uint64(min(w.Intn(2), int(w.seqs))), Data: []byte(pick(w, "", "one", "two"))}
}

func (w *world) output() Command {
	g := w.held()
	c := &PutOutput{Ref: g.ref, Token: g.token, Output: task.KV{Name: pick(w, "a", "b", "c", ""), Value: pick(w, "x", "y")}, RequestID: w.request()}
	if w.one(5) {
		c.RequestID = ""
	}
	return c
}

func (w *world) state() Command {
	g := w.held()
	c := &PutState{Ref: g.ref, Token: g.token, Key: pick(w, "x", "y", "z"), Value: []byte(pick(w, "1", "2", "")), RequestID: w.request()}
	if w.one(5) {
		c.RequestID = ""
	}
	if w.one(2) {
		v := uint64(w.Intn(4))
		if j := w.s.Job(g.ref.Job); j != nil && !w.one(3) {
			_, v = j.StateValue(c.Key)
		}
		c.IfVersion = &v
	}
	return c
}

func (w *world) cancel() Command {
	return &CancelJob{Job: w.job(), Reason: "enough", By: "me", Grace: task.Millis(w.Intn(2)) * task.Second, RequestID: w.request()}
}

func (w *world) retry() Command {
	c := &RetryJob{RequestID: w.request(), Job: w.job(), All: w.one(3), FromStart: w.one(3), Stage: pick(w, "", "", "s0", "s1", "s2"), By: "me"}
	if w.one(3) {
		c.Shards = []task.Range{{First: w.Intn(3), Last: w.Intn(4)}, {First: w.Intn(2), Last: 1}}
	}
	return c
}

func (w *world) collect() Command { return &CollectJobs{Jobs: []task.JobID{w.job(), w.job()}} }

// repeat brings an accepted command again, much later.
func (w *world) repeat() Command {
	if len(w.past) == 0 {
		return &CollectJobs{}
	}
	return w.past[len(w.past)-1-w.Intn(min(len(w.past), 6))]
}

// member is what happens around a cluster's members and seldom.
func (w *world) member() Command {
	id := w.node()
	if w.s.Cluster.ID == "" && len(w.s.Nodes()) > 3 && w.one(4) || w.one(40) {
		return &InitCluster{ID: "c", Name: "home", CACert: []byte("cert"), CAKey: []byte("key"), GossipKey: []byte("gossip"), By: "me"}
	}
	switch w.Intn(18) {
	case 0, 1, 2:
		return &SetOnline{Node: id, Online: w.one(2), Reason: "silent"}
	case 3, 4:
		return &SetNode{Node: id, Action: NodeDrain, After: task.Minute, By: "me"}
	case 5, 6, 7:
		return &SetNode{Node: id, Action: NodeResume}
	case 8:
		return &SetNode{Node: id, Action: pick(w, NodeLabel, "paint"), Labels: []task.KV{{Name: pick(w, "a", "z"), Value: pick(w, "", "9")}}}
	case 9:
		if w.one(4) {
			return &SetNode{Node: id, Action: pick(w, NodeRemove, NodeLeave)}
		}
		return &Elected{Node: id, Term: uint64(w.Intn(9))}
	case 10:
		return &NewGeneration{By: "me", Reason: "recovered", AtLeast: uint64(w.Intn(4))}
	case 11:
		return &CreateToken{ID: pick(w, "t1", "t2"), Hash: []byte(pick(w, "h1", "h2")), TTL: task.Hour, Uses: 1 + w.Intn(2), Worker: w.one(2), By: "me"}
	case 12:
		return &RemoveToken{ID: pick(w, "t1", "t2"), By: "me"}
	case 13:
		return &Elected{Node: id, Term: uint64(w.Intn(9))}
	default:
		return &AdmitNode{TokenHash: []byte(pick(w, "h1", "h2", "")), Node: task.NodeID(fmt.Sprintf("n%d", w.Intn(6))), Name: "new", Key: []byte(pick(w, "k1", "k2"))}
	}
}

// batch makes an entry of a few commands.
func (w *world) batch(cs ...Command) *Batch {
	b := &Batch{Wall: int64(w.Intn(1000)), Leader: w.node(), Commands: cs}
	b.Elapsed = pick(w, 0, 0, 10, 1000, 3000, task.Millis(w.Intn(10_000)), MaxElapsed, 20_000)
	if w.one(10) {
		b.Idle = task.Millis(w.Intn(30)) * task.Minute
	}
	for len(cs) == 0 && len(b.Commands) < 1+w.Intn(3) {
		b.Commands = append(b.Commands, w.command())
	}
	return b
}

// learn remembers what the answers to a batch told.
func (w *world) learn(b *Batch, results []Result) {
	for i, c := range b.Commands {
		if results[i].Err != nil {
			continue
		}
		switch c := c.(type) {
		case *Grant:
			for k, t := range results[i].Tokens {
				if t != 0 {
					w.grants = append(w.grants, granted{task.ShardRef{Job: c.Job, Stage: c.Stage, Shard: c.Shards[k]}, t, c.Node})
				}
			}
		case *Report, *Checkpoint, *RegisterNode:
			w.past = append(w.past, c)
		case *SubmitJob:
			w.past = append(w.past, c)
		case *PutState:
			if c.RequestID != "" {
				w.past = append(w.past, c)
			}
		case *PutOutput:
			if c.RequestID != "" {
				w.past = append(w.past, c)
			}
		case *CancelJob, *RetryJob, *SetJob, *SetQueue, *Cursor:
			w.past = append(w.past, c)
		}
	}
}
