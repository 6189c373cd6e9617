package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lanjobs/node"
)

// pairingCode is what a program reads of a machine that waits to be let in.
type pairingCode struct {
	Kind        string  `json:"kind"` // PairingCode
	Code        string  `json:"code"`
	Peer        string  `json:"peer"`
	LeftSeconds float64 `json:"left_seconds"`
}

// pair shows a code and waits until a person on a member lets this machine in.
func (c *call) pair(ctx context.Context, cfg node.Config, peer string) (admission, error) {
	found := false
	talk := node.PairTalk{Say: func(text string) { c.say("%s", text) }}
	talk.Show = func(code string, left time.Duration) {
		if c.machine() {
			_ = c.show(answer{value: pairingCode{"PairingCode", code, peer, left.Seconds()}})
			return
		}
		if !found {
			c.say("Found a lanjobs cluster at %s. This machine is not a member. On any member type:", peer)
			found = true
		}
		// Also with -q: without it nobody could do anything.
		fmt.Fprintf(c.stderr, "    lanjobs approve %s\n", code)
		c.say("Works once, for %d minutes. Waiting… (Ctrl-C gives up; nothing has been changed here)", int(left.Round(time.Minute).Minutes()))
	}
	a, err := c.nodes.pair(ctx, cfg, peer, c.flags.Bool("worker"), talk)
	if err != nil {
		return a, err
	}
	c.say("✓ approved by %s", person(a.by))
	return a, nil
}

// person writes user@machine as people say it.
func person(by string) string {
	user, machine, ok := strings.Cut(oneLine(by), "@")
	if !ok {
		return user
	}
	return user + " on " + machine
}
