package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/transport"
)

func restoreLines(v *transport.RestoreView) []string {
	return append(backupLines(&v.BackupHead), fmt.Sprintf("  %s; machines then: %s", count(v.Jobs, "unfinished job"), strings.Join(v.Machines, ", ")),
		fmt.Sprintf("  clients then: %s; %s", orNone(v.Clients), count(v.Tokens, "token")), "  it opens, and all of it can be read")
}

func runBackupRestore(ctx context.Context, c *call) error {
	listen, err := listenAddress(c.path, c.flags.String("listen"))
	if err != nil {
		return err
	}
	f := serveFlags{listen: listen, name: c.flags.String("node-name")}
	cfg, err := c.nodeConfig(f)
	if err != nil {
		return err
	}
	file, _, err := c.readBackup(c.args[0])
	if err != nil {
		return err
	}
	if err := c.nodeStopped(ctx); err != nil && !c.opt.dryRun {
		return err
	}
	plain, err := c.openBackup(c.args[0], file)
	if err != nil {
		return err
	}
	if c.opt.dryRun {
		v, err := c.nodes.checkBackup(plain)
		if err != nil {
			return err
		}
		v.Seeds = nil
		return c.show(answer{value: v, names: []string{v.Cluster}, head: append(restoreLines(v), "  nothing was changed")})
	}
	how := node.RestoreHow{Replace: c.flags.Bool("replace"), KeepClients: c.flags.Bool("keep-clients"), Without: c.flags.StringSlice("without")}
	if err := c.confirmRestore(plain, how); err != nil {
		return err
	}
	v, err := c.nodes.restore(ctx, cfg, plain, how)
	if err != nil {
		return err
	}
	v.Seeds = nil
	if c.flags.Bool("foreground") {
		if err := c.saidRestored(v); err != nil {
			return err
		}
		return c.serve(ctx, cfg)
	}
	started, err := c.startNode(ctx, f)
	if err != nil {
		return err
	}
	if err := c.saidRestored(v); err != nil {
		return err
	}
	c.saidStarted(started)
	return nil
}

// confirmRestore shows a person at a terminal whom the restored cluster will let in: only a person knows who was removed since.
func (c *call) confirmRestore(plain []byte, how node.RestoreHow) error {
	if !c.inTTY || c.opt.yes {
		return nil
	}
	v, err := c.nodes.checkBackup(plain)
	if err != nil {
		return err
	}
	out := func(name string) bool { return slices.Contains(how.Without, name) }
	question := fmt.Sprintf("Machines that may come back: %s.\n", orNone(slices.DeleteFunc(v.Machines, out)))
	if how.KeepClients && len(v.Clients) > 0 {
		question += fmt.Sprintf("Clients that may go on: %s.\n", orNone(slices.DeleteFunc(v.Clients, out)))
	}
	return c.confirm(question + "One that was removed since the backup is among them? Then n, and again with --without NAME. Go on?")
}

func (c *call) saidRestored(v *transport.RestoreView) error {
	var more strings.Builder
	if len(v.Machines) > 0 {
		fmt.Fprintf(&more, "\nMachines then: %s. Those that nobody leads come back by themselves when they meet this one; a new one: lanjobs token create.", strings.Join(v.Machines, ", "))
		more.WriteString("\nOne that was removed since the backup: lanjobs node rm NAME, at once.")
	}
	if len(v.Clients) > 0 {
		fmt.Fprintf(&more, "\nClients that may go on: %s. One that was removed since the backup: lanjobs client rm NAME, at once.", strings.Join(v.Clients, ", "))
	}
	if len(v.Withdrawn) > 0 {
		fmt.Fprintf(&more, "\nNo longer let in: %s. A client comes in again by lanjobs login, a machine by lanjobs join MACHINE --replace.", strings.Join(v.Withdrawn, ", "))
	}
	return c.done(v, []string{v.Cluster}, "✓ \"%s\" goes on with %s as of %s (generation %d, %s).  CA SHA256 %s%s", v.Cluster, v.Node,
		v.Created.Local().Format("2006-01-02 15:04:05"), v.NewGeneration, count(v.Jobs, "unfinished job"), v.Fingerprint, more.String())
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// nodeStopped refuses while a node runs on the folder that is to be filled.
func (c *call) nodeStopped(ctx context.Context) error {
	err := c.clientHere().try(ctx, request{method: "GET", path: "/healthz"}, nil)
	if errors.Is(err, transport.ErrNoNode) {
		return nil
	}
	if errors.Is(err, transport.ErrSocketPermission) {
		return c.explainDoor(err)
	}
	return &exitError{code: exitConflict, detail: "a node runs here, on " + c.dataDir() + ": nothing was changed.",
		hint: "Take it out first: lanjobs leave --force, or stop it · or another folder: --data-dir", cause: task.ErrConflict}
}
