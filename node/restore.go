package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// RestoreBackup makes the node of a data folder, which does not run, the first and only voter of a cluster as a backup has it:
// under a new id, in a new generation. plain is what SealBackup was given. Not all that the backup would let in is let in again,
// see withdraw.
func RestoreBackup(ctx context.Context, cfg Config, plain []byte, how RestoreHow) (*transport.RestoreView, error) {
	if err := cfg.Validate(); err != nil {
		return nil, task.NewProblem(task.ErrInvalid, err.Error(), "")
	}
	head, state, err := ReadBackup(plain)
	if err != nil {
		return nil, err
	}
	addr, err := listenAddr(cfg, Settings{})
	if err != nil {
		return nil, err
	}
	above := []uint64{head.Generation, state.Generation}
	old, err := transport.LoadIdentity(cfg.DataDir)
	switch {
	case err == nil && !how.Replace:
		return nil, occupied(old)
	case err == nil && old.Cluster.ID == head.ClusterID:
		above = append(above, transport.GenerationNumber(old.Cluster.Generation))
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !how.Replace:
		return nil, err
	}
	identity, err := transport.NewIdentity(cfg.Name)
	if err != nil {
		return nil, err
	}
	ca, err := transport.ParseCA(state.Cluster.CAKey)
	if err != nil {
		return nil, err
	}
	info := transport.ClusterInfo{ID: state.Cluster.ID, Name: state.Cluster.Name, Generation: 1,
		CACert: string(state.Cluster.CACert), GossipKey: state.Cluster.GossipKey}
	if err := joinItself(identity, ca, info); err != nil {
		return nil, err
	}
	left, err := askSeeds(ctx, cfg, identity, head.Seeds)
	if err != nil {
		return nil, err
	}
	identity.Cluster.Generation = transport.NextGeneration(append(above, left.numbers...)...)
	info = identity.Cluster
	rules, err := keptRules(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	withdrawn, events, err := withdraw(state, how, left.gone, clockOf(cfg).Wall().UnixMilli())
	if err != nil {
		return nil, err
	}
	if err := setAside(cfg.DataDir); err != nil {
		return nil, err
	}
	begin := Begin{By: owner(), Admit: true, Reason: fmt.Sprintf("restored on %s from a backup of %s (entry %d)", cfg.Name, head.Created.Format(time.RFC3339), head.Index)}
	for _, n := range state.Nodes() {
		if n.Gone == "" && n.Info.Name == cfg.Name {
			begin.Replaces = append(begin.Replaces, n.Info.ID)
		}
	}
	h := &history{state: state, events: [][]task.Event{events}, index: max(state.Index, 1), term: state.Term}
	if err := settleRestored(cfg, identity, h, Settings{Listen: cfg.Listen, Seeds: slices.Clone(head.Seeds), Begin: begin, Rules: cfg.Rules.over(rules)}); err != nil {
		return nil, err
	}
	v := restoreView(head, state)
	v.Node, v.Fingerprint, v.Addresses = identity.Name, ca.Fingerprint().Short(), announced(addr)
	v.NewGeneration, v.Withdrawn = transport.GenerationNumber(info.Generation), withdrawn
	return v, nil
}

// leftOver is what survivors of a cluster know that a backup of it does not.
type leftOver struct {
	numbers []uint64      // of their generations
	gone    []task.NodeID // machines that were removed
}

// askSeeds asks what is left of the cluster, where it was when the backup was made, for its generation and for
// who was removed. One that has a leader is no case for a restore.
func askSeeds(ctx context.Context, cfg Config, self *transport.Identity, seeds []string) (left leftOver, err error) {
	clock := clockOf(cfg)
	ctx, cancel := transport.WithTimeout(ctx, clock, historyTimeout)
	defer cancel()
	trust, err := transport.NewTrust(self, clock, nil)
	if err != nil {
		return left, err
	}
	dialer := transport.NewDialer(transport.DialerConfig{Trust: trust, Net: transport.DialTCP, Clock: clock})
	var (
		asked sync.WaitGroup
		mu    sync.Mutex
	)
	for _, addr := range seeds {
		asked.Go(func() {
			client := transport.NewClient(transport.ClientConfig{Self: self.NodeID, Dial: func(ctx context.Context, _ task.NodeID) (net.Conn, error) {
				return dialer.DialAddr(ctx, addr, transport.ALPNRPC)
			}})
			defer client.Close()
			var r transport.HistoryReply
			if client.Call(ctx, task.NodeID(addr), transport.MethodHistory, &transport.HistoryRequest{}, &r) != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			left.numbers = append(left.numbers, transport.GenerationNumber(r.Cluster.Generation))
			left.gone = append(left.gone, r.Gone...)
			if r.Leader != "" {
				err = task.NewProblem(task.ErrConflict, fmt.Sprintf("%q lives and has a leader: %s says so. Nothing was changed.", self.Cluster.Name, addr),
					"To be part of it: lanjobs join MACHINE. To go back to the backup all the same, stop its machines first.")
			}
		})
	}
	asked.Wait()
	return left, err
}

// joinItself gives an identity its certificate by the authority that came with the backup.
func joinItself(identity *transport.Identity, ca *transport.CA, info transport.ClusterInfo) error {
	csr, err := identity.CSR()
	if err != nil {
		return err
	}
	cert, err := ca.Issue(csr, identity.NodeID)
	if err != nil {
		return err
	}
	return identity.Adopt(info, cert)
}

// settleRestored writes the data folder; the identity last.
func settleRestored(cfg Config, identity *transport.Identity, h *history, s Settings) error {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return err
	}
	store, err := openLocalStore(cfg.DataDir)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := store.SetSettings(s); err != nil {
		return err
	}
	to := StoreConfig{DataDir: cfg.DataDir, Self: identity.NodeID, Generation: identity.Cluster.Generation, Log: cfg.Log}
	if err := writeNext(to, &frozen{h.state.Snapshot()}, h.index, h.term+1); err != nil {
		return err
	}
	if err := h.audit(cfg); err != nil {
		return err
	}
	return identity.Save(cfg.DataDir)
}

func occupied(old *transport.Identity) error {
	if old.Member() {
		return task.NewProblem(task.ErrConflict, fmt.Sprintf("this machine belongs to %q: nothing was changed.", old.Cluster.Name), "To put its data aside and restore here: lanjobs backup restore FILE --replace")
	}
	return task.NewProblem(task.ErrConflict, "a node of this machine only has its data here: nothing was changed.", "To put its data aside and restore here: lanjobs backup restore FILE --replace")
}
