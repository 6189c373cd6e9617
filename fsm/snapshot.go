package fsm

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"lanjobs/task"
)

// Snapshot is a frozen state: Write may run while later entries are applied.
type Snapshot struct{ s State }

// snapshotMagic and the version behind it open every snapshot.
const (
	snapshotMagic   = "LANJOBS\x01"
	snapshotVersion = 1
)

// Snapshot freezes the state in time proportional to its page tables, not to its shards.
func (s *State) Snapshot() *Snapshot {
	s.epoch++
	f := State{Clock: s.Clock, Led: s.Led, Wall: s.Wall, Index: s.Index, Generation: s.Generation, Leader: s.Leader, Term: s.Term, nextToken: s.nextToken,
		Cluster: s.Cluster, tokens: s.tokens, jobs: s.jobs.freeze(), epoch: s.epoch}
	f.nodes = append([]*Node(nil), s.nodes...)
	return &Snapshot{f}
}

// Digest is the sha256 of the snapshot's bytes: equal on every replica that applied the same entries (I10).
func (s *State) Digest() [sha256.Size]byte {
	h := sha256.New()
	_ = s.Snapshot().Write(h) // a hash takes every byte
	return [sha256.Size]byte(h.Sum(nil))
}

// Write streams the snapshot: a head record, then counted records of nodes, join tokens, jobs and their shards.
func (f *Snapshot) Write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<18)
	if _, err := w.WriteString(snapshotMagic); err != nil {
		return err
	}
	e := enc{b: make([]byte, 0, 4096)}
	flush := func(limit int) error {
		if len(e.b) <= limit {
			return nil
		}
		_, err := w.Write(e.b)
		e.b = e.b[:0]
		return err
	}
	e.u64(snapshotVersion)
	e.rec(f.s.encodeHead)
	list(&e, f.s.nodes, func(e *enc, n *Node) { e.rec(n.encode) })
	list(&e, f.s.tokens, func(e *enc, t *JoinToken) { e.rec(t.encode) })
	e.num(f.s.jobs.n)
	for seq := range f.s.jobs.n {
		j := *f.s.jobs.at(seq)
		if j == nil {
			continue
		}
		e.num(seq)
		e.rec(j.encode)
		for i := range j.Stages {
			st := &j.Stages[i]
			for k := range st.shards.n {
				e.rec(st.shards.at(k).encode)
				if err := flush(1 << 16); err != nil {
					return err
				}
			}
		}
		if err := flush(1 << 16); err != nil {
			return err
		}
	}
	e.num(-1)
	if err := flush(0); err != nil {
		return err
	}
	return w.Flush()
}

// Read gives the state of a snapshot. A damaged or newer one gives an error and no state.
func Read(from io.Reader) (*State, error) {
	data, err := io.ReadAll(bufio.NewReaderSize(from, 1<<18))
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return Decode(data)
}

// Decode reads a snapshot from memory.
func Decode(data []byte) (*State, error) {
	if len(data) < len(snapshotMagic) || string(data[:len(snapshotMagic)]) != snapshotMagic {
		return nil, errors.New("read snapshot: not a lanjobs snapshot")
	}
	d := dec{b: data[len(snapshotMagic):]}
	if v := d.u64(); d.err == nil && v != snapshotVersion {
		return nil, fmt.Errorf("read snapshot: %w (snapshot format %d)", ErrUnknownCommand, v)
	}
	s := &State{epoch: 1, specs: map[string]*Spec{}}
	d.rec(s.decodeHead)
	s.nodes = readList(&d, func(d *dec) *Node { n := &Node{}; d.rec(n.decode); return n })
	s.tokens = readList(&d, func(d *dec) *JoinToken { t := &JoinToken{}; d.rec(t.decode); return t })
	if err := s.decodeJobs(&d); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	s.index()
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return s, nil
}

// maxJobSeq bounds what a damaged snapshot may make us allocate: 2^28 jobs are 500 years of one a minute.
const maxJobSeq = 1 << 28

func (s *State) decodeJobs(d *dec) error {
	n := d.num()
	if n < 0 || n > maxJobSeq {
		return errShort
	}
	s.jobs = sparse[*Job](n)
	for last := -1; d.err == nil; {
		seq := d.num()
		if seq < 0 || d.err != nil {
			break
		}
		if seq <= last || seq >= n {
			return errors.New("jobs out of order")
		}
		last = seq
		j := &Job{epoch: s.epoch, Seq: seq}
		var err error
		d.rec(func(d *dec) { err = j.decode(d, s) })
		if err == nil {
			err = s.decodeShards(d, j)
		}
		if err != nil {
			return err
		}
		*s.jobs.mut(seq, s.epoch) = j
	}
	return d.err
}

func (s *State) decodeShards(d *dec, j *Job) error {
	if d.err != nil {
		return d.err
	}
	for i := range j.Stages {
		st := &j.Stages[i]
		n := j.Spec.Stages[i].Shards
		if n > len(d.b) {
			return errShort
		}
		st.shards = newCow[Shard](n, s.epoch)
		for k := 0; k < n && d.err == nil; k++ {
			sh := st.shards.at(k)
			d.rec(sh.decode)
			if sh.Node < 0 || int(sh.Node) >= max(len(s.nodes), 1) || sh.State.Leased() && (sh.Tries == 0 || len(s.nodes) == 0 || st.State != task.StageOpen) {
				return fmt.Errorf("shard %s/%d/%d was on no node", j.ID, i, k)
			}
		}
	}
	return d.err
}
