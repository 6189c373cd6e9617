package fsm

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

// Snapshot is a frozen state: Write may run while later entries are applied.
type Snapshot struct{ s State }

// snapshotMagic and the version behind it open every snapshot.
const (
	snapshotMagic   = "LANJOBS\x01"
	snapshotVersion = 3 // also the highest level of state.level; a state that needs less is written in the form of 1
)

// Snapshot freezes the state in time proportional to its page tables, not to its shards.
func (s *State) Snapshot() *Snapshot {
	s.epoch++
	f := State{Clock: s.Clock, Led: s.Led, Wall: s.Wall, Index: s.Index, Generation: s.Generation, Leader: s.Leader, Term: s.Term, nextToken: s.nextToken,
		Cluster: s.Cluster, tokens: s.tokens, clients: s.clients, jobs: s.jobs.freeze(), keys: s.keys.freeze(), acts: s.acts}
	f.nodes = append([]*Node(nil), s.nodes...)
	f.schedules = append([]*Schedule(nil), s.schedules...)
	for _, q := range s.queues {
		f.queues = append(f.queues, &queue{Queue: q.Queue})
	}
	return &Snapshot{f}
}

// Write streams the snapshot: a head record, then counted records of nodes, join tokens, jobs and their shards; from version 2
// on also of queues, schedules, acts and shard keys, from version 3 on of clients.
func (f *Snapshot) Write(to io.Writer) error { return f.s.write(to) }

// Digest is the sha256 of the snapshot's bytes: equal on every replica that applied the same entries (I10). It only reads.
func (s *State) Digest() [sha256.Size]byte {
	h := sha256.New()
	_ = s.write(h) // a hash takes every byte
	return [sha256.Size]byte(h.Sum(nil))
}

func (s *State) write(to io.Writer) error {
	w := bufio.NewWriterSize(to, 1<<18)
	e := enc{b: make([]byte, 0, 1<<17), level: s.level()}
	var err error
	flush := func(limit int) bool {
		if len(e.b) > limit && err == nil {
			_, err = w.Write(e.b)
			e.b = e.b[:0]
		}
		return err == nil
	}
	e.b = append(e.b, snapshotMagic...)
	e.u64(uint64(e.level))
	e.rec(s.encodeHead)
	list(&e, s.nodes, func(e *enc, n *Node) { e.rec(n.encode) })
	list(&e, s.tokens, func(e *enc, t *JoinToken) { e.rec(t.encode) })
	e.num(s.jobs.n)
	specs := map[*Spec]int{}
	s.Jobs(func(j *Job) bool {
		e.num(j.Seq)
		e.rec(func(e *enc) { j.encode(e, specs) })
		for i := range j.Stages {
			st := &j.Stages[i]
			for k := range st.shards.n {
				e.rec(st.shards.at(k).encode)
				if !flush(1 << 16) {
					return false
				}
			}
		}
		return flush(1 << 16)
	})
	e.num(-1)
	if e.level > 1 {
		s.encodeMore(&e, specs, func() bool { return flush(1 << 16) })
	}
	if e.level > 2 {
		list(&e, s.clients, func(e *enc, c *Client) { e.rec(c.encode) })
	}
	if !flush(0) {
		return err
	}
	return w.Flush()
}

// Read gives the state of a snapshot. A damaged or newer one gives an error and no state.
func Read(from io.Reader) (*State, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return Decode(data)
}

// Decode reads a snapshot from memory. The state keeps nothing of data.
func Decode(data []byte) (*State, error) {
	s, err := decode(data)
	if err == nil {
		s.index()
		err = s.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return s, nil
}

func decode(data []byte) (*State, error) {
	if len(data) < len(snapshotMagic) || string(data[:len(snapshotMagic)]) != snapshotMagic {
		return nil, errors.New("not a lanjobs snapshot")
	}
	d := dec{b: data[len(snapshotMagic):], words: map[string]string{}}
	v := d.u64()
	if d.err == nil && (v < 1 || v > snapshotVersion) {
		return nil, fmt.Errorf("%w (snapshot format %d)", ErrUnknownCommand, v)
	}
	d.level = int(v)
	s := &State{epoch: 1, specs: map[string]*Spec{}, keys: newCowFrom[KeyProof](0, 0)}
	d.rec(s.decodeHead)
	s.nodes = readList(&d, func(d *dec) *Node { n := &Node{}; d.rec(n.decode); return n })
	s.tokens = readList(&d, func(d *dec) *JoinToken { t := &JoinToken{}; d.rec(t.decode); return t })
	var specs []*Spec
	err := s.decodeJobs(&d, &specs)
	if err == nil && d.level > 1 {
		err = s.decodeMore(&d, &specs)
	}
	if err == nil && d.level > 2 {
		s.clients = readList(&d, func(d *dec) *Client { c := &Client{}; d.rec(c.decode); return c })
		err = d.err
	}
	return s, err
}

func (s *State) decodeJobs(d *dec, specs *[]*Spec) error {
	n := d.num()
	if n < 0 || n > maxJobSeq {
		return errShort
	}
	for last := -1; ; {
		seq := d.num()
		if d.err != nil {
			return d.err
		}
		if last < 0 {
			s.jobs = newCowFrom[*Job](n, n)
		}
		if seq < 0 {
			return nil
		}
		if seq <= last || seq >= n || last < 0 && n-seq > maxJobSpan {
			return errors.New("jobs out of order")
		}
		if last < 0 {
			s.jobs = newCowFrom[*Job](n, seq)
		}
		last = seq
		j := &Job{epoch: s.epoch, Seq: seq}
		var err error
		d.rec(func(d *dec) { err = j.decode(d, s, specs) })
		if err == nil {
			err = s.decodeShards(d, j)
		}
		if err != nil {
			return err
		}
		*s.jobs.mut(seq, s.epoch) = j
	}
}

func (s *State) decodeShards(d *dec, j *Job) error {
	for i := range j.Stages {
		st := &j.Stages[i]
		n := j.Spec.Stages[i].Shards
		if d.level > 1 {
			n = st.shards.n
		}
		if n < 0 || n > len(d.b) { // each takes a byte at least
			return errShort
		}
		st.shards = newCow[Shard](n)
		for k := range n {
			var sh Shard
			d.rec(func(d *dec) { sh.decode(d, len(s.nodes)) })
			if d.err != nil {
				return d.err
			}
			if sh != (Shard{}) {
				*st.shards.mut(k, s.epoch) = sh
			}
		}
	}
	return d.err
}
