package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"lanjobs/task"
)

// window is how many bytes one direction of a stream holds before the writer has to wait.
const window = 256 << 10

// conn is one end of a stream.
type conn struct {
	net           *Network
	local, remote task.NodeID
	laddr, raddr  addr
	in, out       *pipe // guarded by Network.mu
	closed        bool  // likewise
	readBy        deadline
	writeBy       deadline
}

// pair makes the two ends of a stream; called under the lock.
func (n *Network) pair(a, b *Host) (near, far *conn) {
	there := &pipe{net: n, from: a.id, to: b.id, wake: make(chan struct{})}
	back := &pipe{net: n, from: b.id, to: a.id, wake: make(chan struct{})}
	near = &conn{net: n, local: a.id, remote: b.id, laddr: a.netAddr(), raddr: b.netAddr(), in: back, out: there}
	far = &conn{net: n, local: b.id, remote: a.id, laddr: b.netAddr(), raddr: a.netAddr(), in: there, out: back}
	for _, c := range []*conn{near, far} {
		c.readBy.init()
		c.writeBy.init()
		n.conns[c] = struct{}{}
	}
	return near, far
}

func (h *Host) netAddr() addr {
	if h.addr != "" {
		return addr(h.addr)
	}
	return addr(h.id)
}

// PeerID is the host at the other end, as a certificate would prove it.
func (c *conn) PeerID() task.NodeID { return c.remote }

func (c *conn) Read(b []byte) (int, error) {
	for {
		if c.readBy.passed() {
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		}
		c.net.mu.Lock()
		n, err, wake := c.in.read(b, c.closed), c.in.readError(c.closed), c.in.wake
		c.net.mu.Unlock()
		switch {
		case n > 0 || len(b) == 0:
			return n, nil
		case err == io.EOF:
			return 0, err
		case err != nil:
			return 0, c.fail("read", err)
		}
		select {
		case <-wake:
		case <-c.readBy.wait():
		}
	}
}

func (c *conn) Write(b []byte) (int, error) {
	written := 0
	for {
		if c.writeBy.passed() {
			return written, c.fail("write", os.ErrDeadlineExceeded)
		}
		c.net.mu.Lock()
		err := c.out.writeError(c.closed)
		if err == nil && c.out.lost && !c.out.silent && c.net.open(c.local, c.remote) {
			c.abort() // whoever is there now knows nothing of this stream
			err = syscall.ECONNRESET
		}
		n := 0
		if err == nil {
			n = c.out.write(b[written:])
		}
		wake := c.out.wake
		c.net.mu.Unlock()
		if err != nil {
			return written, c.fail("write", err)
		}
		if written += n; written == len(b) {
			return written, nil
		}
		select {
		case <-wake:
		case <-c.writeBy.wait():
		}
	}
}

func (c *conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "memnet", Source: c.laddr, Addr: c.raddr, Err: err}
}

// Close sends the end of the stream after what was written; the other side sees it when it gets there.
func (c *conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return c.fail("close", net.ErrClosed)
	}
	c.end(chunk{fin: true})
	return nil
}

// reset ends the stream as the death of a process does; called under the lock.
func (c *conn) reset() {
	if !c.closed {
		c.end(chunk{reset: true})
	}
}

// abort ends this end at once, whatever the faults; called under the lock.
func (c *conn) abort() {
	if !c.closed {
		c.in.broken, c.out.broken = true, true
		c.end(chunk{reset: true})
	}
}

func (c *conn) end(last chunk) {
	c.closed = true
	delete(c.net.conns, c)
	c.out.send(last)
	c.in.readerGone = true
	c.in.arrived, c.in.size = nil, 0
	c.in.notify()
	c.out.notify()
	c.readBy.stop()
	c.writeBy.stop()
}

func (c *conn) LocalAddr() net.Addr  { return c.laddr }
func (c *conn) RemoteAddr() net.Addr { return c.raddr }

func (c *conn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return nil
}

// deadline closes a channel at a time, as the one of net.Pipe does.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	cancel chan struct{}
}

func (d *deadline) init() { d.cancel = make(chan struct{}) }

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.cancel // the timer's function has run or is about to
	}
	d.timer = nil
	if isClosed(d.cancel) {
		d.cancel = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	cancel := d.cancel
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(cancel) })
		return
	}
	close(cancel)
}

func (d *deadline) stop() { d.set(time.Time{}) }

func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cancel
}

func (d *deadline) passed() bool { return isClosed(d.wait()) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
