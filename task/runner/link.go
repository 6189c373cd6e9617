package runner

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lanjobs/task"
)

// link is the agent's connection to one living guard.
type link struct {
	hello hello
	sock  string
	out   *outbox
	in    *bufio.Reader
}

// helloBound is how long a guard may take to answer the door, and for each thing that it holds; one that is frozen does not.
const helloBound = 3 * time.Second

// dialGuard connects and reads the guard's card. If somebody listens but does not answer, pid is whose door it is.
func (r *Runner) dialGuard(id string) (l *link, pid int, err error) {
	sock := r.guardSocket(id)
	conn, err := net.Dial("unix", sock)
	if err != nil {
		return nil, 0, err
	}
	l = &link{sock: sock, out: &outbox{conn: conn}, in: bufio.NewReaderSize(conn, 64<<10)}
	err = conn.SetReadDeadline(r.clock.Wall().Add(helloBound))
	var m *message
	if err == nil {
		m, err = readFrame(l.in)
	}
	if err == nil && m.Hello == nil {
		err = errors.New("not a guard")
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		pid := peerPid(conn)
		return nil, pid, errors.Join(err, conn.Close())
	}
	l.hello = *m.Hello
	return l, l.hello.Pid, nil
}

func (r *Runner) guardSocket(id string) string { return filepath.Join(r.sockets, "g-"+id) }

// leave says goodbye; the guard stays as long as it has something to do. A guard that does not listen is not waited for.
func (r *Runner) leave(l *link) {
	_ = l.out.send(&message{Op: opBye})
	l.out.finish(r.clock.Wall().Add(time.Second))
}

// listHeld asks a guard what it holds. It is called before anything else reads the connection, and closes that if there is no answer.
func (r *Runner) listHeld(l *link) (held []*message, err error) {
	defer func() {
		if err != nil {
			_ = l.out.conn.Close()
		}
	}()
	if err := l.out.send(&message{Op: opList}); err != nil {
		return nil, err
	}
	for {
		if err := l.out.conn.SetReadDeadline(r.clock.Wall().Add(helloBound)); err != nil {
			return nil, err
		}
		m, err := readFrame(l.in)
		if err != nil {
			return nil, err
		}
		switch m.Op {
		case opHeld:
			held = append(held, m)
		case opListed:
			return held, l.out.conn.SetReadDeadline(time.Time{})
		case opExit: // between the door and the list: the list repeats it
		}
	}
}

// adopt is Open's meeting with guards of an earlier agent: the living are asked, the dead are read.
func (r *Runner) adopt() error {
	entries, err := os.ReadDir(guardDir(r.cfg.Dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".journal")
		if !ok {
			continue
		}
		l, pid, err := r.dialGuard(id)
		var held []*message
		if err == nil {
			held, err = r.listHeld(l)
		}
		if err != nil {
			// Dead, or so frozen that nothing it holds could be reported: what it runs must not outlive this (I13).
			r.log.Info("guard does not answer", "guard", id, "error", err)
			r.killGuard(pid)
			if err := r.bury(id); err != nil {
				return fmt.Errorf("guard %s: %w", id, err)
			}
			continue
		}
		r.mu.Lock()
		for _, m := range held {
			r.reattach(l, m)
		}
		r.links[id] = l
		r.mu.Unlock()
		r.wg.Go(func() { r.listen(l) })
	}
	return nil
}

// reattach is called with mu held: the same execution, the same process, a new agent.
func (r *Runner) reattach(l *link, m *message) {
	a := r.attempts[m.X]
	if a == nil {
		if a = r.restore(m.X, m.Blob); a == nil {
			return
		}
	}
	a.link, a.grave = l, nil
	a.started = a.started || m.Pid != 0
	a.pid, a.pidHeard = m.Pid, r.clock.Boot()
	if m.Deadlines != nil {
		a.deadlines = a.deadlines.Later(*m.Deadlines)
	}
	if m.Exit != nil {
		r.endLocked(a, m.Exit)
	}
}

// restore is called with mu held. A record that cannot be read was written by another version: nothing can be said of it.
func (r *Runner) restore(x task.ExecutionID, blob []byte) *attempt {
	rec := &record{}
	if err := json.Unmarshal(blob, rec); err != nil || rec.Assignment.Execution() != x {
		r.log.Error("record not understood", "execution", x, "error", err)
		return nil
	}
	a := &attempt{x: x, record: rec, assignment: rec.Assignment, handed: r.clock.Boot()}
	a.assignment.Checkpoint = loadCheckpoint(r.paths(x))
	r.attempts[x] = a
	return a
}

// listen takes what a guard says until the connection ends, then finds out why it did.
func (r *Runner) listen(l *link) {
	for {
		m, err := readFrame(l.in)
		if err != nil {
			break
		}
		r.hear(l, m)
	}
	_ = l.out.conn.Close()
	r.mu.Lock()
	closed := r.closed || r.links[l.hello.ID] != l
	r.mu.Unlock()
	if !closed {
		r.lost(l)
	}
}

func (r *Runner) hear(l *link, m *message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.attempts[m.X]
	if a == nil || a.link != l {
		return
	}
	switch m.Op {
	case opStarted:
		a.started, a.pid, a.pidHeard = true, m.Pid, r.clock.Boot()
	case opExit:
		if m.Exit != nil {
			r.endLocked(a, m.Exit)
		}
	}
}

// lost: the guard died, or only the connection broke. A guard that still answers is asked for everything again.
func (r *Runner) lost(old *link) {
	id := old.hello.ID
	l, pid, err := r.dialGuard(id)
	var held []*message
	if err == nil {
		held, err = r.listHeld(l)
	}
	if err != nil {
		r.log.Warn("guard died", "guard", id, "error", err)
		r.killGuard(pid) // 0 unless somebody listens and does not answer
		if err := r.bury(id); err != nil {
			// Their ends are not known, but that they have ended is: they must not be renewed for ever.
			r.log.Error("journal of a dead guard", "guard", id, "error", err)
			_ = r.settleDead(id, nil, old.hello.Cgroup) // without a journal it cannot fail
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		r.leave(l)
		return
	}
	known := map[task.ExecutionID]bool{}
	for _, m := range held {
		known[m.X] = true
		r.reattach(l, m)
	}
	for _, a := range r.attempts {
		if a.link == old && !known[a.x] { // its start was lost on the way: it never began and never will
			a.link = nil
			r.endLocked(a, &exitRecord{GuardDied: true})
		}
	}
	r.links[id] = l
	r.wg.Go(func() { r.listen(l) })
}

// retire is called with mu held: a guard of another binary has finished its last task and may go.
func (r *Runner) retire(l *link) {
	if l.hello.Build == r.build() {
		return
	}
	for _, a := range r.attempts {
		if a.link == l {
			return
		}
	}
	delete(r.links, l.hello.ID)
	r.leave(l)
}
