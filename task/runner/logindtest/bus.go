//go:build linux

package logindtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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

func (b *Bus) accept() {
	for {
		c, err := b.ln.AcceptUnix()
		if err != nil {
			return
		}
		b.tasks.Go(func() {
			b.serve(c)
			b.mu.Lock()
			delete(b.conns, c)
			b.mu.Unlock()
			_ = c.Close()
		})
	}
}

// serve greets a client and answers its calls.
func (b *Bus) serve(c *net.UnixConn) {
	in := bufio.NewReader(c)
	if greet(c, in) != nil {
		return
	}
	b.mu.Lock()
	b.conns[c] = true
	b.mu.Unlock()
	for {
		m, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		if m.Type == dbus.TypeMethodCall && b.answer(c, m) != nil {
			return
		}
	}
}

// greet is the server's side of the authentication: whoever can open the socket is believed.
func greet(c io.Writer, in *bufio.Reader) error {
	if _, err := in.ReadByte(); err != nil {
		return err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		reply := "ERROR"
		switch {
		case word == "BEGIN":
			return nil
		case word == "AUTH" && rest == "":
			reply = "REJECTED EXTERNAL"
		case word == "AUTH":
			reply = "OK 0123456789abcdef0123456789abcdef"
		case word == "NEGOTIATE_UNIX_FD":
			reply = "AGREE_UNIX_FD"
		}
		if _, err := io.WriteString(c, reply+"\r\n"); err != nil {
			return err
		}
	}
}

// answer answers one call.
func (b *Bus) answer(c *net.UnixConn, m *dbus.Message) error {
	member, _ := m.Headers[dbus.FieldMember].Value().(string)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch member {
	case "Hello":
		return b.reply(c, m, ":1.42")
	case "NameHasOwner":
		return b.reply(c, m, true)
	case "AddMatch", "RemoveMatch":
		return b.reply(c, m)
	case "Get":
		return b.reply(c, m, dbus.MakeVariant(b.delay))
	case "Inhibit":
		return b.inhibit(c, m)
	}
	return b.refuse(c, m, "org.freedesktop.DBus.Error.UnknownMethod", member)
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

// ring tells that the locks have changed. The caller holds mu.
func (b *Bus) ring() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *Bus) reply(c *net.UnixConn, to *dbus.Message, body ...any) error {
	return b.write(c, b.response(dbus.TypeMethodReply, to, body))
}

func (b *Bus) refuse(c *net.UnixConn, to *dbus.Message, name, text string) error {
	m := b.response(dbus.TypeError, to, []any{text})
	m.Headers[dbus.FieldErrorName] = dbus.MakeVariant(name)
	return b.write(c, m)
}

func (b *Bus) response(kind dbus.Type, to *dbus.Message, body []any) *dbus.Message {
	m := &dbus.Message{Type: kind, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(to.Serial()),
		dbus.FieldSender:      dbus.MakeVariant("org.freedesktop.login1"),
	}}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	return m
}

// write sends a message with the files that it names. The caller holds mu.
func (b *Bus) write(c *net.UnixConn, m *dbus.Message) error {
	n, err := m.CountFds()
	if err != nil {
		return err
	}
	if n > 0 {
		m.Headers[dbus.FieldUnixFDs] = dbus.MakeVariant(uint32(n))
	}
	var buf bytes.Buffer
	fds, err := m.EncodeToWithFDs(&buf, binary.LittleEndian)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.Type, err)
	}
	b.serial++
	binary.LittleEndian.PutUint32(buf.Bytes()[8:], b.serial) // the library keeps its own number to itself
	var files []byte
	if len(fds) > 0 {
		files = syscall.UnixRights(fds...)
	}
	_, _, err = c.WriteMsgUnix(buf.Bytes(), files, nil)
	return err
}
