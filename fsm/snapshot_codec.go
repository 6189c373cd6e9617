package fsm

import (
	"encoding/json"
	"errors"

	"lanjobs/task"
)

func (s *State) encodeHead(e *enc) {
	e.i64(int64(s.Clock))
	e.i64(int64(s.Led))
	e.i64(s.Wall)
	e.u64(s.Index)
	e.u64(s.Generation)
	e.str(string(s.Leader))
	e.u64(s.Term)
	e.u64(s.nextToken)
	e.rec(func(e *enc) {
		e.str(s.Cluster.ID)
		e.str(s.Cluster.Name)
		e.raw(s.Cluster.CACert)
		e.raw(s.Cluster.CAKey)
		e.raw(s.Cluster.GossipKey)
	})
}

func (s *State) decodeHead(d *dec) {
	s.Clock, s.Led, s.Wall, s.Index, s.Generation = task.Instant(d.i64()), task.Millis(d.i64()), d.i64(), d.u64(), d.u64()
	s.Leader, s.Term, s.nextToken = task.NodeID(d.str()), d.u64(), d.u64()
	d.rec(func(d *dec) {
		s.Cluster = Cluster{ID: d.str(), Name: d.str(), CACert: d.raw(), CAKey: d.raw(), GossipKey: d.raw()}
	})
}

func (n *Node) encode(e *enc) {
	encInfo(e, n.Info)
	e.u64(n.Incarnation)
	e.bool(n.Online)
	e.bool(n.Draining)
	e.i64(int64(n.DrainUntil))
	e.str(string(n.Gone))
	list(e, n.Extra, encKV)
	e.bool(n.WorkerOnly)
	e.i64(n.Since)
	e.str(n.Reason)
}

func (n *Node) decode(d *dec) {
	*n = Node{Info: decInfo(d), Incarnation: d.u64(), Online: d.bool(), Draining: d.bool(), DrainUntil: task.Instant(d.i64()),
		Gone: NodeAction(d.str()), Extra: decKVs(d), WorkerOnly: d.bool(), Since: d.i64(), Reason: d.str()}
}

func (t *JoinToken) encode(e *enc) {
	e.str(t.ID)
	e.raw(t.Hash)
	e.i64(int64(t.Until))
	e.num(t.Uses)
	e.bool(t.Worker)
	e.str(t.By)
}

func (t *JoinToken) decode(d *dec) {
	*t = JoinToken{ID: d.str(), Hash: d.raw(), Until: task.Millis(d.i64()), Uses: d.num(), Worker: d.bool(), By: d.str()}
}

func (j *Job) encode(e *enc) {
	e.str(string(j.ID))
	e.str(j.Spec.JSON)
	e.str(j.Spec.Digest)
	e.str(string(j.Request))
	e.str(string(j.LastRetry))
	e.str(string(j.State))
	e.str(j.By)
	e.i64(j.Submitted)
	e.i64(j.Started)
	e.i64(j.Ended)
	e.i64(int64(j.SubmittedLed))
	e.i64(int64(j.EndedLed))
	e.bool(j.Cancelling)
	e.i64(int64(j.CancelGrace))
	e.str(j.CancelReason)
	e.u64(j.kvVersion)
	list(e, j.KV, func(e *enc, k StateKey) {
		e.rec(func(e *enc) { e.str(k.Key); e.u64(k.Version); e.raw(k.Value); e.str(string(k.request)) })
	})
	list(e, j.Stages, func(e *enc, st Stage) {
		e.rec(func(e *enc) { e.u64(uint64(st.State)); e.bool(st.Broken) })
	})
}

