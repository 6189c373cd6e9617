package node

import (
	"context"
	"errors"
	"fmt"
	"os"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// errOver: this machine goes over to a later history and must be built anew.
type errOver struct {
	to   transport.ClusterInfo
	from string // who told it
}

func (e *errOver) Error() string {
	return fmt.Sprintf("generation %d of the cluster, says %s", transport.GenerationNumber(e.to.Generation), e.from)
}

// mayGoOver tells whether a later history is one that a machine may go over to by itself: it lives, and there is no doubt that it
// is the later one.
func mayGoOver(own uint64, r *transport.HistoryReply) bool {
	return r.Leader != "" && transport.GenerationNumber(r.Cluster.Generation) > transport.GenerationNumber(own)
}

// goOver writes down that this machine is of a later history, which is the moment from which on it counts: its log of the
// earlier one is set aside when the stores are opened next. Its id, its work and its settings stay.
func goOver(cfg Config, over *errOver) error {
	store, err := openLocalStore(cfg.DataDir) // refuses a folder in use
	if err != nil {
		return err
	}
	defer store.Close()
	identity, err := transport.LoadIdentity(cfg.DataDir)
	if err != nil {
		return err
	}
	from := identity.Cluster.Generation
	if err := identity.Adopt(over.to, identity.Cert); err != nil {
		return fmt.Errorf("go over to %w: %w", over, err)
	}
	// Positions in the audit log are entries of one history; those of the next would be taken for replays.
	name := fmt.Sprintf("%s.generation-%d", auditDir(cfg), transport.GenerationNumber(from))
	aside := freePath(func(n int) string { // a crash before the identity is saved has this done twice
		if n == 1 {
			return name
		}
		return fmt.Sprintf("%s.%d", name, n)
	})
	if err := os.Rename(auditDir(cfg), aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("go over to %w: %w", over, err)
	}
	cfg.Log.Warn("the cluster was recovered or restored while this machine was away: it goes over to the later history, and its log comes from the others",
		"from", transport.GenerationNumber(from), "to", transport.GenerationNumber(over.to.Generation), "told_by", over.from)
	return identity.Save(cfg.DataDir)
}

// historyHere answers MethodHistory.
func (m *machine) historyHere(_ context.Context, from task.NodeID, _ *transport.HistoryRequest) (*transport.HistoryReply, error) {
	core, begun := m.built.Load(), false
	r := &transport.HistoryReply{Cluster: m.identity.Cluster, Leader: core.LeaderID()}
	if m.trouble.problem() != nil {
		r.Leader = "" // its Raft has ended or does so
	}
	r.LastTerm, r.LastIndex = core.Newest()
	core.Read(func(s *fsm.State) {
		n := s.Node(from)
		r.Member, r.Gone = n != nil && n.Gone == "", goneHere(s)
		begun = s.Cluster.ID == m.identity.Cluster.ID && max(s.Generation, 1) >= transport.GenerationNumber(m.identity.Cluster.Generation)
	})
	if !begun || !core.HasCopy() { // its word on who is a member would be worth nothing
		return nil, task.NewProblem(task.ErrNoLeader, "this machine has no copy of the cluster's state yet", "")
	}
	return r, nil
}

// asOver gives what buildMachine found if this machine must go over first.
func asOver(err error) (*errOver, bool) { return errors.AsType[*errOver](err) }
