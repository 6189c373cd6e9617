package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// freshTimeout is how long a backup waits until this machine's copy is as new as the leader's was when it was asked for.
const freshTimeout = 10 * time.Second

// Backup is api.Machine: the state as of one entry, with what restoring it needs to know beside.
func (p peers) Backup(ctx context.Context) ([]byte, error) {
	m := p.m
	if !m.core.HasCopy() {
		return nil, task.NewProblem(task.ErrConflict, "this machine keeps no copy of the cluster's state.", "Make the backup on one that votes or stands by: lanjobs status")
	}
	if err := m.upToDate(ctx); err != nil {
		return nil, err
	}
	head := transport.BackupHead{Format: transport.BackupFormat, Cluster: m.identity.Cluster.Name, ClusterID: m.identity.Cluster.ID,
		Created: m.clock.Wall().UTC().Truncate(time.Second), Node: m.identity.Name, Version: m.cfg.Version}
	if m.wire == nil {
		return nil, task.NewProblem(task.ErrConflict, "this machine belongs to no cluster: there is nothing to back up but its own data folder.", "Stop the node and copy "+m.cfg.DataDir+", or make a cluster of it: lanjobs init")
	}
	for _, o := range p.Members() {
		head.Seeds = append(head.Seeds, o.Addresses...)
	}
	return packBackup(head, m.core.ledger.freeze(), m.identity.Cluster.Generation)
}

// packBackup puts a head before a frozen state.
func packBackup(head transport.BackupHead, snapshot *fsm.Snapshot, generation uint64) ([]byte, error) {
	var state bytes.Buffer
	if err := snapshot.Write(&state); err != nil {
		return nil, err
	}
	s, err := fsm.Decode(state.Bytes()) // a backup that cannot be read would be noticed when it is too late
	if err != nil {
		return nil, fmt.Errorf("this machine's state does not read back: %w", err)
	}
	head.Index, head.Generation, head.Level = s.Index, max(s.Generation, transport.GenerationNumber(generation)), s.Members()
	sum := sha256.Sum256(state.Bytes())
	head.Digest = hex.EncodeToString(sum[:])
	line, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), state.Bytes()...), nil
}

// upToDate waits until this machine has applied what the leader had when it was asked. Without a leader, the copy is as good as any.
func (m *machine) upToDate(ctx context.Context) error {
	leader := m.core.LeaderID()
	if leader == "" || leader == m.identity.NodeID {
		return nil
	}
	ctx, cancel := transport.WithTimeout(ctx, m.clock, freshTimeout)
	defer cancel()
	var there transport.PingReply
	if err := m.caller.Call(ctx, leader, transport.MethodPing, &transport.PingRequest{}, &there); err != nil {
		return nil // it has just ended; who follows is not newer than what was committed here or nowhere
	}
	for {
		changed := m.core.Changed()
		if m.core.raft.AppliedIndex() >= there.Applied {
			return nil
		}
		select {
		case <-changed:
		case <-m.clock.After(readyPause): // entries that are not commands change nothing
		case <-ctx.Done():
			return task.NewProblem(task.ErrNoLeader, "this machine's copy is behind the leader's", "Make the backup on "+m.nameOf(leader)+".")
		}
	}
}

// ReadBackup reads and checks what Backup gave.
func ReadBackup(plain []byte) (*transport.BackupHead, *fsm.State, error) {
	head, data, err := transport.SplitBackup(plain)
	if err != nil {
		return nil, nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != head.Digest {
		return nil, nil, task.NewProblem(task.ErrInvalid, "the state in the backup is not what its digest says.", "Take another backup file.")
	}
	state, err := fsm.Decode(data)
	if errors.Is(err, fsm.ErrUnknownCommand) {
		return nil, nil, task.NewProblem(task.ErrConflict, fmt.Sprintf("the backup was made by lanjobs %s and holds what this version does not know: nothing was changed.", head.Version),
			"Use that version or a newer one: lanjobs help upgrade")
	}
	if err != nil {
		return nil, nil, task.NewProblem(task.ErrInvalid, "the state in the backup cannot be read: "+err.Error(), "Take another backup file.")
	}
	if state.Cluster.ID == "" || state.Cluster.ID != head.ClusterID {
		return nil, nil, task.NewProblem(task.ErrInvalid, "the backup holds no cluster.", "Take another backup file.")
	}
	return head, state, nil
}

// CheckBackup is what a restore would begin with.
func CheckBackup(plain []byte) (*transport.RestoreView, error) {
	head, state, err := ReadBackup(plain)
	if err != nil {
		return nil, err
	}
	return restoreView(head, state), nil
}

func membersOf(state *fsm.State) []string {
	names := []string{}
	for _, n := range state.Nodes() {
		if n.Gone == "" {
			names = append(names, n.Info.Name)
		}
	}
	slices.Sort(names)
	return names
}

// clockOf is the clock that a Config names.
func clockOf(cfg Config) task.Clock {
	if cfg.Clock != nil {
		return cfg.Clock
	}
	return runner.SystemClock()
}
