package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lanjobs/node"
	"lanjobs/transport"
)

// pairingCode is what a program reads while it waits to be let in.
type pairingCode struct {
	Kind        string  `json:"kind"` // PairingCode
	Code        string  `json:"code"`
	Peer        string  `json:"peer"`
	LeftSeconds float64 `json:"left_seconds"`
}

// pair shows a code and waits until a person on a member lets this machine in.
func (c *call) pair(ctx context.Context, cfg node.Config, peer string) (admission, error) {
	talk := node.PairTalk{Say: func(text string) { c.say("%s", text) }}
	talk.Show = c.showCode(peer, "This machine is not a member. On any member type:")
	a, err := c.nodes.pair(ctx, cfg, peer, c.flags.Bool("worker"), talk)
	if err != nil {
		return a, err
	}
	c.say("✓ approved by %s", person(a.by))
	return a, nil
}

// showCode gives what shows a code to the person here; todo says what is to be done with it.
func (c *call) showCode(peer, todo string) func(code string, left time.Duration) {
	found := false
	return func(code string, left time.Duration) {
		if c.machine() {
			_ = c.show(answer{value: pairingCode{"PairingCode", code, peer, left.Seconds()}})
			return
		}
		if !found {
			c.say("Found a lanjobs cluster at %s. %s", peer, todo)
			found = true
		}
		// Also with -q: without it nobody could do anything.
		fmt.Fprintf(c.stderr, "    lanjobs approve %s\n", code)
		c.say("Works once, for %d minutes. Waiting… (Ctrl-C gives up; nothing has been changed here)", int(left.Round(time.Minute).Minutes()))
	}
}

// loginByCode shows a code, waits until a person on a member lets this person in, and keeps the login.
func (c *call) loginByCode(ctx context.Context, peer, role string) error {
	show := c.showCode(peer, fmt.Sprintf("To let you in as %s, on any member type:", role))
	a, err := c.logInByCode(ctx, transport.CodeLogin{
		LoginConfig: c.loginConfig(peer, "", c.user, role), Version: c.version,
		Show: func(code transport.PairCode, left time.Duration) { show(code.String(), left) },
		Say:  func(text string) { c.say("%s", text) },
		Approved: func(g transport.PairGrant) {
			text := "✓ approved by " + person(g.By)
			if g.Role != role {
				text += fmt.Sprintf(", as %s (asked for: %s)", oneLine(g.Role), role)
			}
			c.say("%s", text)
		},
	})
	if err != nil {
		return err
	}
	return c.keepLogin(ctx, a)
}

// person writes user@machine as people say it.
func person(by string) string {
	user, machine, ok := strings.Cut(oneLine(by), "@")
	if !ok {
		return user
	}
	return user + " on " + machine
}
