package fsm

import (
	"errors"
	"math"
	"slices"

	"lanjobs/task"
)

// encode writes a job without its shards. A spec is written with the first job that has it; the others give its number.
func (j *Job) encode(e *enc, specs map[*Spec]int) {
	e.str(string(j.ID))
	j.Spec.encode(e, specs)
	e.str(string(j.Request))
	list(e, j.acts, func(e *enc, r task.RequestID) { e.str(string(r)) })
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
		e.rec(func(e *enc) { e.str(k.Key); e.u64(k.Version); e.raw(k.Value) })
	})
	list(e, j.Stages, func(e *enc, st Stage) { e.rec(st.encode) })
	if e.level > 1 {
		e.bool(j.Expired)
		e.bool(j.Paused)
		e.num(j.Priority)
		e.str(j.Schedule)
		e.i64(j.ScheduledFor)
		e.str(j.Nominal)
		e.i64(int64(j.StartedLed))
	}
}

// encode writes the spec the first time, then its number.
func (sp *Spec) encode(e *enc, specs map[*Spec]int) {
	k, known := specs[sp]
	if !known {
		k = len(specs)
		specs[sp] = k
	}
	e.num(k)
	if !known {
		e.str(sp.JSON)
		e.str(sp.Digest)
	}
}

func (st *Stage) encode(e *enc) {
	e.u64(uint64(st.State))
	e.bool(st.Broken)
	if e.level > 1 {
		e.num(st.shards.n)
		e.bool(st.Stopping)
		e.str(st.Reason)
		list(e, st.Items, (*enc).str)
		list(e, st.Pins, func(e *enc, id task.NodeID) { e.str(string(id)) })
	}
}

func (st *Stage) decode(d *dec) {
	state := d.u64()
	if state > uint64(task.StageCancelled) {
		d.fail()
		return
	}
	st.State, st.Broken = task.StageState(state), d.bool()
	if d.level > 1 {
		st.shards.n, st.Stopping, st.Reason = d.num(), d.bool(), d.str()
		st.Items = readList(d, (*dec).str)
		st.Pins = readList(d, func(d *dec) task.NodeID { return task.NodeID(d.word()) })
	}
}

func (j *Job) decode(d *dec, s *State, specs *[]*Spec) error {
	j.ID = task.JobID(d.str())
	spec, err := s.decodeSpec(d, specs)
	if err != nil {
		return err
	}
	spec.users++
	j.Spec, j.Request = spec, task.RequestID(d.str())
	j.acts = readList(d, func(d *dec) task.RequestID { return task.RequestID(d.str()) })
	j.State, j.By = task.JobState(d.word()), d.word()
	j.Submitted, j.Started, j.Ended = d.i64(), d.i64(), d.i64()
	j.SubmittedLed, j.EndedLed = task.Millis(d.i64()), task.Millis(d.i64())
	j.Cancelling, j.CancelGrace, j.CancelReason, j.kvVersion = d.bool(), task.Millis(d.i64()), d.str(), d.u64()
	j.KV = readList(d, func(d *dec) (k StateKey) {
		d.rec(func(d *dec) { k = StateKey{Key: d.str(), Version: d.u64(), Value: cloneNil(d.raw())} })
		return k
	})
	j.Stages = readList(d, func(d *dec) (st Stage) {
		d.rec(st.decode)
		return st
	})
	j.Priority = spec.Priority
	if d.level > 1 {
		j.Expired, j.Paused, j.Priority, j.Schedule, j.ScheduledFor, j.Nominal, j.StartedLed = d.bool(), d.bool(), d.num(), d.word(), d.i64(), d.str(), task.Millis(d.i64())
	}
	switch {
	case d.err != nil:
		return d.err
	case len(j.Stages) != len(spec.Stages):
		return errors.New("job " + string(j.ID) + ": stages and spec differ")
	case !slices.Contains(jobStates, j.State):
		return errors.New("job " + string(j.ID) + ": unknown state")
	}
	return nil
}

var jobStates = []task.JobState{task.JobPending, task.JobRunning, task.JobSucceeded, task.JobPartial, task.JobFailed, task.JobCancelled, task.JobExpired}

func (s *State) decodeSpec(d *dec, specs *[]*Spec) (*Spec, error) {
	switch k := d.num(); {
	case d.err != nil:
		return nil, d.err
	case k >= 0 && k < len(*specs):
		return (*specs)[k], nil
	case k != len(*specs):
		return nil, errors.New("spec out of order")
	}
	text, digest := d.str(), d.str()
	if d.err != nil {
		return nil, d.err
	}
	if s.specs[text] != nil {
		return nil, errors.New("spec written twice")
	}
	spec, problem := newSpec(text, digest)
	if problem != "" {
		return nil, errors.New(problem)
	}
	s.specs[text] = spec
	*specs = append(*specs, spec)
	return spec, nil
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
	set(sh.Token != 0, hasRun)
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
		list(e, x.puts, func(e *enc, p put) { e.str(string(p.request)); e.u64(p.version) })
		if e.level > 1 {
			x.encodeMore(e)
		}
	}
}

// decode reads a shard; places is the number of nodes.
func (sh *Shard) decode(d *dec, places int) {
	v := d.u64()
	state, bits := v>>4, v&15
	if state >= uint64(task.ShardStates) {
		d.fail()
		return
	}
	sh.State = task.ShardState(state)
	if bits&hasCounts != 0 {
		sh.Defers, sh.Fails, sh.Losses = uint8(d.most(math.MaxUint8)), uint16(d.most(math.MaxUint16)), uint16(d.most(math.MaxUint16))
	}
	if bits&hasRun != 0 {
		if places == 0 {
			d.fail()
			return
		}
		sh.Tries, sh.Node = int32(d.most(math.MaxInt32)), int32(d.most(uint64(places)-1))
		sh.Token, sh.Granted = task.Token(d.u64()), task.Instant(d.i64())
	}
	if bits&hasTimes != 0 {
		sh.Ended, sh.Due, sh.Renewed = task.Instant(d.i64()), task.Instant(d.i64()), task.Instant(d.i64())
	}
	if bits&hasExtra != 0 {
		x := &Extra{Checkpoint: task.Checkpoint{Seq: d.u64(), Data: cloneNil(d.raw())}, CheckpointAt: task.Instant(d.i64()), CheckpointBy: task.Token(d.u64())}
		x.Outputs, x.History = decKVs(d), readList(d, decAttempt)
		x.puts = readList(d, func(d *dec) put { return put{task.RequestID(d.str()), d.u64()} })
		if d.level > 1 {
			x.decodeMore(d)
		}
		sh.Extra = x
	}
	if sh.Token == 0 && (sh.State.Leased() || sh.State == task.ShardSucceeded && sh.Skipped() == "" || bits&hasRun != 0) {
		d.fail()
	}
}
