package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"lanjobs/task"
	"lanjobs/transport/pake"
)

// Pairing lets a machine in by a code that it shows and a person types on any member. The machine asks a member again and again,
// each question held for a while; the member passes it on to the leader, which keeps who waits in memory only. Every question
// carries all that a leader must know, so a new leader goes on where the old one was, for the price of a moment. When a code
// is typed, the leader answers each waiting machine with one exchange of package pake; the one that proves to have the code is
// shown to the person, and when that one says yes it gets a join token under the exchange's key. From there on it joins by
// token, like any other. A person who wants to log in from a machine without a node waits in the same way and gets a login token.
//
// POST /v1/pair takes a PairRequest from anybody and gives a PairReply.
const (
	pathPair = "/v1/pair"
	// The protocol's name goes into the exchange: what was begun as the one cannot be finished as the other. A leader that is too
	// old to know of logins has only the first, so it cannot let a person in as a machine.
	pairProtocol  = "lanjobs pairing/1"
	loginProtocol = "lanjobs login pairing/1"
	sealGrant     = "join token"
	sealLogin     = "login token"
	noPairRequest = "not a request to pair: "
)

// Limits of pairing.
const (
	// PairLast is how long a machine waits under its code.
	PairLast = 10 * time.Minute
	// PairHold is how long the leader holds a question at most.
	PairHold = 5 * time.Second
	// MaxPairTries is how many typed codes are compared with one code, then its machine shows another. Each costs a guess that
	// is right with a chance of 2^-40, also when another waiting machine is meant.
	MaxPairTries = 12
	maxPairCodes = 3
	maxPairText  = 40 // of what a machine says of itself
)

// PairClaim is what a machine, or a person at one, says of itself. It is shown to a person, and proven by the exchange to come
// from whoever has the code.
type PairClaim struct {
	Node    task.NodeID `json:"node,omitempty"`
	Name    string      `json:"name"` // of the node, or as that of a client: anna@laptop
	OS      string      `json:"os"`
	Arch    string      `json:"arch"`
	Version string      `json:"version"`
	Worker  bool        `json:"worker,omitempty"` // it wants to run jobs only
	Role    string      `json:"role,omitempty"`   // not empty: a person asks for a login with this role, and there is no node
}

// Check refuses what could mislead on a screen; the error is a *task.Problem.
func (c PairClaim) Check() error {
	for _, text := range []string{c.OS, c.Arch, c.Version} {
		if text == "" || len(text) > maxPairText || strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) || r == ' ' }) {
			return task.NewProblem(task.ErrInvalid, noPairRequest+fmt.Sprintf("%q", shorten(text)), "")
		}
	}
	if c.Role != "" {
		return c.checkLogin()
	}
	if _, err := uuid.Parse(string(c.Node)); err != nil {
		return task.NewProblem(task.ErrInvalid, noPairRequest+"no node", "")
	}
	return nil
}

// PairRequest asks to be let in, or goes on asking.
type PairRequest struct {
	ID    string `json:"id"`    // of this wait: random, made by the machine
	Claim []byte `json:"claim"` // a PairClaim in JSON: the very bytes count
	CSR   string `json:"csr"`   // PEM; its key is the one that is let in
	// Round counts the exchanges under this ID, Share is the machine's message of the newest one, Proof its answer to the challenge.
	Round  int    `json:"round"`
	Share  []byte `json:"share"`
	Proof  []byte `json:"proof,omitempty"`
	GiveUp bool   `json:"give_up,omitempty"` // it waits no longer
}

// PairState is how a request to pair stands.
type PairState string

// The states.
const (
	PairWaiting   PairState = "waiting"   // nobody has typed its code
	PairChallenge PairState = "challenge" // a code was typed: Share and Proof are the leader's side of the round's exchange
	PairAgain     PairState = "again"     // this round was used, or is not known here: begin another
	PairConfirmed PairState = "confirmed" // its code was typed; a person is being asked
	PairApproved  PairState = "approved"  // Sealed is a PairGrant
	PairRefused   PairState = "refused"
)

