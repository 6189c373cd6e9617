package leader

import (
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
	"lanjobs/transport"
)

// repeatOrder is after how long a stop order is sent again: the answer that carried it may have been lost.
const repeatOrder = 5 * time.Second

// ordersFor gives a node's stop orders; those sent within the last seconds are left out unless all are asked for.
func (s *sessions) ordersFor(id task.NodeID, all bool) []transport.StopOrder {
	var out []transport.StopOrder
	s.cfg.Log.Read(func(st *fsm.State) {
		st.LeasesOf(id, func(l *fsm.Lease) {
			if reason, grace, ok := plan.Order(st, st.Clock, l); ok {
				out = append(out, transport.StopOrder{Token: l.Token, Reason: reason, Grace: grace})
			}
		})
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(out) == 0 {
		if n := s.nodes[id]; n != nil {
			n.orders = nil
		}
		return nil
	}
	n, now := s.session(id), s.cfg.Clock.Awake()
	fresh, orders := out[:0], make(map[task.Token]time.Duration, len(out)) // those of attempts that are over are left out
	for _, o := range out {
		at, sent := n.orders[o.Token]
		if all || !sent || now-at >= repeatOrder {
			at = now
			fresh = append(fresh, o)
		}
		orders[o.Token] = at
	}
	n.orders = orders
	return fresh
}

// sendOrders answers the parked polls of nodes that must stop something.
func (s *sessions) sendOrders() {
	s.mu.Lock()
	var ids []task.NodeID
	for id, n := range s.nodes {
		if n.poll != nil {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	for _, id := range ids {
		orders := s.ordersFor(id, false)
		if len(orders) == 0 {
			continue
		}
		s.mu.Lock()
		if n := s.nodes[id]; n.poll != nil && !n.poll.granting {
			n.poll.reply <- &transport.PollReply{Orders: orders}
			n.poll = nil
		}
		s.mu.Unlock()
	}
}
