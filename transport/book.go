package transport

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"lanjobs/task"
)

// MaxAddrs is how many addresses a node announces and the book keeps of it.
const MaxAddrs = 4

// Peer is what the book knows of a node: how to reach it, and what it said of itself.
type Peer struct {
	Session Session   `json:"session"`
	Addrs   []string  `json:"addrs"` // ip:port, best first, at most MaxAddrs
	Name    string    `json:"name"`  // for people
	Version string    `json:"version"`
	Level   int       `json:"level"`
	Voter   bool      `json:"voter"` // willing to be one
	Seen    time.Time `json:"seen"`  // this machine's wall clock, for display only
	// Generation of the cluster that it said to be of; 0 or 1 = the first.
	Generation uint64 `json:"generation,omitempty"`
}

// same tells whether two entries differ in nothing but the time.
func (p Peer) same(o Peer) bool {
	return p.Session == o.Session && slices.Equal(p.Addrs, o.Addrs) && p.Name == o.Name && p.Version == o.Version &&
		p.Level == o.Level && p.Voter == o.Voter && p.Generation == o.Generation
}

// BookStore keeps the book over restarts. Save is called for changes only, so that an idle cluster lets disks sleep.
type BookStore interface {
	Load() (map[task.NodeID]Peer, error)
	Save(id task.NodeID, p Peer) error
	Delete(id task.NodeID) error
}

// Book is the phone book: where each node was last. It names nobody: who answers at an address must prove to be the node that
// was called (R2). Entries stay until the node is removed from the cluster, since the last known addresses are all there is
// after a night in which everybody slept.
type Book struct {
	clock task.Clock
	log   *slog.Logger
	store BookStore

	saving sync.Mutex // keeps saves in the order of the updates; taken before mu

	mu       sync.Mutex
	peers    map[task.NodeID]Peer
	watchers map[int]func(task.NodeID)
	nextID   int
}

// OpenBook reads the stored book.
func OpenBook(store BookStore, clock task.Clock, log *slog.Logger) (*Book, error) {
	peers, err := store.Load()
	if err != nil {
		return nil, fmt.Errorf("read the address book: %w", err)
	}
	b := &Book{clock: clock, log: log, store: store, peers: map[task.NodeID]Peer{}, watchers: map[int]func(task.NodeID){}}
	maps.Copy(b.peers, peers)
	return b, nil
}

// Lookup gives a node's addresses, best first; nil if it was never seen.
func (b *Book) Lookup(id task.NodeID) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.peers[id].Addrs)
}

// Peer gives a node's entry.
func (b *Book) Peer(id task.NodeID) (Peer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.peers[id]
	p.Addrs = slices.Clone(p.Addrs)
	return p, ok
}

// IDs gives all nodes of the book, sorted.
func (b *Book) IDs() []task.NodeID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.peers))
}

// Update takes over what is known of a node, unless a later session of it is known already. An entry without addresses
// leaves the old ones. It reports whether the entry was taken.
func (b *Book) Update(id task.NodeID, p Peer) bool { return b.enter(id, p, false) }

// adopt takes over an entry of an earlier session too: the node has forgotten how far it had counted.
func (b *Book) adopt(id task.NodeID, p Peer) { b.enter(id, p, true) }

func (b *Book) enter(id task.NodeID, p Peer, earlier bool) bool {
	p.Addrs = slices.Clone(p.Addrs[:min(len(p.Addrs), MaxAddrs)])
	p.Seen = b.clock.Wall()

	b.saving.Lock()
	defer b.saving.Unlock()
	b.mu.Lock()
	old, known := b.peers[id]
	if p.Session.Less(old.Session) && !earlier {
		b.mu.Unlock()
		return false
	}
	if len(p.Addrs) == 0 {
		p.Addrs = old.Addrs
	}
	b.peers[id] = p
	moved := !known || old.Session != p.Session || !slices.Equal(old.Addrs, p.Addrs)
	watchers := slices.Collect(maps.Values(b.watchers))
	b.mu.Unlock()

	if !known || !old.same(p) {
		if err := b.store.Save(id, p); err != nil {
			// The book in memory is right; only a restart before the next change would know the old place.
			b.log.Warn("address book not saved", "node", id, "error", err)
		}
	}
	if moved {
		for _, w := range watchers {
			w(id)
		}
	}
	return true
}

// Forget drops a node that was removed from the cluster.
func (b *Book) Forget(id task.NodeID) {
	b.saving.Lock()
	defer b.saving.Unlock()
	b.mu.Lock()
	delete(b.peers, id)
	watchers := slices.Collect(maps.Values(b.watchers))
	b.mu.Unlock()
	if err := b.store.Delete(id); err != nil {
		b.log.Warn("address book not saved", "node", id, "error", err)
	}
	for _, w := range watchers {
		w(id)
	}
}

// Watch calls f after each change of a node's session or addresses, until stop. f must return soon and not call the book's
// Update or Forget.
func (b *Book) Watch(f func(task.NodeID)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.nextID
	b.nextID++
	b.watchers[id] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, id)
	}
}
