package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func recoverRow() *command {
	return &command{
		name: "recover", short: "go on from this machine alone: a majority is lost for good",
		takes: takesNode | takesOutput | takesYes | takesDryRun,
		long: `Read "lanjobs help lost-quorum" first. It asks every member, refuses while enough of them answer or another one knows more, and
wants the cluster's name typed; with --yes, --cluster NAME. --dry-run only shows who is left.`,
		flags: []urfave.Flag{&urfave.BoolFlag{Name: "older", Usage: "although another machine that answers knows more: that is lost"}},
		run:   runRecover,
	}
}

// recoverPatience is how long this machine may take to lead alone.
const recoverPatience = 60 * time.Second

func runRecover(ctx context.Context, c *call) error {
	cl, err := c.recoverClient(ctx)
	if err != nil {
		return err
	}
	v := &transport.RecoverView{}
	if err := cl.try(ctx, request{method: "GET", path: "/v1/recover"}, v); err != nil {
		return c.explainDoor(err)
	}
	older := c.flags.Bool("older")
	refused := v.Refusal != "" && !(v.Older && older)
	if c.opt.dryRun || refused {
		if err := c.show(recoverAnswer(v)); err != nil {
			return err
		}
	}
	switch {
	case refused:
		return &exitError{code: exitConflict, detail: v.Refusal, hint: v.Hint, cause: task.ErrConflict}
	case c.opt.dryRun:
		return nil
	}
	if err := c.typedName(v); err != nil {
		return err
	}
	if err := cl.post(ctx, "/v1/recover", transport.RecoverBody{Cluster: v.Cluster, Older: older}, v); err != nil {
		return c.explainDoor(err)
	}
	return c.untilAlone(ctx, v)
}

// recoverClient leads to the node here, which is started if it does not run: only a running one can ask the others.
func (c *call) recoverClient(ctx context.Context) (*client, error) {
	cl, _, err := c.connectHere(ctx)
	if !errors.Is(err, transport.ErrNoNode) {
		return cl, err
	}
	if cluster, exists := nodeHere(c.dataDir()); !exists || cluster == "" || c.opt.cluster != "" && c.opt.cluster != cluster {
		return nil, err
	}
	started, err := c.startNode(ctx, serveFlags{})
	if err != nil {
		return nil, err
	}
	c.saidStarted(started)
	return c.clientHere(), nil
}

// typedName wants the cluster's name from a person, or --yes with --cluster, which connect has compared.
func (c *call) typedName(v *transport.RecoverView) error {
	if c.opt.yes {
		if c.opt.cluster == "" {
			return usage(c.path, "--yes needs the name of the cluster beside it: --cluster %s", v.Cluster)
		}
		return nil
	}
	if !c.inTTY {
		return usage(c.path, "there is no terminal to ask on: --yes --cluster %s", v.Cluster)
	}
	a := recoverAnswer(v)
	fmt.Fprintln(c.stderr, strings.Join(append(c.err().lines(a.table), a.foot...), "\n"))
	fmt.Fprintf(c.stderr, "This machine goes on alone. What the lost machines had acknowledged and this one has not is gone, and they can take no part with what they have.\nType the name of the cluster to go on: ")
	line, _ := bufio.NewReader(c.stdin).ReadString('\n')
	if strings.TrimSpace(line) != v.Cluster {
		return &exitError{code: exitBad, detail: "nothing was changed."}
	}
	return nil
}

func recoverAnswer(v *transport.RecoverView) answer {
	t := table{head: []string{"NODE", "ROLE", "ANSWERS", "LOG", "BEHIND", ""}}
	for _, s := range v.Machines {
		answers, log, behind := "no", "-", "-"
		if s.Answers {
			answers = "yes"
		}
		if s.LastIndex > 0 {
			log, behind = fmt.Sprintf("entry %d, term %d", s.LastIndex, s.LastTerm), fmt.Sprint(s.Behind)
		}
		note := s.Refusal
		switch {
		case s.Self:
			note = "this machine"
		case note == "" && !s.Answers && s.AwaySeconds > 0:
			note = "silent for " + short(s.AwaySeconds)
		}
		t.rows = append(t.rows, []cell{{text: s.Name}, {text: s.Role}, {text: answers}, {text: log}, {text: behind}, {text: inParens(note)}})
	}
	foot := fmt.Sprintf("%d of %d voters answer, %d are needed.", v.Answering, v.Voters, v.Needed)
	if v.Answering == 1 {
		foot = fmt.Sprintf("1 of %d voters answers, %d are needed.", v.Voters, v.Needed)
	}
	return answer{value: v, names: []string{v.Best}, table: t, foot: []string{foot}}
}

// untilAlone waits until this machine leads its cluster.
func (c *call) untilAlone(ctx context.Context, was *transport.RecoverView) error {
	cl := c.clientHere()
	cl.slow = nil
	for start := c.clock.Awake(); ; {
		v, now := &task.ClusterView{}, &transport.RecoverView{}
		if cl.try(ctx, request{method: "GET", path: "/v1/status"}, v) == nil && cl.try(ctx, request{method: "GET", path: "/v1/recover"}, now) == nil {
			for _, n := range v.Notices {
				if strings.HasPrefix(n, "The recovery did not come about") {
					return &exitError{code: exitBad, detail: n}
				}
			}
			if now.Generation > was.Generation && v.Leader == v.Self && v.Health != "no_leader" {
				if err := c.done(now, []string{now.Cluster}, "✓ %q goes on with %s (generation %d)", now.Cluster, v.SelfName, now.Generation); err != nil {
					return err
				}
				c.say("Survivors come back by themselves. Machines that are lost for good: lanjobs node rm NAME. New ones: lanjobs token create")
				return nil
			}
		}
		if c.clock.Awake()-start > recoverPatience {
			return &exitError{code: exitUnreachable, detail: fmt.Sprintf("this machine does not lead within %s.", recoverPatience), hint: "lanjobs status shows how it stands; its log: " + logName, cause: task.ErrNoLeader}
		}
		if wait(ctx, c.clock, 200*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}
