package cli

import (
	"context"
	"fmt"
	"strings"

	"lanjobs/task"
	"lanjobs/transport"
)

// runNodeWake has the others wake a machine and says who did.
func runNodeWake(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	v := &transport.WakeView{}
	if err := cl.post(ctx, nodePath(c.args[0], "wake"), struct{}{}, v); err != nil {
		return c.explainDoor(err)
	}
	if c.machine() {
		return c.done(v, []string{v.Node.Name}, "")
	}
	var senders, silent []string
	for _, s := range v.From {
		if s.Problem != "" {
			silent = append(silent, s.Name)
			continue
		}
		senders = append(senders, fmt.Sprintf("%s (%s)", s.Name, strings.Join(s.Networks, ", ")))
	}
	if len(silent) > 0 {
		c.say("Not from %s: no answer.", strings.Join(silent, ", "))
	}
	if answers(&v.Node) {
		c.say("%s answers already.", v.Node.Name)
	}
	return c.done(v, []string{v.Node.Name}, "Packets for %s sent from %s. Whether it wakes: lanjobs status", v.Node.Name, strings.Join(senders, ", "))
}

// answers tells whether a machine was there a moment ago.
func answers(n *task.NodeView) bool {
	return n.State == "ready" || n.State == "draining" || n.State == "unstable"
}
