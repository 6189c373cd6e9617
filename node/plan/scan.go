package plan

import (
	"math"

	"lanjobs/fsm"
)

// A plan runs for each batch, thousands of times a second, over up to 100,000 ready jobs. It stops where no room is left, as a
// rule after a few. Where there is room that the first jobs cannot use, because they wait for another machine, it goes on,
// but not through all of them: it looks at the first maxHead in vain, then at maxRest beyond those, which begin where the last
// plan ended, and asks to be called again (Flight.More) until all have had their turn.
const (
	maxHead = 512
	maxRest = 512
	// maxOwn bounds both while only the leader's own machine has room: of what is ready it takes only what no other fits.
	maxOwn = 64
)

// scan is where the walk over the ready jobs stands.
type scan struct {
	more  bool
	at    mark   // where the rest begins in the next plan
	since uint64 // State.Index when the round over the rest began
}

// mark is a place in the order of ready jobs.
type mark struct{ priority, seq int }

// after tells whether a place comes after another.
func (m mark) after(o mark) bool {
	return m.priority < o.priority || m.priority == o.priority && m.seq > o.seq
}

// first is the place before all.
var first = mark{math.MaxInt, 0}

// scan walks over the ready jobs and grants what it can.
func (p *placer) scan() {
	sc := &p.Flight.scan
	sc.more = false
	head, all := p.walk(first, maxHead)
	if all {
		*sc = scan{more: sc.more}
		return
	}
	from := sc.at
	if from == (mark{}) || !from.after(head) {
		from, sc.since = head, p.State.Index
	}
	sc.at, all = p.walk(from, maxRest)
	if all {
		sc.more = sc.more || sc.since != p.State.Index // something has changed since the round began
		sc.at = mark{}
		return
	}
	sc.more = true
}

// walk looks at jobs from a place on until no room is left, or limit were looked at in vain; all tells which. It gives the
// place after the last one.
func (p *placer) walk(from mark, limit int) (end mark, all bool) {
	all, priority, vain := true, math.MaxInt, 0
	p.State.EachReadyFrom(from.priority, from.seq, func(j *fsm.Job) fsm.Next {
		if j.Priority != priority {
			p.share()
			priority = j.Priority
		}
		if p.free <= 0 {
			if p.own <= 0 {
				return fsm.NextNone
			}
			limit = min(limit, maxOwn)
		}
		if vain >= limit {
			all, end = false, mark{j.Priority, j.Seq}
			return fsm.NextNone
		}
		if p.queueOf(j).room <= 0 {
			return fsm.NextQueue
		}
		c := p.begin(j)
		if c.active > 0 { // others may come first
			p.sharing.push(c)
			return fsm.NextJob
		}
		if !p.grantOne(c) {
			vain++
			return fsm.NextJob
		}
		p.sharing.push(c)
		return fsm.NextJob
	})
	p.share()
	return end, all
}
