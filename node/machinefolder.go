package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"lanjobs/fsm"
	"lanjobs/node/doctor"
	"lanjobs/node/observe"
	"lanjobs/task"
	"lanjobs/transport"
)

// openFolder locks the data folder and reads who this node is, or makes it a new one.
func (m *machine) openFolder() error {
	dir := m.cfg.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if p, is := errors.AsType[*task.Problem](diskProblem(dir, err)); is {
			return p
		}
		return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("the data folder cannot be made: %v", err), "Choose another one with --data-dir.")
	}
	if system := doctor.FileSystem(dir); doctor.IsNetwork(system) {
		return task.NewProblem(task.ErrConflict, fmt.Sprintf("%s is on a network share (%s): the log of the cluster needs memory maps and locks, which are not safe there.", dir, system),
			"Choose a folder on a disk of this machine: --data-dir DIR")
	}
	store, err := openLocalStore(dir)
	if newer, is := errors.AsType[*formatError](err); is {
		return newerData(m.cfg.Version, dir, newer.by, fmt.Sprintf("node.db is of form %d, and %s knows %d", newer.format, m.cfg.Version, storeFormat))
	}
	if errors.Is(err, errStoreDamaged) {
		m.log.Error("the node's own store is damaged: it is set aside and a new one begun", "error", err)
		m.trouble.note(aboutStore, fmt.Sprintf("This machine's own store was damaged and is begun anew; what was left is in %s.", filepath.Join(dir, localFile+".damaged")))
		store, err = replaceLocal(dir, m.clock)
	}
	if err != nil {
		return err
	}
	m.store = store
	m.later(store.Close)
	m.identity, err = transport.LoadIdentity(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if m.identity, err = transport.NewIdentity(m.cfg.Name); err == nil {
			err = m.identity.Save(dir)
		}
	}
	if newer, is := errors.AsType[*transport.IdentityFormatError](err); is {
		return newerData(m.cfg.Version, dir, store.writtenBy(), newer.Error())
	}
	if err != nil {
		return identityProblem(dir, err)
	}
	if err := m.checkForms(); err != nil {
		return err
	}
	if !m.identity.InPlace(dir) { // it was moved
		if err := m.identity.Save(dir); err != nil {
			return err
		}
	}
	if err := store.sign(m.cfg.Version); err != nil {
		return err
	}
	if m.settings, err = store.Settings(); err == nil {
		err = m.keepRules()
	}
	m.about = sync.OnceValue(m.readInfo)
	return err
}

func auditDir(cfg Config) string { return filepath.Join(cfg.DataDir, "audit") }

// identityProblem tells what to do where a machine no longer knows who it is.
func identityProblem(dir string, err error) error {
	if _, is := errors.AsType[*task.Problem](err); is {
		return err
	}
	if p, is := errors.AsType[*task.Problem](diskProblem(dir, err)); is {
		return p
	}
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("this machine no longer knows which node it is: %v, in %s.", err, dir), asideHint)
}

// asideHint is the cure where what a folder holds is of no use any more.
const asideHint = "Come back as a new member: lanjobs join MACHINE --replace. If it was the only machine of its cluster: lanjobs backup restore FILE --replace, or without a backup lanjobs leave --force, which puts the data aside."

// openAudit opens the audit log and starts its writer: Raft replays into it before anything else runs.
func (m *machine) openAudit(ctx context.Context) error {
	a, err := observe.Open(observe.DefaultConfig(auditDir(m.cfg), m.clock, m.log))
	if err != nil {
		return err
	}
	m.audit = a
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	m.later(func() error {
		stop()
		return <-done
	})
	return nil
}

// founding is what the first leader commits: the keys of the cluster that this node was told to found.
func (m *machine) founding() (*fsm.InitCluster, error) {
	if m.settings.Begin.Admit { // the restored state has its keys; what it lacks is this machine
		return &fsm.InitCluster{ID: m.identity.Cluster.ID, Name: m.identity.Cluster.Name, By: owner()}, nil
	}
	ca, err := transport.LoadCA(m.cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := ca.Marshal()
	if err != nil {
		return nil, err
	}
	c := m.identity.Cluster
	return &fsm.InitCluster{ID: c.ID, Name: c.Name, CACert: []byte(c.CACert), CAKey: key, GossipKey: c.GossipKey, By: owner()}, nil
}

// founds tells whether this node was told to found its cluster and has not done so yet.
func (m *machine) founds() bool {
	_, err := transport.LoadCA(m.cfg.DataDir)
	return err == nil
}

// founded forgets the authority's key on disk, once the cluster keeps it: with it, this folder could found the cluster anew.
func (m *machine) founded() {
	if m.settings.Begin.Admit {
		s := m.settings
		s.Begin = Begin{}
		if err := m.store.SetSettings(s); err != nil {
			m.log.Error("the settings could not be written", "error", err)
		}
	}
	if err := transport.ForgetCA(m.cfg.DataDir); err != nil {
		m.log.Error("the authority's key could not be deleted from the data folder", "error", err)
	}
}
