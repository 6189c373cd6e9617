package leader

import (
	"context"
	"encoding/json"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// sleep takes a node's word that its machine goes to sleep (R16): it is recorded, so that nothing is placed there until the node
// registers again, and what was granted to it and never reached it is free at once.
func (t *term) sleep(ctx context.Context, from task.NodeID, q *transport.SleepRequest) (*transport.Ack, error) {
	if !t.registered(from, q.Incarnation) {
		return &transport.Ack{}, nil // it has started again since: this is its past
	}
	t.sessions.dismiss(from)
	c := &fsm.SetOnline{Node: from, Reason: task.ReasonAsleep}
	t.cfg.Log.Read(func(s *fsm.State) { c.Caring = s.Members() >= fsm.LevelCare })
	if _, err := t.commit(ctx, c); err != nil {
		return nil, err
	}
	// After the commit: a grant that was on its way before is in the ledger now, and there is none after it.
	lost := &fsm.Report{Node: from}
	for _, a := range t.unknownTo(from, q.Holding) {
		lost.Reports = append(lost.Reports, task.Report{Job: a.Job, Stage: a.Stage, Shard: a.Shard, Token: a.Token,
			Outcome: task.Outcome{End: task.EndDrained, Message: task.WentToSleep}})
	}
	if len(lost.Reports) > 0 {
		if _, err := t.commit(ctx, lost); err != nil {
			return nil, err
		}
	}
	return &transport.Ack{}, nil
}

// online tells whether the ledger has a node as being here.
func (t *term) online(id task.NodeID) (online bool) {
	t.cfg.Log.Read(func(s *fsm.State) {
		n := s.Node(id)
		online = n != nil && n.Online
	})
	return online
}

// comeBack records that a node is back that was thought to be asleep or was silent, with how long it slept. handled tells that this
// says all that a registration would: the ledger has this start of the node, and the node as it is. keep is then what it
// still holds.
func (t *term) comeBack(ctx context.Context, from task.NodeID, q *transport.RegisterRequest) (keep []task.Token, handled bool, err error) {
	away, same, caring := false, false, false
	t.cfg.Log.Read(func(s *fsm.State) {
		n := s.Node(from)
		if n == nil || n.Gone != "" || n.Incarnation != q.Incarnation {
			return
		}
		away, same = !n.Online, sameInfo(n.Info, q.Info)
		caring = min(s.Members(), q.Info.Level) >= fsm.LevelCare
	})
	if !away {
		return nil, false, nil
	}
	c := &fsm.SetOnline{Node: from, Online: true, Caring: caring}
	if q.Slept > 0 {
		c.Reason = "slept " + sleepLength(q.Slept.Duration())
	}
	if _, err := t.commit(ctx, c); err != nil || !same {
		return nil, false, err
	}
	held := map[task.Token]bool{}
	t.cfg.Log.Read(func(s *fsm.State) { s.LeasesOf(from, func(l *fsm.Lease) { held[l.Token] = true }) })
	for _, tok := range q.Held {
		if held[tok] {
			keep = append(keep, tok)
		}
	}
	return keep, true, nil
}

// sameInfo compares what a node says of itself with what the ledger has of it. Whether it may vote is the cluster's word.
func sameInfo(a, b task.NodeInfo) bool {
	b.Voter = a.Voter
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// sleepLength is 7h12m, 12m, 40s.
func sleepLength(d time.Duration) string {
	if d >= time.Minute {
		d = d.Round(time.Minute)
		text := d.String()
		return text[:len(text)-len("0s")]
	}
	return d.Round(time.Second).String()
}
