package fsm

import (
	"bytes"
	"errors"
	"fmt"

	"lanjobs/task"
)

// batchVersion is the first byte of every log entry.
const batchVersion = 1

// ErrUnknownCommand: the entry holds a command that this binary does not know. It must stop applying: skipping would make
// its state differ from the others' for good (R47).
var ErrUnknownCommand = errors.New("log entry from a newer version of lanjobs")

// Encode gives a batch its bytes.
func (b *Batch) Encode() []byte {
	e := enc{b: make([]byte, 0, 256)}
	e.b = append(e.b, batchVersion)
	e.rec(func(e *enc) {
		e.i64(int64(b.Elapsed))
		e.i64(int64(b.Idle))
		e.i64(b.Wall)
		e.str(string(b.Leader))
	})
	e.u64(uint64(len(b.Commands)))
	var last *SubmitJob
	for _, c := range b.Commands {
		submit, ok := c.(*SubmitJob)
		if b.Together && ok && submit.SameJob(last) {
			e.u64(uint64(kindSubmitSame))
			e.rec(submit.encodeSame)
			continue
		}
		if ok {
			last = submit
		}
		EncodeCommand(&e.b, c)
	}
	return e.b
}

// SameJob tells whether two commands submit the same spec: then the second needs no more than its own names in a batch.
func (c *SubmitJob) SameJob(o *SubmitJob) bool {
	return o != nil && bytes.Equal(c.Spec, o.Spec) && bytes.Equal(c.Digest, o.Digest)
}

func (c *SubmitJob) encodeSame(e *enc) {
	e.str(string(c.RequestID))
	e.str(string(c.Job))
	e.str(c.By)
}

// EncodeCommand appends one command, so that a leader can measure a batch while it grows.
func EncodeCommand(buf *[]byte, c Command) {
	e := enc{b: *buf}
	e.u64(uint64(c.kind()))
	e.rec(c.encode)
	*buf = e.b
}

// DecodeBatch reads a batch whole before anything of it is applied.
func DecodeBatch(data []byte) (*Batch, error) {
	if len(data) == 0 {
		return nil, errShort
	}
	if data[0] != batchVersion {
		return nil, fmt.Errorf("%w (batch format %d)", ErrUnknownCommand, data[0])
	}
	d := dec{b: data[1:]}
	b := &Batch{}
	d.rec(func(d *dec) {
		b.Elapsed, b.Idle, b.Wall, b.Leader = task.Millis(d.i64()), task.Millis(d.i64()), d.i64(), task.NodeID(d.str())
	})
	n := d.count()
	b.Commands = make([]Command, 0, min(n, 4096))
	var last *SubmitJob
	for i := 0; i < n && d.err == nil; i++ {
		k := kind(d.u64())
		var c Command
		var unknown bool
		d.rec(func(d *dec) {
			if k == kindSubmitSame && last != nil {
				b.Together = true
				c = &SubmitJob{RequestID: task.RequestID(d.str()), Job: task.JobID(d.str()), By: d.str(), Spec: last.Spec, Digest: last.Digest}
			} else if f := decoders[k]; f != nil {
				c = f(d)
			} else {
				unknown = true
			}
		})
		if submit, ok := c.(*SubmitJob); ok {
			last = submit
		}
		if unknown && d.err == nil {
			return nil, fmt.Errorf("%w (command %d)", ErrUnknownCommand, k)
		}
		b.Commands = append(b.Commands, c)
	}
	if d.err == nil && len(d.b) > 0 {
		d.err = errors.New("bytes after the last command")
	}
	return b, d.err
}
