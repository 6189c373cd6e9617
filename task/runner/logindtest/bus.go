//go:build linux

package logindtest

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// Lock is one inhibitor lock.
type Lock struct{ What, Why, Mode string }

// Bus is a system bus with a login manager. Its methods may be called at any time.
type Bus struct {
	ln    *net.UnixListener
	tasks sync.WaitGroup

	mu      sync.Mutex // guards all below, and writes to connections
	conns   map[*net.UnixConn]bool
	locks   map[*os.File]Lock
	changed chan struct{} // closed and replaced at each change of locks
	denied  []string      // what nobody may hold back
	delay   uint64        // InhibitDelayMaxUSec
	serial  uint32
}

// New starts one in a folder.
func New(dir string) (*Bus, error) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "bus"), Net: "unix"})
	if err != nil {
		return nil, err
	}
	b := &Bus{ln: ln, conns: map[*net.UnixConn]bool{}, locks: map[*os.File]Lock{}, changed: make(chan struct{}), delay: 5_000_000}
	b.tasks.Go(b.accept)
	return b, nil
}

// Address is what DBUS_SYSTEM_BUS_ADDRESS is set to.
func (b *Bus) Address() string { return "unix:path=" + b.ln.Addr().String() }

// Close ends it and every connection.
func (b *Bus) Close() {
	_ = b.ln.Close()
	b.Drop()
	b.mu.Lock()
	for f := range b.locks {
		_ = f.Close()
	}
	b.mu.Unlock()
	b.tasks.Wait()
}

// Drop closes every connection, as a restart of the bus does.
func (b *Bus) Drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		_ = c.Close()
	}
}

// Deny refuses locks of a kind from now on, as polkit does to a user without a seat.
func (b *Bus) Deny(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied = append(b.denied, what)
}

// SetDelay sets how long a delay lock holds a sleep back at most.
func (b *Bus) SetDelay(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay = uint64(d.Microseconds())
}

// Locks are those that are held, in the order of their texts, and a channel that is closed when they change.
func (b *Bus) Locks() ([]Lock, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Lock
	for _, l := range b.locks {
		out = append(out, l)
	}
	slices.SortFunc(out, func(x, y Lock) int { return strings.Compare(x.Mode+x.What, y.Mode+y.What) })
	return out, b.changed
}

// PrepareForSleep sends the signal to everybody: true before a sleep, false after it.
func (b *Bus) PrepareForSleep(begins bool) error {
	m := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/login1")),
		dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.login1.Manager"),
		dbus.FieldMember:    dbus.MakeVariant("PrepareForSleep"),
		dbus.FieldSender:    dbus.MakeVariant(":1.1"),
	}, Body: []any{begins}}
	m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(m.Body...))
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for c := range b.conns {
		errs = append(errs, b.write(c, m))
	}
	return errors.Join(errs...)
}

// inhibit gives one end of a pipe away: the lock lasts until that is closed. The caller holds mu.
func (b *Bus) inhibit(c *net.UnixConn, m *dbus.Message) error {
	var l Lock
	var who string
	if err := dbus.Store(m.Body, &l.What, &who, &l.Why, &l.Mode); err != nil {
		return b.refuse(c, m, "org.freedesktop.DBus.Error.InvalidArgs", err.Error())
	}
	for _, what := range strings.Split(l.What, ":") {
		if l.Mode == "block" && slices.Contains(b.denied, what) {
			return b.refuse(c, m, "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "Interactive authentication required.")
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	b.locks[r] = l
	b.ring()
	b.tasks.Go(func() {
		_, _ = io.Copy(io.Discard, r) // until every copy of the other end is closed
		_ = r.Close()
		b.mu.Lock()
		delete(b.locks, r)
		b.ring()
		b.mu.Unlock()
	})
	err = b.reply(c, m, dbus.UnixFD(w.Fd()))
	return errors.Join(err, w.Close())
}
