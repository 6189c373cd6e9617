package transport

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"lanjobs/task"
)

// hear acts on an answer; both results nil: go on asking.
func (p *pairing) hear(reply *PairReply, left time.Duration) (*PairGrant, error) {
	if !p.shown {
		p.shown = true
		p.show(p.code, left)
	}
	if reply.Wrong > p.wrong {
		p.say(fmt.Sprintf("A code was typed that no waiting machine has. This one's is %s; if that is what was typed, somebody may be altering the traffic.", p.code))
	}
	p.wrong = max(p.wrong, reply.Wrong)
	current := reply.Round == p.request.Round
	switch {
	case reply.State == PairChallenge && current && p.keys == nil:
		return nil, p.meet(reply, left)
	case reply.State == PairConfirmed && current && p.keys != nil:
		if !p.confirmed {
			p.confirmed = true
			p.say(fmt.Sprintf("The code was typed on a member of %q; a person there is asked whether to let %s in.", plainText(reply.Cluster), p.whom()))
		}
	case reply.State == PairApproved && current && p.keys != nil:
		return p.open(reply)
	case reply.State == PairRefused:
		return nil, task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("%s did not let %s in.", plainText(reply.By), p.whom()), "Nothing has been changed here")
	case reply.State == PairAgain:
		p.confirmed = false
		return nil, p.nextRound()
	}
	return nil, nil
}

// meet answers the leader's side of the exchange, if it is by the same code. If not, this was a guess.
func (p *pairing) meet(reply *PairReply, left time.Duration) error {
	keys, err := p.start.Finish(reply.Share, reply.Proof)
	if err == nil {
		p.keys, p.request.Proof = keys, keys.Proof
		return nil
	}
	if p.tries++; p.tries >= MaxPairTries {
		if p.codes++; p.codes > maxPairCodes {
			return task.NewProblem(task.ErrNotAllowed, "too many codes were typed that are not this machine's.", "Nothing has been changed here. Somebody may be guessing: "+p.byToken())
		}
		p.code, p.tries = NewPairCode(), 0
		p.say("Many other codes were typed meanwhile, so this machine has a new one.")
		p.show(p.code, left)
	}
	return p.nextRound()
}

// whom is who asks to be let in, for a sentence.
func (p *pairing) whom() string {
	if p.role != "" {
		return "you"
	}
	return "this machine"
}

// byToken is the other way in.
func (p *pairing) byToken() string {
	if p.role != "" {
		return "log in by a token instead, lanjobs token create --role " + p.role + " on a member"
	}
	return "join by a token instead, lanjobs token create on a member"
}

// open reads the token and checks that it is for the cluster whose authority this machine has seen.
func (p *pairing) open(reply *PairReply) (*PairGrant, error) {
	g, err := openGrant(p.keys, reply.Sealed, p.role)
	if err == nil {
		var t JoinToken
		if t, err = ParseJoinToken(g.Token); err == nil && !t.Matches(*p.authority) {
			err = errors.New("a token of another cluster")
		}
	}
	if err != nil {
		return nil, task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("%s let %s in, but what it sent was altered (%v).", p.host, p.whom(), err),
			"Nothing has been changed here. Somebody may be altering the traffic: try another member, or another network")
	}
	g.By, g.Role = plainText(g.By), printable(shorten(g.Role))
	return g, nil
}

// plainText is printable for a name in a sentence.
func plainText(s string) string {
	if s = printable(shorten(s)); s != "" {
		return s
	}
	return "somebody"
}

// printable keeps what another machine says from steering a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
}
