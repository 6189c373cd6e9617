package transport

import (
	"errors"
	"fmt"
	"io"

	"lanjobs/task"
)

// The protocols of nodes begin, after TLS, with the verdict of the accepting side: code uint8 | length uint8 | text. TLS 1.3
// alone would leave the dialling side in doubt: its handshake is through before the other side has looked at its certificate,
// and a refusal would arrive later as a bare alert. So a node learns that it was removed, or that nobody serves the protocol,
// from Dial itself.
const (
	verdictWelcome = 0
	verdictOther   = 255 // a reason that has no code
)

// writeVerdict lets the dialling node in (nil) or tells it why not.
func writeVerdict(w io.Writer, reason error) error {
	if reason == nil {
		_, err := w.Write([]byte{verdictWelcome, 0})
		return err
	}
	code := byte(verdictOther)
	for _, known := range refusals {
		if errors.Is(reason, known.err) {
			code = known.code
		}
	}
	text := reason.Error()
	text = text[:min(len(text), 255)]
	_, err := w.Write(append([]byte{code, byte(len(text))}, text...))
	return err
}

// readVerdict gives nil or a *Refusal; any other error is the network's.
func readVerdict(r io.Reader, by, to task.NodeID) error {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return fmt.Errorf("no welcome: %w", err)
	}
	text := make([]byte, head[1])
	if _, err := io.ReadFull(r, text); err != nil {
		return fmt.Errorf("no welcome: %w", err)
	}
	if head[0] == verdictWelcome {
		return nil
	}
	refusal := &Refusal{By: by, To: to, Reason: errors.New(string(text)), Detail: string(text)}
	for _, known := range refusals {
		if known.code == head[0] {
			refusal.Reason = known.err
		}
	}
	return refusal
}
