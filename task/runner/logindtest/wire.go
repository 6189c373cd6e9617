package logindtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/godbus/dbus/v5"
)

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