func (j *Job) decode(d *dec, s *State) error {
	j.ID = task.JobID(d.str())
	text, digest := d.raw(), d.str()
	if d.err != nil {
		return d.err
	}
	spec := s.specs[string(text)]
	if spec == nil {
		spec = &Spec{JSON: string(text), Digest: digest}
		if err := json.Unmarshal(text, &spec.Spec); err != nil {
			return err
		}
		if p := checkSpec(&spec.Spec); p != "" {
			return errors.New(p)
		}
		s.specs[spec.JSON] = spec
	}
	spec.users++
	j.Spec, j.Request, j.LastRetry = spec, task.RequestID(d.str()), task.RequestID(d.str())
	j.State, j.By = task.JobState(d.str()), d.str()
	j.Submitted, j.Started, j.Ended = d.i64(), d.i64(), d.i64()
	j.SubmittedLed, j.EndedLed = task.Millis(d.i64()), task.Millis(d.i64())
	j.Cancelling, j.CancelGrace, j.CancelReason, j.kvVersion = d.bool(), task.Millis(d.i64()), d.str(), d.u64()
	j.KV = readList(d, func(d *dec) (k StateKey) {
		d.rec(func(d *dec) {
			k = StateKey{Key: d.str(), Version: d.u64(), Value: d.raw(), request: task.RequestID(d.str())}
		})
		return k
	})
	j.Stages = readList(d, func(d *dec) (st Stage) {
		d.rec(func(d *dec) { st.State, st.Broken = task.StageState(d.u64()), d.bool() })
		return st
	})
	if d.err == nil && len(j.Stages) != len(spec.Stages) {
		return errors.New("job " + string(j.ID) + ": stages and spec differ")
	}
	for i := range j.Stages {
		if j.Stages[i].State > task.StageCancelled {
			return errors.New("job " + string(j.ID) + ": unknown stage state")
		}
	}
	return d.err
}

// Fields of a shard record that are written only when set, by bit.
const (
	hasCounts = 1 << iota // Defers, Fails, Losses
	hasRun                // Tries, Node, Token, Granted
	hasTimes              // Ended, Due, Renewed
	hasExtra
)

func (sh *Shard) encode(e *enc) {
	bits := uint64(0)
	set := func(on bool, bit uint64) {
		if on {
			bits |= bit
		}
	}
	set(sh.Defers != 0 || sh.Fails != 0 || sh.Losses != 0, hasCounts)
	set(sh.Tries != 0, hasRun)
	set(sh.Ended != 0 || sh.Due != 0 || sh.Renewed != 0, hasTimes)
	set(sh.Extra != nil, hasExtra)
	e.u64(uint64(sh.State)<<4 | bits)
	if bits&hasCounts != 0 {
		e.u64(uint64(sh.Defers))
		e.u64(uint64(sh.Fails))
		e.u64(uint64(sh.Losses))
	}
	if bits&hasRun != 0 {
		e.u64(uint64(sh.Tries))
		e.u64(uint64(sh.Node))
		encToken(e, sh.Token)
		e.i64(int64(sh.Granted))
	}
	if bits&hasTimes != 0 {
		e.i64(int64(sh.Ended))
		e.i64(int64(sh.Due))
		e.i64(int64(sh.Renewed))
	}
	if bits&hasExtra != 0 {
		x := sh.Extra
		e.u64(x.Checkpoint.Seq)
		e.raw(x.Checkpoint.Data)
		e.i64(int64(x.CheckpointAt))
		encToken(e, x.CheckpointBy)
		list(e, x.Outputs, encKV)
		list(e, x.History, encAttempt)
	}
}

func (sh *Shard) decode(d *dec) {
	v := d.u64()
	state, bits := v>>4, v&15
	if state >= uint64(task.ShardStates) {
		d.fail()
		return
	}
	sh.State = task.ShardState(state)
	if bits&hasCounts != 0 {
		sh.Defers, sh.Fails, sh.Losses = uint8(d.u64()), uint16(d.u64()), uint16(d.u64())
	}
	if bits&hasRun != 0 {
		sh.Tries, sh.Node, sh.Token, sh.Granted = uint16(d.u64()), int32(d.u64()), task.Token(d.u64()), task.Instant(d.i64())
	}
	if bits&hasTimes != 0 {
		sh.Ended, sh.Due, sh.Renewed = task.Instant(d.i64()), task.Instant(d.i64()), task.Instant(d.i64())
	}
	if bits&hasExtra != 0 {
		x := &Extra{Checkpoint: task.Checkpoint{Seq: d.u64(), Data: cloneNil(d.raw())}, CheckpointAt: task.Instant(d.i64()), CheckpointBy: task.Token(d.u64())}
		x.Outputs, x.History = decKVs(d), readList(d, decAttempt)
		sh.Extra = x
	}
}

// cloneNil copies, and gives nil for nothing.
func cloneNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}
