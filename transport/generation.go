package transport

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"

	"lanjobs/task"
)

// A cluster has one history of log entries. Recovering a lost quorum and restoring a backup begin another one, and entries of the
// two must never mix: equal index and term mean nothing across them. ClusterInfo.Generation names the history. It is 1 in a
// cluster that was never recovered; later ones carry their number in the upper half and random bits in the lower, so that two
// recoveries made independently of each other are two histories as well, with an order between them.

// generationBits is where the number begins.
const generationBits = 32

// GenerationNumber is the part of a generation that people see and tokens carry.
func GenerationNumber(generation uint64) uint64 {
	return max(generation>>generationBits, 1)
}

// NextGeneration names a new history that comes after all generations and token generations that are given.
func NextGeneration(numbers ...uint64) uint64 {
	var highest uint64 = 1
	for _, n := range numbers {
		highest = max(highest, n)
	}
	var low [4]byte
	_, _ = rand.Read(low[:]) // never fails
	return (highest+1)<<generationBits | uint64(binary.BigEndian.Uint32(low[:]))
}

// sameGeneration: a machine that was alone had none before init made it a member of the first.
func sameGeneration(a, b uint64) bool { return max(a, 1) == max(b, 1) }

// generationError says which of two generations is the later one, to whoever is of "theirs".
func generationError(theirs, here uint64) error {
	if GenerationNumber(theirs) == GenerationNumber(here) {
		return fmt.Errorf("%w: both are number %d, of two recoveries that know nothing of each other", ErrWrongGeneration, GenerationNumber(here))
	}
	return fmt.Errorf("%w: %d, here it is %d", ErrWrongGeneration, GenerationNumber(theirs), GenerationNumber(here))
}

// GenerationKeeper is a Handler of a node that belongs to one generation of its cluster. Calls of members of another one are
// refused, so that nobody registers, reports or forwards across histories; MethodHistory and MethodTwin are answered to all.
type GenerationKeeper interface {
	Generation() uint64
	// OtherGeneration hears of a member of another one; it must return soon.
	OtherGeneration(from task.NodeID, generation uint64)
}

const headerGeneration = "Lanjobs-Generation"

// acrossGenerations are the calls that mean something to members of another generation.
func acrossGenerations(m Method) bool { return m == MethodHistory || m == MethodTwin }

// generationOf reads what a request or an answer says; a binary that says nothing knows only the first.
func generationOf(h http.Header) uint64 {
	n, err := strconv.ParseUint(h.Get(headerGeneration), 10, 64)
	if err != nil {
		return 1
	}
	return n
}

// checkGeneration refuses a call of a member of another generation.
func (s callServer) checkGeneration(w http.ResponseWriter, from task.NodeID, r *http.Request, method Method) error {
	k, ok := s.handler.(GenerationKeeper)
	if !ok {
		return nil
	}
	here, theirs := k.Generation(), generationOf(r.Header)
	sayGeneration(w.Header(), here)
	if sameGeneration(here, theirs) {
		return nil
	}
	k.OtherGeneration(from, theirs)
	if acrossGenerations(method) {
		return nil
	}
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("the cluster was recovered or restored, and the two machines are not of the same history (%v)", generationError(theirs, here)), "lanjobs help lost-quorum")
}

// sayGeneration puts this node's generation into the head of an answer or of a request; nothing in the first, as ever.
func sayGeneration(h http.Header, generation uint64) {
	if generation > 1 {
		h.Set(headerGeneration, strconv.FormatUint(generation, 10))
	}
}

// checkAnswer refuses an answer, good or bad, of a node of another generation.
func (c *Client) checkAnswer(to task.NodeID, method Method, h http.Header) error {
	there := generationOf(h)
	if c.Generation == 0 || sameGeneration(c.Generation, there) || acrossGenerations(method) {
		return nil
	}
	if c.OtherGeneration != nil {
		c.OtherGeneration(to, there)
	}
	return &Refusal{By: to, To: c.Self, Reason: generationError(c.Generation, there)}
}
