package leader

import (
	"context"
	"sync"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// rouseTime is how long a machine may take to send the packets.
const rouseTime = 2 * time.Second

// Roused is what one machine did to wake another.
type Roused struct {
	Node task.NodeID
	Sent []string // broadcast addresses
	Err  error
}

// Rouse has machines send the packets that wake another one by its network cards: each reaches only the networks that it is in, and
// nobody knows in which of them the sleeper is. Answers come in the order of from.
func Rouse(ctx context.Context, clock task.Clock, caller transport.Caller, from []task.NodeID, macs []string) []Roused {
	ctx, cancel := transport.WithTimeout(ctx, clock, rouseTime)
	defer cancel()
	out := make([]Roused, len(from))
	var calls sync.WaitGroup
	for i, id := range from {
		calls.Go(func() {
			var r transport.WakeReply
			err := caller.Call(ctx, id, transport.MethodWake, &transport.WakeRequest{MACs: macs}, &r)
			out[i] = Roused{Node: id, Sent: r.Sent, Err: err}
		})
	}
	calls.Wait()
	return out
}

// rouse wakes the machines that schedules want awake. Only the writer calls it; the packets go out beside it.
func (t *term) rouse(ctx context.Context) {
	if t.cfg.Caller == nil {
		return
	}
	awake := t.cfg.Clock.Awake()
	macs := map[task.NodeID][]string{}
	var ids, from []task.NodeID
	t.wakeDue = 0
	t.cfg.Log.Read(func(s *fsm.State) {
		wanted, wait, ok := t.timetable.Wakes(s, t.wall(s), awake)
		if ok {
			t.wakeDue = awake + max(wait, time.Second)
		}
		ids = wanted
		for _, n := range s.Nodes() {
			if n.Gone == "" && n.Online {
				from = append(from, n.Info.ID)
			}
			macs[n.Info.ID] = n.Info.MACs
		}
	})
	for _, id := range ids {
		if len(macs[id]) == 0 {
			t.cfg.Slog.Warn("a schedule wants a machine woken whose network cards are not known", "node", id)
			continue
		}
		t.batches.Go(func() {
			sent := 0
			for _, r := range Rouse(ctx, t.cfg.Clock, t.cfg.Caller, from, macs[id]) {
				if r.Err == nil {
					sent++
				}
			}
			t.cfg.Slog.Info("waking a machine for a schedule", "node", id, "sent_from", sent)
		})
	}
}
