package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// How the leader keeps the voters right.
const (
	seatsEvery     = 2 * time.Second
	seatsPing      = time.Second
	seatsTimeout   = 5 * time.Second // of one configuration change
	caughtUpWithin = 64              // entries behind the leader's last
	retryFounding  = time.Second
)

// keepSeats compares, while this node leads, who votes with who should, and takes one step at a time.
func (c *Core) keepSeats(ctx context.Context) {
	started := c.parts.Clock.Awake()
	reached := map[task.NodeID]time.Duration{}
	for {
		seats := c.lookAround(ctx, started, reached)
		step := nextSeat(seats)
		if step.Act != seatNone && ctx.Err() == nil && !c.leaving.Load() {
			if err := c.takeStep(ctx, step); err != nil {
				c.parts.Log.Warn("voters could not be changed", "step", string(step.Act), "node", step.ID, "error", err)
			} else {
				c.parts.Log.Info("voters changed", "step", string(step.Act), "node", step.ID)
				continue
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		case <-c.parts.Clock.After(seatsEvery):
		}
	}
}

// lookAround asks every machine that has or may get a log how far it is.
func (c *Core) lookAround(ctx context.Context, started time.Duration, reached map[task.NodeID]time.Duration) []seat {
	seats := map[task.NodeID]*seat{}
	for _, s := range c.Servers() {
		id := task.NodeID(s.ID)
		seats[id] = &seat{ID: id, Member: true, Voter: s.Suffrage == raft.Voter, Self: id == c.parts.Self}
	}
	c.ledger.Read(func(s *fsm.State) {
		for _, n := range s.Nodes() {
			id := n.Info.ID
			may := n.Gone == "" && !n.WorkerOnly && n.Info.Voter && n.Incarnation > 0
			if seats[id] == nil && may && n.Online {
				seats[id] = &seat{ID: id}
			}
			if seats[id] != nil {
				seat := seats[id]
				seat.May, seat.Seat, seat.Laptop, seat.Presence, seat.Draining = may, n.Care.Seat, n.Info.Laptop, n.Presence(s.Led), n.Draining
			}
		}
	})
	if s := seats[c.parts.Self]; s != nil {
		s.May, s.Reached, s.CaughtUp = true, true, true
	}
	c.pingAll(ctx, seats)
	now := c.parts.Clock.Awake()
	out := make([]seat, 0, len(seats))
	for _, s := range seats {
		if s.Reached {
			reached[s.ID] = now
		}
		last := started
		if at, ok := reached[s.ID]; ok {
			last = at
		}
		s.AwayMs = task.MillisOf(now - last)
		out = append(out, *s)
	}
	return out
}

func (c *Core) pingAll(ctx context.Context, seats map[task.NodeID]*seat) {
	mine := c.raft.LastIndex()
	var pings sync.WaitGroup
	for _, s := range seats {
		if s.Self {
			continue
		}
		pings.Go(func() {
			ask, cancel := transport.WithTimeout(ctx, c.parts.Clock, seatsPing)
			defer cancel()
			var r transport.PingReply
			if err := c.parts.Caller.Call(ask, s.ID, transport.MethodPing, &transport.PingRequest{}, &r); err == nil {
				s.Reached = true
				s.CaughtUp = r.LastIndex > 0 && r.LastIndex+caughtUpWithin >= mine
			}
		})
	}
	pings.Wait()
}

// takeStep changes Raft's configuration; server id and address are both the UUID, so no address is ever in it (R2).
func (c *Core) takeStep(ctx context.Context, step seatChange) error {
	id, addr := raft.ServerID(step.ID), raft.ServerAddress(step.ID)
	var f raft.IndexFuture
	switch step.Act {
	case seatAdd:
		f = c.raft.AddNonvoter(id, addr, 0, seatsTimeout)
	case seatPromote:
		f = c.raft.AddVoter(id, addr, 0, seatsTimeout)
	case seatYield:
		return c.handOverTo(ctx, step.ID)
	case seatDemote:
		f = c.raft.DemoteVoter(id, 0, seatsTimeout)
	default:
		f = c.raft.RemoveServer(id, 0, seatsTimeout)
	}
	return waitChange(ctx, c.parts.Clock, c.raft, f, seatsTimeout)
}

// PrepareLeave makes sure that the cluster goes on without this node: a sole voter gives a stand-by that is up to date its
// vote and then the lead. A cluster of one has nobody to hand over to, and that is no error.
func (c *Core) PrepareLeave(ctx context.Context) error {
	if c.raft == nil || !c.Leads() {
		return nil
	}
	c.leaving.Store(true)
	seats := c.lookAround(ctx, 0, map[task.NodeID]time.Duration{})
	others, voters := 0, 0
	for _, s := range seats {
		if s.Member && !s.Self {
			others++
			if s.Voter {
				voters++
			}
		}
	}
	if others == 0 {
		return nil
	}
	if voters == 0 {
		next := slices.IndexFunc(seats, seat.promotable)
		if next < 0 {
			c.leaving.Store(false)
			return task.NewProblem(task.ErrConflict, "this machine has the only vote, and no other machine is up to date to take it",
				"Wake another one and wait until lanjobs status shows it ready. To end the cluster with this machine: lanjobs leave --force")
		}
		if err := c.takeStep(ctx, seatChange{seatPromote, seats[next].ID}); err != nil {
			c.leaving.Store(false)
			return err
		}
	}
	return c.HandOver(ctx)
}

// Stay takes back what a leave that did not come about has begun: this node looks after the seats again if it leads, and takes work.
func (c *Core) Stay() {
	c.leaving.Store(false)
	c.leader.GoOn()
	c.worker.Reopen()
}
