package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"lanjobs/task"
)

// Every Raft stream starts with a prologue, because Raft's own requests name no receiver: after an exchange of addresses a
// request reaches the wrong node, which answers as if it were the other. Five voters elected a leader with two live nodes
// that way. The dialler says who it is and whom it wants; the other side says OK or why not.
//
//	request   "LJR" version | length uint16 | generation uint64 | cluster, from, session, to: each length uint8, text
//	answer    code uint8 | detail: length uint8, text
//
// A later version may append fields; the length lets an older node skip them.
const (
	prologueMagic   = "LJR"
	prologueVersion = 1
	maxPrologue     = 8 + 4*256
)

// Why a Raft stream is refused. All but ErrNotRunning, ErrWrongNode and ErrCopied last until a person does something.
var (
	// ErrWrongNode: another node answers at this address; the book is out of date.
	ErrWrongNode = errors.New("another node answers there")
	// ErrWrongCluster: the node belongs to another cluster.
	ErrWrongCluster = errors.New("the node belongs to another cluster")
	// ErrWrongGeneration: the cluster was recovered or restored, and one side is from before that.
	ErrWrongGeneration = errors.New("the node is of another generation of the cluster")
	// ErrRemoved: the dialling node was removed from the cluster.
	ErrRemoved = errors.New("the node was removed from the cluster")
	// ErrWrongIdentity: the certificate of the dialling node names another node than its prologue.
	ErrWrongIdentity = errors.New("the certificate names another node")
	// ErrWrongVersion: the prologue is of a version that this binary does not know.
	ErrWrongVersion = errors.New("unknown version of the protocol")
	// ErrCopied: another machine runs under the dialling node's id, and was there first.
	ErrCopied = errors.New("a copy of the node's data folder is in use")
	// ErrNotRunning: the node is there, but its Raft is not running at the moment.
	ErrNotRunning = errors.New("the node is not taking part at the moment")
)

var refusals = []struct {
	code byte
	err  error
}{
	{1, ErrWrongNode}, {2, ErrWrongCluster}, {3, ErrWrongGeneration}, {4, ErrRemoved}, {5, ErrWrongIdentity},
	{6, ErrWrongVersion}, {7, ErrNotRunning}, {8, ErrCopied},
}

// Refusal is a refused stream: who refused whom, and why. errors.Is finds the reason.
type Refusal struct {
	By, To task.NodeID
	Reason error
	Detail string
}

func (r *Refusal) Error() string {
	text := fmt.Sprintf("%s refused %s: %v", r.By, r.To, r.Reason)
	if r.Detail != "" {
		text += " (" + r.Detail + ")"
	}
	return text
}

// Unwrap gives the reason.
func (r *Refusal) Unwrap() error { return r.Reason }

// prologue is what the dialler says first.
type prologue struct {
	Version    byte
	Generation uint64
	Cluster    string
	From       task.NodeID
	Session    string
	To         task.NodeID
}

func (p prologue) encode() ([]byte, error) {
	body := binary.BigEndian.AppendUint64(nil, p.Generation)
	for _, s := range []string{p.Cluster, string(p.From), p.Session, string(p.To)} {
		if len(s) > 255 {
			return nil, fmt.Errorf("raft prologue: %q is too long", s)
		}
		body = append(append(body, byte(len(s))), s...)
	}
	b := append([]byte(prologueMagic), p.Version)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	return append(b, body...), nil
}

func readPrologue(r io.Reader) (prologue, error) {
	var head [6]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return prologue{}, fmt.Errorf("raft prologue: %w", err)
	}
	n := int(binary.BigEndian.Uint16(head[4:]))
	if string(head[:3]) != prologueMagic || n < 8 || n > maxPrologue {
		return prologue{}, errors.New("raft prologue: not one of lanjobs")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return prologue{}, fmt.Errorf("raft prologue: %w", err)
	}
	p := prologue{Version: head[3], Generation: binary.BigEndian.Uint64(body)}
	body = body[8:]
	var fields [4]string
	for i := range fields {
		if len(body) == 0 || len(body) < 1+int(body[0]) {
			return prologue{}, errors.New("raft prologue: cut short")
		}
		fields[i], body = string(body[1:1+body[0]]), body[1+body[0]:]
	}
	p.Cluster, p.From, p.Session, p.To = fields[0], task.NodeID(fields[1]), fields[2], task.NodeID(fields[3])
	return p, nil
}

// writeAnswer accepts (nil) or refuses a stream.
func writeAnswer(w io.Writer, r *Refusal) error {
	answer := []byte{0, 0}
	if r != nil {
		detail := r.Detail[:min(len(r.Detail), 255)]
		answer[0] = verdictOther // 0 would be a welcome
		for _, known := range refusals {
			if errors.Is(r.Reason, known.err) {
				answer[0] = known.code
			}
		}
		answer[1] = byte(len(detail))
		answer = append(answer, detail...)
	}
	_, err := w.Write(answer)
	return err
}

// readAnswer reads what writeAnswer wrote; by and to fill the refusal.
func readAnswer(r io.Reader, by, to task.NodeID) error {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("raft prologue: no answer of %s: %w", by, err)
	}
	detail := make([]byte, head[1])
	if _, err := io.ReadFull(r, detail); err != nil {
		return fmt.Errorf("raft prologue: no answer of %s: %w", by, err)
	}
	if head[0] == 0 {
		return nil
	}
	refusal := &Refusal{By: by, To: to, Reason: fmt.Errorf("refused with code %d", head[0]), Detail: string(detail)}
	for _, known := range refusals {
		if known.code == head[0] {
			refusal.Reason = known.err
		}
	}
	return refusal
}
