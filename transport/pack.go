package transport

import (
	"lanjobs/task"
)

// The lists that a busy worker and its leader exchange thousands of times a second are written by hand inside the MessagePack
// of their message: finding a struct's fields by reflection costs as much as all else that is done with a shard. Each
// element is a record with its length, its fields in a fixed order: fields are only added at the end, and what a reader
// does not know there is skipped (R47).

// Assignments is a list of assignments in its own binary form.
type Assignments []task.Assignment

// Reports is a list of reports in its own binary form.
type Reports []task.Report

// Tokens is a list of fencing tokens in its own binary form.
type Tokens []task.Token

// MarshalBinary is encoding.BinaryMarshaler.
func (as Assignments) MarshalBinary() ([]byte, error) {
	p := packer{b: make([]byte, 0, 16+96*len(as))}
	p.uint(uint64(len(as)))
	for i := range as {
		p.record(func(p *packer) { p.assignment(&as[i]) })
	}
	return p.b, nil
}

// UnmarshalBinary is encoding.BinaryUnmarshaler.
func (as *Assignments) UnmarshalBinary(b []byte) error {
	u := unpacker{b: b}
	*as = unpackList(&u, (*unpacker).assignment)
	return u.end("assignments")
}

// MarshalBinary is encoding.BinaryMarshaler.
func (rs Reports) MarshalBinary() ([]byte, error) {
	p := packer{b: make([]byte, 0, 16+64*len(rs))}
	p.uint(uint64(len(rs)))
	for i := range rs {
		p.record(func(p *packer) { p.report(&rs[i]) })
	}
	return p.b, nil
}

// UnmarshalBinary is encoding.BinaryUnmarshaler.
func (rs *Reports) UnmarshalBinary(b []byte) error {
	u := unpacker{b: b}
	*rs = unpackList(&u, (*unpacker).report)
	return u.end("reports")
}

// MarshalBinary is encoding.BinaryMarshaler. Tokens of one node lie close together, so that differences are short.
func (ts Tokens) MarshalBinary() ([]byte, error) {
	p := packer{b: make([]byte, 0, 16+2*len(ts))}
	p.uint(uint64(len(ts)))
	last := int64(0)
	for _, t := range ts {
		p.int(int64(t) - last)
		last = int64(t)
	}
	return p.b, nil
}

// UnmarshalBinary is encoding.BinaryUnmarshaler.
func (ts *Tokens) UnmarshalBinary(b []byte) error {
	u := unpacker{b: b}
	n := u.count(1)
	*ts = nil
	if n > 0 {
		*ts = make(Tokens, 0, n)
	}
	last := int64(0)
	for range n {
		last += u.int()
		*ts = append(*ts, task.Token(last))
	}
	return u.end("tokens")
}

func (p *packer) assignment(a *task.Assignment) {
	p.text(string(a.Job))
	p.int(int64(a.Stage))
	p.int(int64(a.Shard))
	p.int(int64(a.Attempt))
	p.uint(uint64(a.Token))
	p.text(a.SpecDigest)
	p.int(int64(a.FirstTTL))
	p.flag(a.MustRenew)
	p.flag(a.Checkpoint != nil)
	if a.Checkpoint != nil {
		p.uint(a.Checkpoint.Seq)
		p.text(string(a.Checkpoint.Data))
	}
	p.int(a.ScheduledFor)
	p.text(a.Item)
	p.int(int64(a.Of))
	p.flag(a.Range != nil)
	if a.Range != nil {
		p.int(a.Range.Start)
		p.int(a.Range.End)
	}
}

func (u *unpacker) assignment(a *task.Assignment) {
	a.Job = task.JobID(u.text())
	a.Stage, a.Shard, a.Attempt = u.num(), u.num(), u.num()
	a.Token = task.Token(u.uint())
	a.SpecDigest = u.text()
	a.FirstTTL = task.Millis(u.int())
	a.MustRenew = u.flag()
	if u.flag() {
		a.Checkpoint = &task.Checkpoint{Seq: u.uint(), Data: []byte(u.text())}
	}
	a.ScheduledFor = u.int()
	a.Item, a.Of = u.text(), u.num()
	if u.flag() {
		a.Range = &task.ShardRange{Start: u.int(), End: u.int()}
	}
}

func (p *packer) report(r *task.Report) {
	p.text(string(r.Job))
	p.int(int64(r.Stage))
	p.int(int64(r.Shard))
	p.uint(uint64(r.Token))
	o := &r.Outcome
	p.text(string(o.End))
	p.int(int64(o.ExitCode))
	p.int(int64(o.Signal))
	p.text(o.Message)
	p.text(o.Tail)
	p.int(int64(o.RunMillis))
	p.int(int64(o.Wait))
	p.uint(uint64(len(r.Outputs)))
	for _, kv := range r.Outputs {
		p.text(kv.Name)
		p.text(kv.Value)
	}
}

func (u *unpacker) report(r *task.Report) {
	r.Job = task.JobID(u.text())
	r.Stage, r.Shard = u.num(), u.num()
	r.Token = task.Token(u.uint())
	r.Outcome = task.Outcome{End: task.End(u.text()), ExitCode: u.num(), Signal: u.num(), Message: u.text(), Tail: u.text(),
		RunMillis: task.Millis(u.int()), Wait: task.Millis(u.int())}
	for range u.count(2) {
		r.Outputs = append(r.Outputs, task.KV{Name: u.text(), Value: u.text()})
	}
}
