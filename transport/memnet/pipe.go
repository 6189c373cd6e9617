package memnet

import (
	"io"
	"net"
	"syscall"
	"time"

	"lanjobs/task"
)

// pipe is one direction of a stream, guarded by Network.mu.
type pipe struct {
	net      *Network
	from, to task.NodeID
	transit  []chunk // on the way, in order
	arrived  []byte
	size     int // bytes in transit and arrived
	timer    *time.Timer
	wake     chan struct{} // closed and replaced when a reader or writer should look again

	eof, wasReset bool // arrived
	lost          bool // nothing moves any more, and nobody is told
	silent        bool // lost, and no reset ever comes back
	broken        bool // aborted from this side
	readerGone    bool
}

type chunk struct {
	data       []byte
	due        time.Time
	fin, reset bool
}

func (p *pipe) notify() {
	close(p.wake)
	p.wake = make(chan struct{})
}

func (p *pipe) read(b []byte, closed bool) int {
	if closed || len(p.arrived) == 0 {
		return 0
	}
	n := copy(b, p.arrived)
	p.arrived = p.arrived[n:]
	p.size -= n
	p.notify()
	return n
}

func (p *pipe) readError(closed bool) error {
	switch {
	case closed:
		return net.ErrClosed
	case p.wasReset || p.broken:
		return syscall.ECONNRESET
	case p.eof:
		return io.EOF
	}
	return nil
}

func (p *pipe) writeError(closed bool) error {
	switch {
	case closed:
		return net.ErrClosed
	case p.broken:
		return syscall.ECONNRESET
	case p.readerGone && p.net.flows(p.from, p.to) && p.net.flows(p.to, p.from) && !p.lost:
		return syscall.EPIPE
	}
	return nil
}

// write takes as much as there is room for.
func (p *pipe) write(b []byte) int {
	n := min(len(b), window-p.size)
	if n > 0 {
		p.size += n
		p.send(chunk{data: append([]byte(nil), b[:n]...)})
	}
	return n
}

func (p *pipe) send(c chunk) {
	c.due = time.Now().Add(p.net.delay[link{p.from, p.to}])
	if n := len(p.transit); n > 0 && p.transit[n-1].due.After(c.due) {
		c.due = p.transit[n-1].due
	}
	p.transit = append(p.transit, c)
	p.pump()
}

// pump moves what is due to the reader, if the link and both processes let it.
func (p *pipe) pump() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	moved := false
	for len(p.transit) > 0 && !p.lost && p.net.flows(p.from, p.to) {
		c := p.transit[0]
		if wait := time.Until(c.due); wait > 0 {
			p.timer = time.AfterFunc(wait, func() {
				p.net.mu.Lock()
				defer p.net.mu.Unlock()
				p.pump()
			})
			break
		}
		p.transit = p.transit[1:]
		moved = true
		p.eof = p.eof || c.fin
		p.wasReset = p.wasReset || c.reset
		if p.readerGone {
			p.size -= len(c.data)
		} else {
			p.arrived = append(p.arrived, c.data...)
		}
	}
	if moved {
		p.notify()
	}
}
