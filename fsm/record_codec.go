package fsm

import "lanjobs/task"

// The parts that commands and snapshots share.

func encToken(e *enc, t task.Token) { e.u64(uint64(t)) }
func decTokens(d *dec) []task.Token {
	return readList(d, func(d *dec) task.Token { return task.Token(d.u64()) })
}

func encKV(e *enc, kv task.KV) { e.str(kv.Name); e.str(kv.Value) }
func decKV(d *dec) task.KV     { return task.KV{Name: d.str(), Value: d.str()} }
func decKVs(d *dec) []task.KV  { return readList(d, decKV) }

func encRef(e *enc, r task.ShardRef) { e.str(string(r.Job)); e.num(r.Stage); e.num(r.Shard) }
func decRef(d *dec) task.ShardRef {
	return task.ShardRef{Job: task.JobID(d.str()), Stage: d.num(), Shard: d.num()}
}

func encLoad(e *enc, l task.Load) {
	e.rec(func(e *enc) { e.f64(l.CPU); e.num(l.MemFreeMB); e.num(l.DiskFreeMB) })
}
func decLoad(d *dec) (l task.Load) {
	d.rec(func(d *dec) { l = task.Load{CPU: d.f64(), MemFreeMB: d.num(), DiskFreeMB: d.num()} })
	return l
}

func encInfo(e *enc, n task.NodeInfo) {
	e.rec(func(e *enc) {
		e.str(string(n.ID))
		e.str(n.Name)
		e.str(n.OS)
		e.str(n.Arch)
		e.num(n.CPUs)
		e.num(n.MemoryMB)
		e.str(n.Version)
		e.num(n.Level)
		e.num(n.Slots)
		e.bool(n.Voter)
		list(e, n.Labels, encKV)
		list(e, n.Shells, (*enc).str)
		// What came later is written only if it is there; a reader that does not know it skips it.
		more := NewerInfo(&n)
		if n.Limits != "" || more {
			e.str(n.Limits)
		}
		if more {
			e.bool(n.Laptop)
			e.str(n.Host)
			list(e, n.MACs, (*enc).str)
			list(e, n.Refuses, (*enc).str)
			e.num(n.Reserve)
		}
		if n.RunAs != "" || n.Inhibit != "" {
			e.str(n.RunAs)
			e.str(n.Inhibit)
		}
	})
}

// NewerInfo tells whether a node says something of itself that replicas below LevelCare do not keep.
func NewerInfo(n *task.NodeInfo) bool {
	return n.Laptop || n.Host != "" || len(n.MACs) > 0 || len(n.Refuses) > 0 || n.Reserve != 0 || n.RunAs != "" || n.Inhibit != ""
}

// InfoOf is what replicas of a level keep of what a node says of itself: those below LevelCare skip the rest, so that it must not be told
// them while there are any.
func InfoOf(n task.NodeInfo, level int) task.NodeInfo {
	if level >= LevelCare {
		return n
	}
	return task.NodeInfo{ID: n.ID, Name: n.Name, OS: n.OS, Arch: n.Arch, CPUs: n.CPUs, MemoryMB: n.MemoryMB, Version: n.Version, Level: n.Level,
		Slots: n.Slots, Voter: n.Voter, Labels: n.Labels, Shells: n.Shells, Limits: n.Limits}
}

func decInfo(d *dec) (n task.NodeInfo) {
	d.rec(func(d *dec) {
		n = task.NodeInfo{ID: task.NodeID(d.str()), Name: d.str(), OS: d.str(), Arch: d.str(), CPUs: d.num(), MemoryMB: d.num(),
			Version: d.str(), Level: d.num(), Slots: d.num(), Voter: d.bool(), Labels: decKVs(d), Shells: readList(d, (*dec).str)}
		if d.more() {
			n.Limits = d.str()
		}
		if d.more() {
			n.Laptop, n.Host, n.MACs, n.Refuses, n.Reserve = d.bool(), d.str(), readList(d, (*dec).str), readList(d, (*dec).str), d.num()
		}
		if d.more() {
			n.RunAs, n.Inhibit = d.str(), d.str()
		}
	})
	return n
}

func encOutcome(e *enc, o task.Outcome) {
	e.rec(func(e *enc) {
		e.str(string(o.End))
		e.num(o.ExitCode)
		e.num(o.Signal)
		e.i64(int64(o.RunMillis))
		e.i64(int64(o.Wait))
		e.str(o.Message)
		e.str(o.Tail)
	})
}

func decOutcome(d *dec) (o task.Outcome) {
	d.rec(func(d *dec) {
		// Windows has exit codes of 32 bits without sign, which an int of a 32-bit replica does not hold: all keep them signed.
		o = task.Outcome{End: task.End(d.word()), ExitCode: int(int32(d.i64())), Signal: d.num(), RunMillis: task.Millis(d.i64()),
			Wait: task.Millis(d.i64()), Message: d.str(), Tail: d.str()}
	})
	return o
}

func encReport(e *enc, r task.Report) {
	e.rec(func(e *enc) {
		encRef(e, task.ShardRef{Job: r.Job, Stage: r.Stage, Shard: r.Shard})
		encToken(e, r.Token)
		encOutcome(e, r.Outcome)
		list(e, r.Outputs, encKV)
	})
}

func decReport(d *dec) (r task.Report) {
	d.rec(func(d *dec) {
		ref := decRef(d)
		r = task.Report{Job: ref.Job, Stage: ref.Stage, Shard: ref.Shard, Token: task.Token(d.u64()), Outcome: decOutcome(d), Outputs: decKVs(d)}
	})
	return r
}

func encAttempt(e *enc, a task.AttemptRecord) {
	e.rec(func(e *enc) {
		e.num(a.Number)
		e.str(string(a.Node))
		encToken(e, a.Token)
		e.i64(int64(a.Granted))
		e.i64(int64(a.Ended))
		e.bool(a.Counted)
		encOutcome(e, a.Outcome)
	})
}

func decAttempt(d *dec) (a task.AttemptRecord) {
	d.rec(func(d *dec) {
		a = task.AttemptRecord{Number: d.num(), Node: task.NodeID(d.word()), Token: task.Token(d.u64()),
			Granted: task.Instant(d.i64()), Ended: task.Instant(d.i64()), Counted: d.bool(), Outcome: decOutcome(d)}
	})
	return a
}
