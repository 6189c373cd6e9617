package worker

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lanjobs/task"
)

// play makes a move, and looks at the world.
func (w *smallWorld) play(code byte) {
	mv, m := moves[code%64], w.machine(code)
	if mv.fault {
		w.spent++
	}
	mv.do(w, m)
	w.check()
}

// machine is whose move a code is: 0 the world's, 64 and 128 those of the machines.
func (w *smallWorld) machine(code byte) *smallMachine {
	if code < 64 {
		return nil
	}
	return w.machines[code/64-1]
}

// describe tells a history in words.
func describe(path []byte) string {
	var b strings.Builder
	for _, code := range path {
		if code >= 64 {
			fmt.Fprintf(&b, "  m%d: ", code/64-1)
		} else {
			b.WriteString("  ")
		}
		b.WriteString(moves[code%64].name + "\n")
	}
	return b.String()
}

// afterwards is for how many ticks a history goes on after the shard was granted again.
const afterwards = 1

// bounds of an exploration.
type bounds struct {
	ticks, faults          int
	leaderRate, holderRate float64 // of the clocks
}

// history is a way to a world, and the moves that it may go on with.
type history struct{ path, open []byte }

// explore plays every history within bounds and gives how many different worlds there are and the first bad history.
func explore(b bounds) (worlds int, bad []byte, faults []string) {
	seed := maphash.MakeSeed()
	start := b.world(nil)
	seen := map[uint64]bool{maphash.Bytes(seed, start.shape()): true}
	for todo := []history{{nil, b.open(start)}}; len(todo) > 0; { // depth first: few are kept
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, code := range h.open {
			next := append(slices.Clip(h.path), code)
			w := b.world(next)
			if len(w.faults) > 0 {
				return len(seen), next, w.faults
			}
			if key := maphash.Bytes(seed, w.shape()); !seen[key] {
				seen[key] = true
				todo = append(todo, history{next, b.open(w)})
			}
		}
	}
	return len(seen), nil, nil
}

// world is what a history leads to, from a machine that was just granted the shard, and another that has nothing.
func (b bounds) world(path []byte) *smallWorld {
	w := newSmallWorld(b.leaderRate, b.holderRate)
	m := w.machines[0]
	m.poll = &smallPoll{incarnation: 1, sent: w.now(m)}
	w.answerPoll(m)
	for _, c := range path {
		w.play(c)
	}
	return w
}

// open gives the moves that a world may go on with; none if the shard is done and nothing runs.
func (b bounds) open(w *smallWorld) (out []byte) {
	if w.over() {
		return nil
	}
	for i, mv := range moves {
		if mv.fault && w.spent >= b.faults || i == 0 && w.real >= min(b.ticks, w.limit) {
			continue
		}
		for _, code := range []byte{0, 64, 128} {
			if mv.can(w, w.machine(code)) {
				out = append(out, code+byte(i))
			}
		}
	}
	return out
}

// over tells whether nothing is left to see: whatever runs does so under the newest lease, and nothing on its way names an older
// one. If the shard is not done, the world goes on as the first one did, under another token (I3).
func (w *smallWorld) over() bool {
	done := w.shard().State == task.ShardSucceeded
	if !done && (w.grants < 2 || w.shard().State == task.ShardPending) {
		return false
	}
	old := func(t task.Token) bool { return t < w.lastToken || done }
	for _, m := range w.machines {
		for t := range m.processes {
			if old(t) {
				return false
			}
		}
		if slices.ContainsFunc(m.ends, func(r task.Report) bool { return old(r.Token) }) || len(m.strays) > 0 || m.register != nil ||
			!done && slices.ContainsFunc(m.renewals, func(r *smallRenewal) bool { return slices.ContainsFunc(r.tokens, old) }) {
			return false
		}
	}
	return true
}

