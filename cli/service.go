package cli

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/cli/service"
	"lanjobs/task"
)

func serviceGroup() *group {
	ofUser := func() urfave.Flag {
		return &urfave.BoolFlag{Name: "user", Usage: "a service of yours alone, without root"}
	}
	return &group{name: "service", short: "run the node with the machine", commands: []*command{
		{name: "install", short: "start with the machine, and again after a crash", takes: takesDataDir | takesDryRun | takesOutput, run: runServiceInstall,
			long: `Copies this program to a stable place and has systemd, launchd or Windows run it as the person who called sudo, on the same
data folder: a node that runs there in the background is stopped in order first. Running it again is harmless, and is how a
new version is put in place. Undo: lanjobs service uninstall. With --dry-run it prints what would be installed.`,
			flags: []urfave.Flag{ofUser(),
				&urfave.StringFlag{Name: "as", Usage: "run as `USER` (the one who called sudo)"},
				&urfave.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` of this machine (those of the node that runs)"},
				&urfave.IntFlag{Name: "slots", Usage: "run `N` attempts at once (the number of processors)"},
				&urfave.Float64Flag{Name: "tempo", Usage: "multiply the time-outs of elections by `N`, for slow disks and Wi-Fi (1)"},
			}},
		{name: "uninstall", short: "stop it and start it no more; data and program stay", takes: takesOutput, run: runServiceUninstall, flags: []urfave.Flag{ofUser()}},
		{name: "start", short: "start the installed service", takes: takesOutput, run: runServiceStart, flags: []urfave.Flag{ofUser()}},
		{name: "stop", short: "stop it in order, until the machine starts again", takes: takesOutput, run: runServiceStop, flags: []urfave.Flag{ofUser()}},
		{name: "status", short: "whether it is installed and runs; exit 3 if not", takes: takesOutput, run: runServiceStatus, flags: []urfave.Flag{ofUser()}},
	}}
}

// servicing is the way to the service managers. It is a field of world, so that tests bring managers of their own.
type servicing struct {
	manager  func(user bool) (service.Manager, error)
	root     func() bool
	programs func(user bool, home string) string           // the folder for this program
	account  func(name string) (owner *account, err error) // "" = whoever calls
}

// account is a user of this machine.
type account struct {
	Name, Home string
	UID, GID   int
}

// installed gives the service of this machine, or that of this user if there is only that.
func (c *call) installed(ctx context.Context) (service.Manager, service.State, error) {
	user := c.flags.Bool("user")
	m, err := c.services.manager(user)
	if err != nil {
		return nil, service.State{}, noManager(err)
	}
	st, err := m.State(ctx)
	if err != nil || st.Installed || user {
		return m, st, err
	}
	if own, err := c.services.manager(true); err == nil {
		if mine, err := own.State(ctx); err == nil && mine.Installed {
			return own, mine, nil
		}
	}
	return m, st, nil
}

func noManager(err error) error {
	return &exitError{code: exitNotFound, detail: err.Error() + ".", hint: `Let whatever starts programs here run: lanjobs serve   In the background until the machine restarts: lanjobs submit, init and join do so by themselves`}
}

func notInstalled() error {
	return &exitError{code: exitNoNode, detail: "the service is not installed.", hint: "sudo lanjobs service install   or for you alone: lanjobs service install --user"}
}

// needRoot refuses what the manager of the machine would refuse with words of its own. A user's own needs none.
func (c *call) needRoot(user bool) error {
	if user || c.services.root() {
		return nil
	}
	e := &exitError{code: exitNotAllowed, detail: "a service of this machine needs root.", cause: task.ErrNotAllowed}
	e.hint = "sudo " + c.path + "   or for you alone, without root: " + c.path + " --user"
	if c.goos == "windows" {
		e.detail, e.hint = "services need an administrator.", "Open a terminal with “Run as administrator”, then: "+c.path
	}
	return e
}

// ofUser tells whether a unit is that of one user.
func (c *call) ofUser(st service.State) bool {
	m, err := c.services.manager(true)
	if err != nil {
		return false
	}
	place, _ := m.Unit(service.Spec{})
	return place == st.Unit
}

// acted is installed for what changes something.
func (c *call) acted(ctx context.Context) (service.Manager, service.State, error) {
	m, st, err := c.installed(ctx)
	if err != nil {
		return m, st, err
	}
	if !st.Installed {
		return m, st, notInstalled()
	}
	return m, st, c.needRoot(c.ofUser(st))
}

func runServiceStart(ctx context.Context, c *call) error {
	m, st, err := c.acted(ctx)
	if err != nil {
		return err
	}
	c.opt.dataDir = orElse(c.opt.dataDir, st.DataDir)
	if !st.Running {
		if _, err := c.takeOver(ctx, st.DataDir); err != nil {
			return err
		}
	}
	if err := m.Start(ctx); err != nil {
		return err
	}
	ready, err := c.untilReady(ctx, st.DataDir)
	if err != nil {
		return c.serviceSilent(st, err)
	}
	return c.doneService(ctx, m, "the service runs%s.", ready)
}

func runServiceStop(ctx context.Context, c *call) error {
	m, _, err := c.acted(ctx)
	if err != nil {
		return err
	}
	c.say("Stopping: work is given back …")
	if err := m.Stop(ctx); err != nil {
		return err
	}
	return c.doneService(ctx, m, "the service is stopped. It starts with the machine, or: lanjobs service start")
}

func runServiceUninstall(ctx context.Context, c *call) error {
	m, st, err := c.installed(ctx)
	switch {
	case err != nil:
		return err
	case !st.Installed:
		return c.done(st, nil, "the service is not installed: there is nothing to undo.")
	case !st.Ours:
		return foreignUnit(st)
	}
	if err := c.needRoot(c.ofUser(st)); err != nil {
		return err
	}
	if err := m.Uninstall(ctx); err != nil {
		return err
	}
	if c.goos == "windows" {
		c.closeFirewall(ctx)
	}
	return c.doneService(ctx, m, "the service is gone. The data stay in %s, the program in %s; start it by hand: lanjobs serve", st.DataDir, st.Exe)
}

func foreignUnit(st service.State) error {
	return &exitError{code: exitConflict, detail: st.Unit + " was not written by lanjobs service install.",
		hint: "It is left alone. Rename or remove it first.", cause: task.ErrConflict}
}

func runServiceStatus(ctx context.Context, c *call) error {
	m, st, err := c.installed(ctx)
	if err != nil {
		return err
	}
	v := c.serviceView(ctx, st)
	if err := c.show(serviceAnswer(v)); err != nil {
		return err
	}
	_ = m
	if !st.Running {
		return silently(exitNoNode)
	}
	return nil
}

// doneService says what was done, for programs with the service as it then is.
func (c *call) doneService(ctx context.Context, m service.Manager, format string, args ...any) error {
	st, err := m.State(ctx)
	if err != nil {
		return err
	}
	return c.done(c.serviceView(ctx, st), []string{service.Name}, format, args...)
}
