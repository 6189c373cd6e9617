package node

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/pake"
)

// maxTyped is how many codes are remembered against repeats.
const maxTyped = 32

// Check compares a code that somebody typed with those of the waiting machines, one exchange each, and gives the one that has
// proven to have it. A repeat under the same id gives the same answer and is no second guess.
func (d *pairDesk) Check(ctx context.Context, code transport.PairCode, id task.RequestID) (*transport.PairingView, error) {
	select {
	case d.comparing <- struct{}{}:
		defer func() { <-d.comparing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.typed {
		if t.id == id {
			return d.outcome(t)
		}
	}
	d.forget()
	if left := d.rest - d.clock.Awake(); left > 0 {
		return nil, task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("pairing rests for %s: %d wrong codes were typed one after another.", left.Round(time.Second), wrongCodes),
			"Look at the code of the new machine again, then type it: it stays good meanwhile")
	}
	if len(d.waiting) == 0 {
		d.await(ctx, d.news, arrivalWait)
	}
	t := typedCode{id: id}
	var silent []string
	var err error
	found := d.undecided(code)
	if found == nil {
		found, silent, err = d.compare(ctx, code)
	}
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		t.pairing, d.wrong = found.pairing, 0
	default:
		t.err = d.noneHas(code, silent)
	}
	if d.typed = append(d.typed, t); len(d.typed) > maxTyped {
		d.typed = d.typed[1:]
	}
	return d.outcome(t)
}

// undecided finds who has proven to have this code a moment ago and waits for the decision: who typed it may have to say it
// again, with another role. mu is held.
func (d *pairDesk) undecided(code transport.PairCode) *applicant {
	for _, a := range d.waiting {
		if a.state == transport.PairConfirmed && subtle.ConstantTimeCompare([]byte(a.code), []byte(code)) == 1 {
			return a
		}
	}
	return nil
}

// outcome is the answer to a typed code. mu is held.
func (d *pairDesk) outcome(t typedCode) (*transport.PairingView, error) {
	if t.err != nil {
		return nil, t.err
	}
	a, err := d.find(t.pairing)
	if err != nil {
		return nil, err
	}
	v := a.view(d.clock.Awake())
	return &v, nil
}

// compare challenges every waiting machine and waits for their answers. silent are those that gave none in time. mu is held, and
// released while waiting.
func (d *pairDesk) compare(ctx context.Context, code transport.PairCode) (found *applicant, silent []string, err error) {
	_, ca, err := d.cluster()
	if err != nil {
		return nil, nil, err
	}
	asked := map[*applicant]*pake.Keys{}
	for _, a := range d.line() {
		if a.state != transport.PairWaiting {
			continue
		}
		own, keys, err := a.request.Answer(code, ca)
		if err != nil {
			d.drop(a, err.Error())
			continue
		}
		a.challenge(code, own, keys)
		asked[a] = keys
	}
	for end := d.clock.Awake() + challengeWait; ; {
		pending := 0
		for a, keys := range asked {
			switch {
			case a.keys != keys:
			case a.state == transport.PairConfirmed:
				found = a
			case a.state == transport.PairChallenge:
				pending++
			}
		}
		left := end - d.clock.Awake()
		if pending == 0 || left <= 0 || !d.await(ctx, d.news, left) && ctx.Err() != nil {
			break
		}
	}
	for a, keys := range asked {
		if a.keys == keys && a.state == transport.PairChallenge {
			a.spend() // an answer that comes later belongs to no question
			silent = append(silent, a.claim.Name)
		}
	}
	return found, silent, nil
}

// noneHas counts a wrong code, if there was any machine to compare it with, and says so (UX 1.5).
func (d *pairDesk) noneHas(code transport.PairCode, silent []string) error {
	now := d.clock.Awake()
	waiting := d.views()
	if len(waiting) > 0 {
		if d.wrong++; d.wrong >= wrongCodes {
			d.wrong, d.rest = 0, now+pairingRests
		}
		d.log.Warn("a pairing code was typed that no waiting machine has", "waiting", len(waiting), "in a row", d.wrong)
	}
	for _, a := range d.waiting {
		a.wrong++
		a.change()
	}
	detail := fmt.Sprintf("no waiting machine has the code %s. Codes have no I, L, O or U, work once, last %d minutes.", code, int(transport.PairLast.Minutes()))
	if len(waiting) == 0 {
		return task.NewProblem(task.ErrNotAllowed, detail, "No machine waits now. On the new one: lanjobs join MACHINE, or lanjobs login MACHINE")
	}
	var names []string
	for _, v := range waiting {
		names = append(names, fmt.Sprintf("%s (%s), %s", v.Name, v.Address, time.Duration(v.AskedSeconds)*time.Second))
	}
	hint := "Waiting now: " + strings.Join(names, "; ") + ". "
	if len(silent) > 0 {
		hint += strings.Join(silent, " and ") + " did not answer in time: type the code again."
	} else {
		hint += "If the code is right and fresh, someone may be altering the traffic."
	}
	return task.NewProblem(task.ErrNotAllowed, detail, hint)
}

// randomHex draws n random bytes as text.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
