package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// A token that comes of a code is for whom a person saw and let in: that name, that node, that key. Its id says so by a hash, so that
// any leader can compare whoever brings it, and the log needs no field for it.

const (
	pairTokenPrefix = "p"
	pairTokenChars  = 32 // of the hash
)

// pairTokenID names the token with a secret's hash that was made for a machine, or for a person if node is "".
func pairTokenID(hash []byte, name string, node task.NodeID, key []byte) string {
	h := sha256.New()
	for _, part := range [][]byte{hash, []byte(name), []byte(node), key} {
		fmt.Fprintf(h, "%d:", len(part))
		_, _ = h.Write(part)
	}
	return pairTokenPrefix + hex.EncodeToString(h.Sum(nil))[:pairTokenChars]
}

// madeFor refuses a token of a code to anybody but the one who had the code. Tokens that a person made are for whoever has them.
func (m *machine) madeFor(secret, name string, node task.NodeID, key []byte) (err error) {
	hash := transport.HashSecret(secret)
	m.core.Read(func(s *fsm.State) { err = tokenMadeFor(s, hash, name, node, key) })
	return err
}

func tokenMadeFor(s *fsm.State, hash []byte, name string, node task.NodeID, key []byte) error {
	for _, t := range s.JoinTokens() {
		bound := strings.HasPrefix(t.ID, pairTokenPrefix) && len(t.ID) == len(pairTokenPrefix)+pairTokenChars
		if bound && bytes.Equal(t.Hash, hash) && t.ID != pairTokenID(hash, name, node, key) {
			return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("what was let in by its code has another name or key than %q. The token was not used up.", name), "Ask again, under the name that is meant")
		}
	}
	return nil
}