// PairReply answers a PairRequest.
type PairReply struct {
	State   PairState `json:"state"`
	Round   int       `json:"round"`
	Share   []byte    `json:"share,omitempty"`
	Proof   []byte    `json:"proof,omitempty"`
	Sealed  []byte    `json:"sealed,omitempty"`
	By      string    `json:"by,omitempty"`      // who decided
	Cluster string    `json:"cluster,omitempty"` // its name
	// Wrong counts the codes that were typed while this machine waited and that no waiting machine has.
	Wrong int `json:"wrong,omitempty"`
}

// PairRelay is a PairRequest that a member passes on to the leader.
type PairRelay struct {
	Request PairRequest
	Remote  string // where the machine asks from
}

// MethodPair goes to the leader, with a PairRelay.
const MethodPair Method = "pair"

// terms are the exchange's, as one side sees them: the joiner takes the authority from TLS, the leader from its own ledger. Which
// protocol it is follows from the claim, whose bytes are proven themselves.
func (r *PairRequest) terms(code PairCode, authority Fingerprint) (pake.Terms, error) {
	key, err := CSRKeyHash(r.CSR)
	if err != nil {
		return pake.Terms{}, err
	}
	claim, err := r.ReadClaim()
	if err != nil {
		return pake.Terms{}, err
	}
	protocol := pairProtocol
	if claim.Role != "" {
		protocol = loginProtocol
	}
	return pake.Terms{Code: []byte(code), Channel: pake.Channel(protocol, key, authority[:]), Session: fmt.Appendf(nil, "%s/%d", r.ID, r.Round)}, nil
}

// Answer is the leader's side of an exchange under a code that somebody typed. The keys count once the machine's proof was
// checked by them.
func (r *PairRequest) Answer(code PairCode, authority Fingerprint) (share []byte, keys *pake.Keys, err error) {
	t, err := r.terms(code, authority)
	if err != nil {
		return nil, nil, err
	}
	return pake.Answer(t, r.Share, r.Claim)
}

// PairGrant is what an approved machine or person gets, sealed.
type PairGrant struct {
	Token   string `json:"token"` // for Join or Login, good for a few minutes
	By      string `json:"by"`    // who approved
	Cluster string `json:"cluster"`
	Role    string `json:"role,omitempty"` // what a person was given, perhaps not what was asked for; "" = it is for a machine
}

// purpose keeps a grant of one kind from being opened as one of the other.
func purpose(role string) string {
	if role != "" {
		return sealLogin
	}
	return sealGrant
}

// Seal encrypts it for the side that has proven to have the code.
func (g PairGrant) Seal(keys *pake.Keys) ([]byte, error) {
	text, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	return keys.Seal(text, purpose(g.Role)), nil
}

// openGrant reads it; role is what was asked for, "" by a machine.
func openGrant(keys *pake.Keys, sealed []byte, role string) (*PairGrant, error) {
	text, err := keys.Open(sealed, purpose(role))
	if err != nil {
		return nil, err
	}
	g := &PairGrant{}
	return g, json.Unmarshal(text, g)
}

// ReadClaim reads and checks a request's claim.
func (r *PairRequest) ReadClaim() (PairClaim, error) {
	var c PairClaim
	if err := json.Unmarshal(r.Claim, &c); err != nil {
		return c, task.NewProblem(task.ErrInvalid, noPairRequest+"no claim", "")
	}
	return c, c.Check()
}

// check refuses what is no request to pair, before it costs anything.
func (r *PairRequest) check() error {
	if len(r.ID) < 16 || len(r.ID) > 64 || len(r.Share) != pake.ShareBytes && !r.GiveUp || r.Round < 0 {
		return task.NewProblem(task.ErrInvalid, noPairRequest+"no id or no share", "")
	}
	return nil
}

// PairHandler answers POST /v1/pair. ask passes a request on to the leader; remoteAddr is where it came from.
func PairHandler(ask func(ctx context.Context, r PairRequest, remoteAddr string) (PairReply, error)) http.Handler {
	return answering(openPost[PairRequest]{"pairing", noPairRequest, maxPairBytes, (*PairRequest).check},
		func(ctx context.Context, r PairRequest, remoteAddr string) (PairReply, error) {
			host, _, err := net.SplitHostPort(remoteAddr)
			if err != nil {
				host = remoteAddr
			}
			return ask(ctx, r, host)
		})
}

// maxPairBytes bounds a question; it is a few hundred bytes.
const maxPairBytes = 16 << 10
