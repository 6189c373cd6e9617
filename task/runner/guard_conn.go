package runner

import (
	"bufio"
	"errors"
	"net"
	"time"

	"lanjobs/task"
)

// acceptPause keeps a failing accept from spinning.
const acceptPause = 50 * time.Millisecond

// accept serves one agent at a time; a new connection replaces the old one, whose agent is dead or has given it up.
func (g *guard) accept(l net.Listener, card *hello) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return // the guard leaves
		}
		if err != nil { // too few files, or the other side left: without a door the next agent would take this guard for frozen
			g.log.Warn("connection not accepted", "error", err)
			<-g.clock.After(acceptPause)
			continue
		}
		out := &outbox{conn: conn}
		g.mu.Lock()
		if g.out != nil {
			_ = g.out.conn.Close()
		}
		g.out, g.met, g.bye = out, true, false
		g.notify(&message{Op: opHello, Hello: card})
		g.mu.Unlock()
		go g.serve(conn, out)
	}
}

func (g *guard) serve(conn net.Conn, out *outbox) {
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		m, err := readFrame(r)
		if err != nil {
			break
		}
		g.handle(out, m)
	}
	_ = conn.Close()
	g.mu.Lock()
	if g.out == out {
		g.out = nil
	}
	g.mu.Unlock()
	nudge(g.changed)
}

// handle obeys a message. What is still to be read of a connection that was replaced counts no more: the agent that made the new
// one was told what is held here, has given up what was not among it, and by now the cluster may run that elsewhere.
func (g *guard) handle(from *outbox, m *message) {
	if m.Op == opStart {
		if a := g.take(from, m); a != nil {
			g.queue <- a
		}
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.out != from {
		return
	}
	a := g.held[m.X]
	switch m.Op {
	case opExtend:
		if a != nil && m.Deadlines != nil {
			a.deadlines = a.deadlines.Later(*m.Deadlines)
		}
	case opStop:
		if a != nil {
			g.stop(a, m.Reason, m.Grace.Duration())
		}
	case opAlive:
		if a != nil {
			a.heard = g.clock.Awake()
		}
	case opForget:
		if a != nil && a.exit != nil {
			delete(g.held, a.x)
			g.noteJournal(g.journal.forget(a.x))
		}
	case opList:
		for _, a := range g.held {
			d := a.deadlines
			g.notify(&message{Op: opHeld, X: a.x, Pid: a.pid, Deadlines: &d, Exit: a.exit, Blob: a.record})
		}
		g.notify(&message{Op: opListed})
	case opBye:
		g.bye = true
	}
}

// notify is called with mu held, so that the agent hears things in the order in which they happened. An agent that does not
// listen loses nothing: it asks for the list when it comes back.
func (g *guard) notify(m *message) {
	if g.out != nil {
		_ = g.out.send(m)
	}
}

// take notes a new attempt before anything of it begins. A repeated start is no second one.
func (g *guard) take(from *outbox, m *message) *guarded {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.out != from || g.held[m.X] != nil || m.Launch == nil || m.Deadlines == nil {
		return nil
	}
	a := &guarded{x: m.X, launch: *m.Launch, record: m.Blob, deadlines: *m.Deadlines}
	g.held[a.x] = a
	g.running++
	if !g.watching { // else it will be seen with the next look
		g.watching = true
		nudge(g.wake)
	}
	g.noteJournal(g.journal.started(a.x, a.record))
	if g.closing {
		a.reason = task.StopShutdown
	}
	return a
}

// noteJournal: a full disk must not stop tasks; what is lost is what a later agent would learn after this guard's death.
func (g *guard) noteJournal(err error) {
	if err != nil {
		g.log.Warn("journal not written", "error", err)
	}
}
