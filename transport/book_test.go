package transport_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

func openBook(t *testing.T, store *memBook) *transport.Book {
	t.Helper()
	b, err := transport.OpenBook(store, memnet.NewClock(), discard)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func session(counter uint64) transport.Session { return transport.Session{Counter: counter} }

func TestBookFollowsTheHighestSession(t *testing.T) {
	b := openBook(t, &memBook{})
	var heard []task.NodeID
	stop := b.Watch(func(id task.NodeID) { heard = append(heard, id) })
	if b.Lookup("n") != nil {
		t.Error("an address of a node never seen")
	}
	b.Update("n", transport.Peer{Session: session(5), Addrs: []string{"new:1"}})
	if b.Update("n", transport.Peer{Session: session(4), Addrs: []string{"old:1"}}) {
		t.Error("late news of an earlier session was taken")
	}
	b.Update("n", transport.Peer{Session: session(5), Addrs: []string{"new:1"}, Name: "renamed"})
	if got := b.Lookup("n"); !slices.Equal(got, []string{"new:1"}) {
		t.Errorf("Lookup: %v", got)
	}
	b.Update("n", transport.Peer{Session: session(6), Addrs: []string{"new:1"}})
	if len(heard) != 2 {
		t.Errorf("watchers heard %v: not just the first address and the new session", heard)
	}
	stop()
	b.Update("n", transport.Peer{Session: session(7), Addrs: []string{"a", "b", "c", "d", "e"}})
	if len(heard) != 2 || len(b.Lookup("n")) != transport.MaxAddrs {
		t.Errorf("heard %v after stop; %v", heard, b.Lookup("n"))
	}
}

func TestBookOutlivesARestartAndSavesChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memBook{}
		b := openBook(t, store)
		p := transport.Peer{Session: session(1), Addrs: []string{"a:1"}, Name: "n", Level: 2}
		b.Update("n", p)
		time.Sleep(time.Hour)
		b.Update("n", p)
		if store.saves != 1 {
			t.Errorf("%d saves for one change", store.saves)
		}
		b.Update("n", transport.Peer{Session: session(2), Name: "n"}) // says nothing of where it is
		again := openBook(t, store)
		if got := again.Lookup("n"); !slices.Equal(got, []string{"a:1"}) {
			t.Errorf("after a restart: %v", got)
		}
		if ids := again.IDs(); !slices.Equal(ids, []task.NodeID{"n"}) {
			t.Errorf("IDs: %v", ids)
		}
		again.Forget("n")
		if openBook(t, store).Lookup("n") != nil {
			t.Error("a removed node is still in the book")
		}
	})
}

func TestBookOfABrokenStore(t *testing.T) {
	store := &memBook{}
	b := openBook(t, store)
	store.err = errors.New("disk full")
	b.Update("n", transport.Peer{Session: session(1), Addrs: []string{"a:1"}})
	if got := b.Lookup("n"); len(got) != 1 {
		t.Errorf("a full disk must not keep peers from being found: %v", got)
	}
	if _, err := transport.OpenBook(store, memnet.NewClock(), discard); err == nil {
		t.Error("an unreadable book opened")
	}
}

func TestSessionsAreOrderedAndWritten(t *testing.T) {
	order := []transport.Session{{}, {Counter: 1, Random: 9}, {Counter: 2, Random: 1}, {Counter: 2, Random: 5}, {Counter: 10}}
	for i := range order[1:] {
		if !order[i].Less(order[i+1]) || order[i+1].Less(order[i]) || order[i].Less(order[i]) {
			t.Errorf("order of %v and %v", order[i], order[i+1])
		}
	}
	for _, s := range order {
		if got, err := transport.ParseSession(s.String()); got != s || err != nil {
			t.Errorf("%v came back as %v, %v", s, got, err)
		}
	}
	for _, bad := range []string{"", "5", "-", "x-1", "1-zz", "1-123456789"} {
		if _, err := transport.ParseSession(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
