package transport

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lanjobs/task"
	"lanjobs/transport/pake"
)

// PairConfig is what Pair is told. The token of the JoinConfig is not used.
type PairConfig struct {
	JoinConfig
	// Show is told the code that the person is to type on a member, once the cluster waits for it, and for how long it is good.
	// It is called again if the code had to be changed.
	Show func(code PairCode, left time.Duration)
	// Say tells what happens meanwhile, in a sentence for a person.
	Say func(text string)
}

// pairLeft is how long the good-bye of a machine that gives up may take.
const pairLeft = time.Second

// Pauses between questions: after one that was answered, and after one that was not.
const (
	pairPause = 100 * time.Millisecond
	pairRetry = time.Second
)

// Pair waits with a code until a person on a member lets this machine in. Nothing is changed here. The error is a *task.Problem
// for a person, or the context's: then the cluster has been told that nobody waits any more.
func Pair(ctx context.Context, cfg PairConfig) (*PairGrant, error) {
	csr, err := cfg.Identity.CSR()
	if err != nil {
		return nil, err
	}
	i := cfg.Info
	return pair(ctx, cfg, csr, PairClaim{Node: i.ID, Name: i.Name, OS: i.OS, Arch: i.Arch, Version: i.Version, Worker: !i.Voter})
}

// pair waits with a code for a machine or a person; csr has the key that is to be let in.
func pair(ctx context.Context, cfg PairConfig, csr string, claim PairClaim) (*PairGrant, error) {
	v, err := cfg.visit()
	if err != nil {
		return nil, err
	}
	p := &pairing{visit: v, show: cfg.Show, say: cfg.Say, code: NewPairCode(), codes: 1, role: claim.Role}
	p.request.ID, p.request.CSR = randomID(), csr
	if p.request.Claim, err = json.Marshal(claim); err != nil {
		return nil, err
	}
	// The first connection is only to see the cluster's authority: the exchange begins with it.
	conn, err := p.reach(ctx, p.prove)
	if err != nil {
		return nil, err
	}
	_ = conn.Close()
	done, err := p.run(ctx)
	if err != nil && ctx.Err() != nil {
		p.goodBye(ctx)
		return nil, context.Cause(ctx)
	}
	return done, err
}

func randomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// pairing is one wait.
type pairing struct {
	*visit
	show      func(code PairCode, left time.Duration)
	say       func(text string)
	role      string       // that a person asks for, "" = this is a machine
	authority *Fingerprint // of the first connection; all others must show the same
	code      PairCode
	codes     int // shown so far
	tries     int // typed codes that this code was compared with
	shown     bool
	request   PairRequest
	start     *pake.Start
	keys      *pake.Keys // once the leader has proven to have the code
	wrong     int        // PairReply.Wrong, as last told
	confirmed bool       // told
	away      bool       // told
}

// prove accepts any cluster at first, and from then on only that one.
func (p *pairing) prove(chain []*x509.Certificate) error {
	ca, err := clusterOf(chain, p.host)
	if err != nil {
		return err
	}
	f := fingerprint(ca)
	if p.authority != nil && *p.authority != f {
		return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("%s is another cluster than a moment ago (CA %s, then %s).", p.host, p.authority.Short(), f.Short()),
			"Nothing has been changed here. Somebody may be altering the traffic: try another member, or another network")
	}
	if err := ownedBy(chain[0], ca, p.host); err != nil {
		return err
	}
	p.authority = &f
	return nil
}

// run asks until there is an end to it.
func (p *pairing) run(ctx context.Context) (*PairGrant, error) {
	if err := p.nextRound(); err != nil {
		return nil, err
	}
	end := p.Clock.Awake() + PairLast
	for {
		left := end - p.Clock.Awake()
		if left <= 0 {
			p.goodBye(ctx)
			return nil, task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("nobody typed this machine's code within %d minutes.", int(PairLast.Minutes())),
				"Nothing has been changed here. Run the same command again")
		}
		reply, err := p.ask(ctx)
		pause := pairPause
		_, answered := errors.AsType[leaderless](err)
		switch {
		case errors.Is(err, task.ErrNoLeader) && ctx.Err() == nil && (p.shown || answered && PairLast-left < leaderPatience):
			if !p.away {
				p.away = true
				p.say(fmt.Sprintf("%s does not answer now; still waiting.", p.host))
			}
			pause = pairRetry
		case err != nil:
			return nil, plain(err)
		default:
			p.away = false
			done, err := p.hear(reply, left)
			if done != nil || err != nil {
				return done, err
			}
		}
		if err := p.pause(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// ask asks once, over a connection of its own.
func (p *pairing) ask(ctx context.Context) (*PairReply, error) {
	reply := &PairReply{}
	return reply, p.visit.ask(ctx, p.prove, pathPair, p.request, reply)
}

// goodBye tells the cluster that nobody waits any more; whether it hears that does not matter.
func (p *pairing) goodBye(ctx context.Context) {
	ctx, cancel := WithTimeout(context.WithoutCancel(ctx), p.Clock, pairLeft)
	defer cancel()
	p.request.GiveUp = true
	_, _ = p.ask(ctx)
}

// nextRound begins another exchange: a share is good for one answer.
func (p *pairing) nextRound() error {
	p.request.Round++
	p.request.Proof, p.keys = nil, nil
	t, err := p.request.terms(p.code, *p.authority)
	if err != nil {
		return err
	}
	p.start = pake.NewStart(t, p.request.Claim)
	p.request.Share = p.start.Share
	return nil
}
