package runner

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"lanjobs/task"
)

// op names a message between agent and guard. Both sides ignore an op that they do not know, and JSON skips unknown fields, so
// that an old guard finishes its tasks under a newer agent (R47).
type op string

const (
	opStart  op = "start"  // agent → guard: run this
	opExtend op = "extend" // agent → guard: later deadlines
	opStop   op = "stop"   // agent → guard: end it for this reason
	opList   op = "list"   // agent → guard: what do you hold?
	opAlive  op = "alive"  // agent → guard: it showed progress or saved a checkpoint
	opForget op = "forget" // agent → guard: drop an ended attempt
	opBye    op = "bye"    // agent → guard: I leave on purpose; do not wait for me if you have nothing

	opHello   op = "hello"   // guard → agent, first on a connection
	opHeld    op = "held"    // guard → agent: one attempt, in answer to list
	opListed  op = "listed"  // guard → agent: end of the list
	opStarted op = "started" // guard → agent: its process exists
	opExit    op = "exit"    // guard → agent: it has ended
)

// message is one frame. Blob is the agent's own record of the attempt, opaque to the guard.
type message struct {
	Op        op               `json:"op"`
	X         task.ExecutionID `json:"x,omitempty"`
	Deadlines *task.Deadlines  `json:"deadlines,omitempty"`
	Launch    *launch          `json:"launch,omitempty"`
	Reason    task.StopReason  `json:"reason,omitempty"`
	Grace     task.Millis      `json:"grace,omitempty"`
	Pid       int              `json:"pid,omitempty"`
	Exit      *exitRecord      `json:"exit,omitempty"`
	Hello     *hello           `json:"hello,omitempty"`
	Blob      []byte           `json:"-"`
}

// launch is all that the guard needs to run one command.
type launch struct {
	Path      string      `json:"path"` // of the program, resolved
	Args      []string    `json:"args"` // with argv[0]
	Env       []string    `json:"env"`
	Dir       string      `json:"dir"`
	Mark      string      `json:"mark"` // the entry of Env by which processes of this attempt are known
	StopFile  string      `json:"stop_file"`
	Timeout   task.Millis `json:"timeout,omitempty"`
	StopGrace task.Millis `json:"stop_grace"`
	// StallTimeout is how long it may be silent; 0 = for ever.
	StallTimeout task.Millis `json:"stall_timeout,omitempty"`
	Limits       limits      `json:"limits,omitzero"`
	// User is whom it runs as; nil = whoever the guard runs as.
	User *taskUser `json:"user,omitempty"`
}

// hello is a guard's card.
type hello struct {
	ID     string `json:"id"`
	Build  string `json:"build"` // of the binary it was started from
	Pid    int    `json:"pid"`
	Cgroup string `json:"cgroup,omitempty"`
}

// exitRecord is how a command ended, as the guard saw it. It is what the journal keeps.
type exitRecord struct {
	Code       int             `json:"code,omitempty"`
	Signal     int             `json:"signal,omitempty"`
	Reason     task.StopReason `json:"reason,omitempty"`      // we stopped it
	StartError string          `json:"start_error,omitempty"` // it never ran; Code is 126 or 127
	OOM        bool            `json:"oom,omitempty"`         // the kernel ran out of memory for it
	RunMillis  task.Millis     `json:"run_millis,omitempty"`
	Survivors  []int           `json:"survivors,omitempty"` // processes that would not die
	Packed     *packPlace      `json:"packed,omitempty"`    // where its log is, if it has no files of its own
	GuardDied  bool            `json:"guard_died,omitempty"`
	Unmet      string          `json:"unmet,omitempty"`     // it never ran: this path or program is not there
	Silent     task.Millis     `json:"silent,omitempty"`    // the stall_timeout that it was stopped for
	MemoryMB   int             `json:"memory_mb,omitempty"` // the limit at which the kernel killed it; with OOM
}

// maxFrame bounds what one side believes of the other: a spec's items and environment are far below it.
const maxFrame = 32 << 20

func appendFrame(buf []byte, m *message) ([]byte, error) {
	head, err := json.Marshal(m)
	if err != nil {
		return buf, err
	}
	if len(head)+len(m.Blob) > maxFrame {
		return buf, fmt.Errorf("%s for %s: %d bytes: %w", m.Op, m.X, len(head)+len(m.Blob), task.ErrTooLarge)
	}
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(head)))
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(m.Blob)))
	return append(append(buf, head...), m.Blob...), nil
}

func readFrame(r *bufio.Reader) (*message, error) {
	var size [8]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	head, blob := binary.BigEndian.Uint32(size[:4]), binary.BigEndian.Uint32(size[4:])
	if uint64(head)+uint64(blob) > maxFrame {
		return nil, errors.New("frame too large: not a lanjobs guard")
	}
	buf := make([]byte, head+blob)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, err
	}
	m := &message{Blob: buf[head:]}
	return m, json.Unmarshal(buf[:head], m)
}

// outbox is the sending half of a connection. Messages sent while a write is under way leave together in the next one, so
// that a burst of short tasks costs few system calls.
type outbox struct {
	conn net.Conn
	mu   sync.Mutex
	buf  []byte
	busy bool // somebody is writing and will take what is appended
	last bool // finish was called: close when all is written
	err  error
}

// maxOutbox is how much may wait for a peer that does not read: far more than all attempts of a node need. When it is
// full the connection is given up and made anew.
const maxOutbox = 64 << 20

// send queues a message in order and writes unless another call is already doing so. It blocks no longer than the peer.
func (o *outbox) send(m *message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.last {
		return cmp.Or(o.err, net.ErrClosed)
	}
	buf, err := appendFrame(o.buf, m)
	if err != nil {
		return err
	}
	if len(buf) > maxOutbox {
		o.fail(errors.New("peer does not read"))
		return o.err
	}
	o.buf = buf
	if o.busy {
		return nil
	}
	o.busy = true
	go o.flush()
	return nil
}

func (o *outbox) flush() {
	var spare []byte
	for {
		o.mu.Lock()
		out := o.buf
		if len(out) == 0 || o.err != nil {
			o.busy = false
			if o.last {
				o.fail(net.ErrClosed)
			}
			o.mu.Unlock()
			return
		}
		o.buf = spare[:0]
		o.mu.Unlock()
		_, err := o.conn.Write(out)
		if err != nil {
			o.mu.Lock()
			o.fail(err)
			o.mu.Unlock()
		}
		if cap(out) <= 1<<20 {
			spare = out
		}
	}
}

// finish closes the connection once everything queued is written, or at until.
func (o *outbox) finish(until time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = true
	_ = o.conn.SetWriteDeadline(until) // fails only on a closed connection
	if !o.busy {
		o.fail(net.ErrClosed)
	}
}

func (o *outbox) alive() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err == nil && !o.last
}

// fail is called with mu held. Closing wakes the reader of the connection, which deals with the loss.
func (o *outbox) fail(err error) {
	o.err = err
	o.buf = nil
	_ = o.conn.Close()
}
