package fsm

import (
	"errors"

	"lanjobs/task"
)

// What a snapshot of level 2 has besides.

// encodeMore writes queues, schedules, acts and shard keys; flush hands on what is written, false = stop.
func (s *State) encodeMore(e *enc, specs map[*Spec]int, flush func() bool) {
	list(e, s.queues, func(e *enc, q *queue) { e.rec(q.encode) })
	list(e, s.schedules, func(e *enc, sc *Schedule) {
		e.rec(func(e *enc) { sc.encode(e, specs) })
		flush()
	})
	list(e, s.acts, func(e *enc, a act) {
		e.rec(func(e *enc) { e.str(string(a.request)); e.str(string(a.job)); e.i64(int64(a.until)) })
	})
	s.keys.each(func(_ int, p *KeyProof) bool {
		if p.Key == "" {
			return true
		}
		e.bool(true)
		e.rec(func(e *enc) { e.str(p.Key); e.str(string(p.Job)); e.i64(int64(p.Until)) })
		return flush()
	})
	e.bool(false)
}

func (s *State) decodeMore(d *dec, specs *[]*Spec) (err error) {
	s.queues = readList(d, func(d *dec) *queue { q := &queue{}; d.rec(q.decode); return q })
	s.schedules = readList(d, func(d *dec) *Schedule {
		sc := &Schedule{}
		d.rec(func(d *dec) {
			if e := sc.decode(d, s, specs); e != nil && err == nil {
				err = e
			}
		})
		return sc
	})
	s.acts = readList(d, func(d *dec) (a act) {
		d.rec(func(d *dec) { a = act{task.RequestID(d.str()), task.JobID(d.str()), task.Millis(d.i64())} })
		return a
	})
	for err == nil && d.err == nil && d.bool() {
		var p KeyProof
		d.rec(func(d *dec) { p = KeyProof{Key: d.str(), Job: task.JobID(d.word()), Until: task.Millis(d.i64())} })
		if p.Key == "" {
			d.fail()
			break
		}
		s.keys.push(p, s.epoch)
	}
	switch {
	case err != nil:
		return err
	case d.err != nil:
		return d.err
	}
	for i := 1; i < len(s.queues); i++ {
		if s.queues[i].Name <= s.queues[i-1].Name {
			return errors.New("queues out of order")
		}
	}
	return nil
}

func (q *queue) encode(e *enc) {
	e.str(q.Name)
	e.num(q.Max)
	e.bool(q.Paused)
	e.str(string(q.Balance))
	e.str(q.By)
}

func (q *queue) decode(d *dec) {
	q.Queue = Queue{Name: d.str(), Max: d.num(), Paused: d.bool(), Balance: task.Balance(d.str()), By: d.str()}
}

func (sc *Schedule) encode(e *enc, specs map[*Spec]int) {
	e.str(sc.Name)
	sc.Spec.encode(e, specs)
	e.str(sc.By)
	e.i64(sc.Created)
	e.bool(sc.Paused)
	e.i64(sc.LastDue)
	e.str(sc.LastNominal)
	e.str(string(sc.LastJob))
	list(e, sc.Recent, func(e *enc, id task.JobID) { e.str(string(id)) })
	e.u64(sc.Fired)
	e.u64(sc.Missed)
	e.u64(sc.Skipped)
	e.bool(sc.Waiting != nil)
	if w := sc.Waiting; w != nil {
		e.rec(func(e *enc) { e.str(w.Nominal); e.i64(w.Due); e.str(string(w.Job)); e.str(w.By) })
	}
}

func (sc *Schedule) decode(d *dec, s *State, specs *[]*Spec) error {
	sc.Name = d.str()
	spec, err := s.decodeSpec(d, specs)
	if err != nil {
		return err
	}
	if spec.Schedule == nil {
		return errors.New("schedule " + sc.Name + " has no times")
	}
	spec.users++
	sc.Spec, sc.By, sc.Created, sc.Paused, sc.LastDue, sc.LastNominal, sc.LastJob = spec, d.str(), d.i64(), d.bool(), d.i64(), d.str(), task.JobID(d.str())
	sc.Recent = readList(d, func(d *dec) task.JobID { return task.JobID(d.str()) })
	sc.Fired, sc.Missed, sc.Skipped = d.u64(), d.u64(), d.u64()
	if d.bool() {
		w := &Occurrence{}
		d.rec(func(d *dec) { *w = Occurrence{Nominal: d.str(), Due: d.i64(), Job: task.JobID(d.str()), By: d.str()} })
		sc.Waiting = w
	}
	return d.err
}

func (x *Extra) encodeMore(e *enc) {
	e.bool(x.Range != nil)
	if x.Range != nil {
		e.i64(x.Range.Start)
		e.i64(x.Range.End)
	}
	e.bool(x.HasCursor)
	e.i64(x.Cursor)
	e.bool(x.SplitWanted)
	e.str(string(x.SkippedBy))
}

func (x *Extra) decodeMore(d *dec) {
	if d.bool() {
		x.Range = &task.ShardRange{Start: d.i64(), End: d.i64()}
	}
	x.HasCursor, x.Cursor, x.SplitWanted, x.SkippedBy = d.bool(), d.i64(), d.bool(), task.JobID(d.word())
}
