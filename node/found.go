package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"lanjobs/task"
	"lanjobs/transport"
)

// CreateCluster makes the node of a data folder the first member of a new cluster, while it does not run. Its jobs stay.
func CreateCluster(cfg Config, name string) (*transport.InitView, error) {
	if err := cfg.Validate(); err != nil {
		return nil, task.NewProblem(task.ErrInvalid, err.Error(), "")
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, err
	}
	store, err := openLocalStore(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	identity, err := transport.LoadIdentity(cfg.DataDir)
	if errors.Is(err, fs.ErrNotExist) {
		identity, err = transport.NewIdentity(cfg.Name)
	}
	if err != nil {
		return nil, err
	}
	return foundCluster(cfg, store, identity, name)
}

// foundCluster writes what makes a node a founder: settings, the authority's key, and last the identity, which makes them count.
func foundCluster(cfg Config, store *localStore, identity *transport.Identity, name string) (*transport.InitView, error) {
	if identity.Member() {
		return nil, task.NewProblem(task.ErrConflict, fmt.Sprintf("this machine already belongs to %q", identity.Cluster.Name), "See it: lanjobs status")
	}
	if name == "" {
		name = "home"
	}
	if CleanName(name) != name {
		return nil, task.NewProblem(task.ErrInvalid, fmt.Sprintf("cluster name %q: use a-z, 0-9 and -", name), "")
	}
	addr, err := listenAddr(cfg, Settings{})
	if err != nil {
		return nil, err
	}
	if tcp, udp, err := transport.ListenPort(context.Background(), addr); err != nil {
		return nil, task.NewProblem(task.ErrConflict, fmt.Sprintf("the cluster port cannot be opened: %v", err), "If another program uses it, choose another: --listen ADDR:PORT")
	} else {
		_, _ = tcp.Close(), udp.Close()
	}
	info, ca, err := transport.NewCluster(name)
	if err != nil {
		return nil, err
	}
	csr, err := identity.CSR()
	if err != nil {
		return nil, err
	}
	cert, err := ca.Issue(csr, identity.NodeID)
	if err != nil {
		return nil, err
	}
	if err := identity.Adopt(info, cert); err != nil {
		return nil, err
	}
	old, err := store.Settings()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(store.SetSettings(Settings{Listen: cfg.Listen, Rules: cfg.Rules.over(old.Rules)}), ca.Save(cfg.DataDir)); err != nil {
		return nil, err
	}
	if err := identity.Save(cfg.DataDir); err != nil {
		return nil, err
	}
	return &transport.InitView{Cluster: name, ClusterID: info.ID, Node: identity.Name, Fingerprint: ca.Fingerprint().Short(), Addresses: announced(addr)}, nil
}

// announced are the addresses under which this machine can be reached, best first.
func announced(listen netip.AddrPort) []string {
	table, err := transport.SystemInterfaces()
	if err != nil && listen.Addr().IsUnspecified() {
		return nil
	}
	var out []string
	for _, a := range transport.ListenAddrs(listen, table, nil) {
		out = append(out, a.String())
	}
	return out
}

// settleIn writes a new member's data folder; the identity last.
func settleIn(cfg Config, identity *transport.Identity, reply *transport.JoinReply, worker bool) error {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return err
	}
	store, err := openLocalStore(cfg.DataDir)
	if err != nil {
		return err
	}
	defer store.Close()
	s := Settings{Listen: cfg.Listen, Worker: worker, Rules: cfg.Rules}
	for _, m := range reply.Members {
		s.Seeds = append(s.Seeds, m.Addrs...)
		if err := (bookStore{store}).Save(m.ID, transport.Peer{Addrs: m.Addrs, Name: m.Name}); err != nil {
			return err
		}
	}
	if err := store.SetSettings(s); err != nil {
		return err
	}
	return identity.Save(cfg.DataDir)
}

// SetDataAside puts the data of a node that does not run aside, into a folder of its own; nothing is deleted.
func SetDataAside(cfg Config) error { return setAside(cfg.DataDir) }

// setAside moves what a node was out of the way, into a folder of its own; nothing is deleted. The rules of the machine's owner stay:
// whatever this machine becomes next obeys them too.
func setAside(dataDir string) error {
	there := slices.ContainsFunc(ofNode, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dataDir, name))
		return err == nil
	})
	if !there {
		return nil
	}
	rules, err := keptRules(dataDir) // refuses a folder in use
	if err != nil {
		return err
	}
	if err := moveAside(dataDir); err != nil || !rules.told() {
		return err
	}
	store, err := openLocalStore(dataDir)
	if err != nil {
		return err
	}
	return errors.Join(store.SetSettings(Settings{Rules: rules}), store.Close())
}

// ofNode is what makes a data folder that of one node.
var ofNode = []string{"identity.json", "node.key", "node.key.next", "ca.key", localFile, "raft", "raft.mark", "raft.next", "audit", "runner"}

// freePath is the first of numbered paths where nothing is yet.
func freePath(path func(n int) string) string {
	for n := 1; ; n++ {
		if _, err := os.Lstat(path(n)); errors.Is(err, fs.ErrNotExist) {
			return path(n)
		}
	}
}

func moveAside(dataDir string) error {
	aside := freePath(func(n int) string { return filepath.Join(dataDir, fmt.Sprintf("aside-%d", n)) })
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	for _, name := range ofNode {
		err := os.Rename(filepath.Join(dataDir, name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