// shape is everything that decides how a world goes on.
func (w *smallWorld) shape() []byte {
	var b []byte
	num := func(vs ...int64) {
		for _, v := range vs {
			b = binary.AppendVarint(b, v)
		}
	}
	yes := func(vs ...bool) {
		for _, v := range vs {
			if v {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		}
	}
	tokens := func(ts []task.Token) {
		num(int64(len(ts)))
		for _, t := range ts {
			num(int64(t))
		}
	}
	s := w.shard()
	num(int64(w.real), int64(w.spent), int64(w.measured), int64(w.ledger.Clock), int64(s.State), int64(s.Token), int64(s.Node), int64(s.Due), int64(s.Tries), int64(w.lastToken), int64(w.succeeded))
	for _, m := range w.machines {
		now := w.now(m)
		n := w.ledger.Node(m.id)
		num(int64(n.Incarnation), int64(w.ledger.Held(m.id)), int64(m.incarnation))
		yes(m.frozen, m.book.registered, m.book.announce, m.poll != nil, m.register != nil)
		if p := m.poll; p != nil {
			num(int64(p.incarnation), int64(p.sent))
			tokens(p.holding)
			yes(p.reply != nil)
			if p.reply != nil {
				yes(p.reply.Unregistered)
				for _, a := range p.reply.Assignments {
					num(int64(a.Token))
					yes(a.MustRenew)
				}
			}
		}
		if r := m.register; r != nil {
			num(int64(r.command.Incarnation))
			tokens(r.command.Held)
			tokens(r.reply)
			yes(r.handled)
		}
		num(int64(len(m.renewals)))
		for _, r := range m.renewals {
			num(int64(r.sent), int64(r.incarnation))
			tokens(r.tokens)
			yes(r.released, r.reply != nil)
			if r.reply != nil {
				yes(r.reply.Unregistered)
				tokens(r.reply.Lost)
				num(int64(len(r.reply.Renewed)))
			}
		}
		num(int64(len(m.book.attempts)))
		for _, a := range m.book.sorted() {
			inFlight := slices.IndexFunc(m.renewals, func(r *smallRenewal) bool { return r.id == a.flight })
			num(int64(a.Token), int64(a.phase), int64(a.deadlines.End), int64(inFlight), int64(a.stop.kill))
			if !a.live() { // else nothing asks for it any more
				num(int64(a.sent), int64(a.giveUp))
			}
			num(max((int64(a.due.Sub(now))+int64(smallStep)-1)/int64(smallStep), 0)) // retries vary by chance, and count from tick to tick
			yes(a.MustRenew, a.acked, a.fenced, a.lapsed, a.killed, a.stop.told)
		}
		num(int64(len(m.processes)))
		for _, t := range slices.Sorted(maps.Keys(m.processes)) {
			num(int64(t), int64(m.processes[t].kill-m.processes[t].deadlines.Kill))
		}
		num(int64(len(m.ends)))
		for _, r := range m.ends {
			num(int64(r.Token))
			b = append(b, r.Outcome.End...)
		}
		num(int64(len(m.strays)))
		for _, c := range m.strays {
			b = fmt.Appendf(b, "%T%v", c, c)
		}
	}
	return b
}

// TestEveryHistoryOfASmallWorld plays all histories of one lease and its successor, in which messages take any time: without a
// fault to the end of the lease, with faults for as long as there is time. No choice is left to chance.
func TestEveryHistoryOfASmallWorld(t *testing.T) {
	all := []bounds{
		{ticks: 4, faults: 0, leaderRate: 1.1, holderRate: 1},
		{ticks: 2, faults: 1, leaderRate: 1.1, holderRate: 1},
	}
	if n, err := strconv.Atoi(os.Getenv("LANJOBS_SEEDS")); err == nil && n >= 100 {
		all = []bounds{
			{ticks: 4, faults: 1, leaderRate: 1.1, holderRate: 1},
			{ticks: 4, faults: 0, leaderRate: 1, holderRate: 1.1},
			{ticks: 2, faults: 2, leaderRate: 1.1, holderRate: 1},
		}
	}
	for _, b := range all {
		t.Run(fmt.Sprintf("%d ticks, %d faults, clocks %v to %v", b.ticks, b.faults, b.leaderRate, b.holderRate), func(t *testing.T) {
			t.Parallel()
			worlds, bad, faults := explore(b)
			if bad != nil {
				t.Fatalf("%s\n%s", strings.Join(faults, "\n"), describe(bad))
			}
			t.Logf("%d worlds", worlds)
			if worlds < 3000 {
				t.Error("the world hardly moves")
			}
		})
	}
}
