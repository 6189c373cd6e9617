package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// Limits of the machines that wait to be let in. They are strangers: none of this may cost much.
const (
	maxApplicants        = 8
	maxApplicantsPerHost = 4
	// applicantSilence is how long a machine may not ask before it is taken to have given up.
	applicantSilence = 20 * time.Second
	// challengeWait is how long the waiting machines may take to answer to a typed code; it must end before a forwarded request does.
	challengeWait = 2500 * time.Millisecond
	// arrivalWait lets the machines that waited at the leader before this one come over.
	arrivalWait = 2 * time.Second
	// decideWithin is how long a person may think before saying yes.
	decideWithin = 2 * time.Minute
	// decidedKeep is how long a decision is kept for a machine that does not come for it.
	decidedKeep = time.Minute
	// pairTokenTTL is how long a machine that was let in may take to join.
	pairTokenTTL = 5 * time.Minute
	// After wrongCodes wrong codes in a row nothing is compared for pairingRests.
	wrongCodes   = 5
	pairingRests = time.Minute
	// leadTick is how soon a parked question notices that this node leads no more.
	leadTick = time.Second
)

// pairDesk is the leader's part of pairing (R46): who waits, in memory only. The machines bring all of it along with every
// question, so a desk that is lost with its leader is soon full again elsewhere.
type pairDesk struct {
	clock    task.Clock
	log      *slog.Logger
	leads    func() bool
	cluster  func() (name string, ca transport.Fingerprint, err error)
	nameFree func(task.NodeInfo) error
	propose  func(context.Context, fsm.Command) (fsm.Result, error)
	tooNew   func(fsm.Command) error // refuses what a member could not apply

	comparing chan struct{} // holds the one typed code that is being compared

	mu      sync.Mutex
	waiting map[string]*applicant // by PairRequest.ID
	news    chan struct{}         // closed when any machine has said something new
	wrong   int                   // codes in a row
	rest    time.Duration         // awake time until which nothing is compared
	typed   []typedCode           // the last ones, so that a repeated request is no second guess
}

// typedCode is what came of a request that brought a code.
type typedCode struct {
	id      task.RequestID
	pairing string
	err     error
}

func newPairDesk(m *machine) *pairDesk {
	return &pairDesk{
		clock: m.clock, log: m.log, waiting: map[string]*applicant{}, news: make(chan struct{}), comparing: make(chan struct{}, 1),
		leads: func() bool { return m.core.leader.Leading() },
		cluster: func() (name string, ca transport.Fingerprint, err error) {
			m.core.Read(func(s *fsm.State) {
				name = s.Cluster.Name
				ca, err = transport.ClusterInfo{CACert: string(s.Cluster.CACert)}.Fingerprint()
			})
			return name, ca, err
		},
		nameFree: m.nameFree,
		propose:  func(ctx context.Context, c fsm.Command) (fsm.Result, error) { return m.core.Propose(ctx, c) },
		tooNew:   m.core.leader.TooNew,
	}
}

var errNotLeading = task.NewProblem(task.ErrNoLeader, "this machine does not lead now", "")

// Ask answers a machine that wants to be let in. A question with nothing new to say is held until there is.
func (d *pairDesk) Ask(ctx context.Context, q transport.PairRequest, remote string) (transport.PairReply, error) {
	if !d.leads() {
		return transport.PairReply{}, errNotLeading
	}
	d.mu.Lock()
	if q.GiveUp {
		if a := d.waiting[q.ID]; a != nil && a.request.CSR == q.CSR {
			d.drop(a, "gave up")
		}
		d.mu.Unlock()
		return transport.PairReply{}, nil
	}
	d.forget()
	a, isNew, err := d.enter(q, remote)
	if err != nil {
		d.mu.Unlock()
		return transport.PairReply{}, err
	}
	if a.hear(q, d.clock.Awake()) {
		close(d.news)
		d.news = make(chan struct{})
	}
	if !isNew {
		d.hold(ctx, a, q)
	}
	reply := a.reply()
	reply.Cluster, _, _ = d.cluster()
	a.seen = d.clock.Awake()
	d.mu.Unlock()
	if !d.leads() {
		return transport.PairReply{}, errNotLeading
	}
	return reply, nil
}

// hold waits, with mu released meanwhile, until there is something to answer to q.
func (d *pairDesk) hold(ctx context.Context, a *applicant, q transport.PairRequest) {
	a.parked++
	defer func() { a.parked-- }()
	wrong := a.wrong
	for end := d.clock.Awake() + transport.PairHold; a.nothingFor(q, d.clock.Awake()) && a.wrong == wrong && d.leads(); {
		left := end - d.clock.Awake()
		if left <= 0 || !d.await(ctx, a.changed, min(left, leadTick)) && ctx.Err() != nil {
			return
		}
	}
}

