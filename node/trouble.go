package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"lanjobs/task"
	"lanjobs/transport"
)

// trouble is what the owner of this machine has to know about it, beyond what the cluster knows: why it takes no part any more,
// and what does not work as it should. The zero value is no trouble.
type trouble struct {
	mu      sync.Mutex
	out     *task.Problem     // why this machine takes no part in its cluster; nil = it does
	notices map[string]string // by what they are about
}

// problem is why this machine takes no part in its cluster, nil if it does.
func (t *trouble) problem() *task.Problem {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.out
}

// puts sets why this machine takes no part. Only the first reason counts; it reports whether this was it.
func (t *trouble) puts(p *task.Problem) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out != nil {
		return false
	}
	t.out = p
	return true
}

// note keeps a sentence about something, "" ends it. It reports whether that is news.
func (t *trouble) note(about, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.notices[about] == text {
		return false
	}
	if t.notices == nil {
		t.notices = map[string]string{}
	}
	t.notices[about] = text
	return true
}

// noted tells whether there is a sentence about something.
func (t *trouble) noted(about string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.notices[about] != ""
}

// about orders the notices of status.
var about = []string{aboutHistory, aboutCopy, aboutDisk, aboutState, aboutClock, aboutUDP, aboutStore}

// What notices are about.
const (
	aboutHistory = "history"
	aboutCopy    = "copy"
	aboutDisk    = "disk"
	aboutState   = "state"
	aboutClock   = "clock"
	aboutUDP     = "udp"
	aboutStore   = "store"
)

// sentences are for status, the gravest first.
func (t *trouble) sentences() (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out != nil {
		out = append(out, t.out.Detail+" "+t.out.Hint)
	}
	for _, a := range about {
		if s := t.notices[a]; s != "" {
			out = append(out, s)
		}
	}
	return out
}

// notices are what status says about this machine itself.
func (m *machine) notices() []string {
	out := m.trouble.sentences()
	if text := clockNote(m.clock.Wall(), nil); m.wire == nil && text != "" { // there is nobody to compare with
		out = append(out, text)
	}
	if err := m.core.ledger.Broken(); err != nil {
		out = append(out, fmt.Sprintf("This machine does not understand what the others agreed on and takes no part (%v). Run the version of lanjobs that they run.", err))
	}
	return out
}

// putOut ends this machine's part in its cluster, for good as far as this life goes: what it runs is stopped, Raft ends, and
// every command says why. It returns at once; takeLeave does the work.
func (m *machine) putOut(p *task.Problem) {
	if m.trouble.puts(p) {
		m.log.Error(p.Detail, "help", p.Hint)
		close(m.outed)
	}
}

// takeLeave waits until this machine is put out and then stops what it runs and its Raft. Nobody asks for its work to be
// given back: its leases run out (I1).
func (m *machine) takeLeave(ctx context.Context) error {
	select {
	case <-m.outed:
	case <-ctx.Done():
		return nil
	}
	if err := m.core.StopRaft(); err != nil {
		m.log.Warn("raft did not end in order", "error", err)
	}
	stop, cancel := transport.WithTimeout(ctx, m.clock, task.DefaultStopGrace.Duration()+orderlyTimeout)
	defer cancel()
	if err := m.core.Worker().Shutdown(stop, task.DefaultStopGrace); err != nil && ctx.Err() == nil {
		m.log.Warn("what ran here could not be reported", "error", err)
	}
	return nil
}

// refusal hears of refused connections, both ways. A member whose certificate was verified and who says that this machine was
// removed has it from a committed entry: nothing that this machine holds is worth anything to the cluster any more.
func (m *machine) refusal(r *transport.Refusal) {
	self := m.identity.NodeID
	if r.To == self && r.By != self && errors.Is(r.Reason, transport.ErrRemoved) {
		m.putOut(m.removedProblem(r.By))
	}
	other := r.By
	if other == self {
		other = r.To
	}
	if w := m.wire; w != nil && other != "" && other != self {
		w.note(other, r)
	}
}

// removedProblem says what happened and what to type; by is the member that told, "" = this machine's own log.
func (m *machine) removedProblem(by task.NodeID) *task.Problem {
	says := ""
	if by != "" {
		says = ", says " + m.nameOf(by)
	}
	return task.NewProblem(task.ErrNotAllowed,
		fmt.Sprintf("This machine was removed from %q%s. What ran here is stopped, and nothing of it counts any more.", m.identity.Cluster.Name, says),
		"To come back as a new member: lanjobs join MACHINE --replace")
}

// outError is trouble.problem as an error that may be nil.
func (m *machine) outError() error {
	if p := m.trouble.problem(); p != nil {
		return p
	}
	return nil
}

// watchUDP says once that a firewall lets only TCP through, and takes it back when that ends.
func (m *machine) watchUDP() {
	text := ""
	if m.wire.gossip.UDPBlocked() {
		text = fmt.Sprintf("Other machines answer over TCP but not over UDP: a firewall is in the way. All works, but changes are noticed later; let UDP %d through.", m.listenPort())
	}
	if m.trouble.note(aboutUDP, text) && text != "" {
		m.log.Warn(text)
	}
}

// listenPort is the cluster port.
func (m *machine) listenPort() uint16 {
	addr, err := m.listenAddr()
	if err != nil {
		return transport.DefaultPort
	}
	return addr.Port()
}
