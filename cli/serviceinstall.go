package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lanjobs/cli/service"
	"lanjobs/node"
	"lanjobs/task"
)

func runServiceInstall(ctx context.Context, c *call) error {
	user := c.flags.Bool("user")
	m, err := c.services.manager(user)
	if err != nil {
		return noManager(err)
	}
	who, err := c.serviceOwner(user)
	if err != nil {
		return err
	}
	spec, err := c.serviceSpec(user, who)
	if err != nil {
		return err
	}
	if c.opt.dryRun {
		return c.dryInstall(ctx, m, spec)
	}
	if err := c.mayInstall(ctx, m, user, spec); err != nil {
		return err
	}
	if spec.User != "" && c.goos == "windows" {
		if spec.Password, err = c.readPassword(spec.User); err != nil {
			return err
		}
	}
	did, err := placeProgram(c.exe, spec.Exe)
	if err != nil {
		return err
	}
	c.say("%s", did)
	flags, err := c.takeOver(ctx, spec.DataDir)
	if err != nil {
		return err
	}
	spec.Args = append(spec.Args, c.serviceFlags(flags)...)
	if err := c.ownLog(spec, who); err != nil {
		return err
	}
	if err := c.giveToManager(ctx, m, spec); err != nil {
		return err
	}
	return c.saidInstalled(ctx, m, user, spec)
}

// serviceOwner is who the service runs as.
func (c *call) serviceOwner(user bool) (*account, error) {
	as := c.flags.String("as")
	switch {
	case as != "" && user:
		return nil, usage(c.path, "--as and --user exclude each other: a service of yours runs as you.")
	case as != "" || user || c.goos == "windows":
	default:
		as = orElse(c.getenv("SUDO_USER"), c.getenv("DOAS_USER"))
	}
	who, err := c.services.account(as)
	if err != nil {
		return nil, &exitError{code: exitNotFound, detail: fmt.Sprintf("no user %q on this machine (%v).", as, err)}
	}
	return who, nil
}

// serviceSpec is what the service runs; flags of the node that runs now are added later. No address is in it: the node has those of
// init and join in its folder.
func (c *call) serviceSpec(user bool, who *account) (service.Spec, error) {
	name := "lanjobs"
	if c.goos == "windows" {
		name += ".exe"
	}
	spec := service.Spec{Exe: filepath.Join(c.services.programs(user, who.Home), name), Home: who.Home}
	switch self, err := c.services.account(""); {
	case user:
	case c.goos == "windows":
		spec.User = c.flags.String("as")
	default:
		spec.User = who.Name
		if err == nil && self.Name != who.Name && c.opt.dataDir == "" {
			spec.DataDir = node.DataDirIn(who.Home)
		}
	}
	var err error
	if spec.DataDir == "" {
		spec.DataDir, err = filepath.Abs(c.dataDir())
	}
	spec.LogFile = filepath.Join(spec.DataDir, logName)
	spec.Args = []string{"serve", "--service", "--data-dir", spec.DataDir}
	if c.opt.dryRun {
		spec.Args = append(spec.Args, c.serviceFlags(nil)...)
	}
	return spec, err
}

// serviceFlags are those of serve that were given here, else those of the node that the service takes the place of.
func (c *call) serviceFlags(running []string) (out []string) {
	for _, l := range c.flags.StringSlice("label") {
		out = append(out, "--label", l)
	}
	if n := c.flags.Int("slots"); n != 0 {
		out = append(out, "--slots", strconv.Itoa(n))
	}
	if t := c.flags.Float64("tempo"); t != 0 {
		out = append(out, "--tempo", strconv.FormatFloat(t, 'g', -1, 64))
	}
	given := len(out)
	for i := 0; i+1 < len(running); i += 2 {
		if !slices.Contains(out[:given], running[i]) {
			out = append(out, running[i], running[i+1])
		}
	}
	return out
}

func (c *call) dryInstall(ctx context.Context, m service.Manager, spec service.Spec) error {
	place, text := m.Unit(spec)
	if err := m.Check(ctx); err != nil {
		c.say("lanjobs: %v; this is what would be installed where it does.", err)
	}
	c.say("The program would be copied to %s, and %s would be:", spec.Exe, place)
	return c.show(answer{value: map[string]string{"program": spec.Exe, "place": place, "unit": text}, names: []string{place},
		head: strings.Split(strings.TrimRight(text, "\n"), "\n")})
}

// mayInstall refuses what would fail half-way.
func (c *call) mayInstall(ctx context.Context, m service.Manager, user bool, spec service.Spec) error {
	if err := m.Check(ctx); err != nil {
		return noManager(err)
	}
	if err := c.needRoot(user); err != nil {
		return err
	}
	st, err := m.State(ctx)
	switch {
	case err != nil:
		return err
	case st.Installed && !st.Ours:
		return foreignUnit(st)
	case st.Installed && st.DataDir != "" && st.DataDir != spec.DataDir:
		return &exitError{code: exitConflict, detail: fmt.Sprintf("the service is installed for another data folder, %s.", st.DataDir),
			hint: "Remove it first: lanjobs service uninstall   or install that one again: --data-dir " + st.DataDir, cause: task.ErrConflict}
	}
	if c.goos == "windows" || spec.User == "" {
		return nil
	}
	if _, err := os.Stat(spec.DataDir); err == nil && ownerOf(spec.DataDir) != spec.User {
		return &exitError{code: exitConflict, detail: fmt.Sprintf("%s belongs to %s, and the service would run as %s.", spec.DataDir, ownerOf(spec.DataDir), spec.User),
			hint: "Run it as its owner: --as " + ownerOf(spec.DataDir), cause: task.ErrConflict}
	}
	return nil
}

func (c *call) saidInstalled(ctx context.Context, m service.Manager, user bool, spec service.Spec) error {
	st, err := m.State(ctx)
	if err != nil {
		return err
	}
	ready, err := c.untilReady(ctx, spec.DataDir)
	if err != nil {
		return c.serviceSilent(st, err)
	}
	if c.goos == "windows" {
		c.openFirewall(ctx, spec)
	}
	if c.goos == "darwin" && user {
		c.say("lanjobs: macOS may block the local network for services of a user: System Settings > Privacy & Security > Local Network.")
	}
	undo := "lanjobs service uninstall"
	if !user && c.goos != "windows" {
		undo = "sudo " + undo
	}
	return c.doneService(ctx, m, `✓ the service is installed%s: %s runs %s as %s, with the machine and again after a crash.
Data: %s   Undo: %s`, ready, st.Manager, spec.Exe, orElse(spec.User, orElse(c.user, "this user")), spec.DataDir, undo)
}