// await waits for a channel with mu released; false when it was in vain.
func (d *pairDesk) await(ctx context.Context, c <-chan struct{}, most time.Duration) bool {
	d.mu.Unlock()
	defer d.mu.Lock()
	timer := d.clock.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C():
	case <-ctx.Done():
	}
	return false
}

// enter finds who asks, or takes it in; isNew: it was not known before, and should hear at once that it waits.
func (d *pairDesk) enter(q transport.PairRequest, remote string) (a *applicant, isNew bool, err error) {
	if a := d.waiting[q.ID]; a != nil {
		if a.request.CSR != q.CSR || string(a.request.Claim) != string(q.Claim) {
			return nil, false, task.NewProblem(task.ErrInvalid, "another machine waits under this id", "")
		}
		return a, false, nil
	}
	claim, err := q.ReadClaim()
	if err != nil {
		return nil, false, err
	}
	if err := d.mayAsk(claim); err != nil {
		return nil, false, err
	}
	if _, err := transport.CSRKeyHash(q.CSR); err != nil {
		return nil, false, err
	}
	if !d.makeRoom(remote) {
		return nil, false, task.NewProblem(task.ErrConflict, "too many machines wait to be let in already.", "On a member: lanjobs approve lists them. They are forgotten soon after they gave up")
	}
	now := d.clock.Awake()
	a = &applicant{claim: claim, remote: remote, since: now, seen: now, state: transport.PairAgain, changed: make(chan struct{})}
	// A proof without our challenge is for the leader before this one.
	a.request = transport.PairRequest{ID: q.ID, Claim: q.Claim, CSR: q.CSR, Round: -1}
	d.waiting[q.ID] = a
	d.log.Info("a machine asks to be let in", "name", claim.Name, "asks for", cmp.Or(claim.Role, "join"), "remote", remote, "version", claim.Version)
	return a, true, nil
}

// makeRoom tells whether there is a place for one more of an address. When all places are taken, the one that has waited longest of the
// address with the most gives way to an address that has fewer: two strangers cannot keep everybody else out. Who gave way
// asks again at once, under the same code, and is told if there is no place for it any more. Nobody gives way whose code is just
// being compared.
func (d *pairDesk) makeRoom(remote string) bool {
	all, of := 0, map[string]int{}
	for _, a := range d.waiting {
		if a.open() { // else it waits no more, and a person has seen to it
			all++
			of[a.remote]++
		}
	}
	here := of[remote]
	if all < maxApplicants {
		return here < maxApplicantsPerHost
	}
	var out *applicant
	for _, a := range d.line() { // the longest first
		movable := a.state == transport.PairWaiting || a.state == transport.PairAgain
		if movable && of[a.remote] > max(here, 1) && (out == nil || of[a.remote] > of[out.remote]) {
			out = a
		}
	}
	if out == nil {
		return false
	}
	d.drop(out, "gave way to another address")
	return true
}

// mayAsk refuses at once what could not be let in later.
func (d *pairDesk) mayAsk(c transport.PairClaim) error {
	switch {
	case c.Role == "" && CleanName(c.Name) != c.Name:
		return task.NewProblem(task.ErrInvalid, "the node name is not allowed: use a-z, 0-9 and -", "Give this machine another name: --node-name NAME")
	case c.Role == "":
		return d.nameFree(task.NodeInfo{ID: c.Node, Name: c.Name})
	case !fsm.Role(c.Role).Valid():
		return task.NewProblem(task.ErrInvalid, fmt.Sprintf("there is no role %q here: viewer, operator or admin", c.Role), "")
	}
	return d.tooNew(&fsm.CreateToken{Role: fsm.Role(c.Role)}) // before a person types a code for nothing
}

func (d *pairDesk) drop(a *applicant, why string) {
	delete(d.waiting, a.request.ID)
	a.change()
	d.log.Info("a machine waits no longer", "name", a.claim.Name, "remote", a.remote, "reason", why)
}

// forget drops who has gone, and decisions that nobody took or fetched. mu is held.
func (d *pairDesk) forget() {
	now := d.clock.Awake()
	for _, a := range d.waiting {
		switch {
		case a.state == transport.PairConfirmed && now-a.decided > decideWithin:
			a.spend()
		case a.decidedFor(now) > decidedKeep && a.parked == 0:
			d.drop(a, "decided")
		case a.parked == 0 && now-a.seen > applicantSilence:
			d.drop(a, "silent")
		case a.open() && now-a.since > transport.PairLast:
			d.drop(a, "expired")
		}
	}
}
