package cli

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"lanjobs/cli/service"
	"lanjobs/task"
)

// placeProgram copies this program to where the service finds it, and says what it did. A file there that is not lanjobs stays.
func placeProgram(from, to string) (did string, err error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	old, err := os.ReadFile(to)
	switch {
	case err == nil && bytes.Equal(old, text):
		return "The program is in " + to + " already.", nil
	case err == nil && !isLanjobs(to):
		return "", &exitError{code: exitConflict, detail: to + " is there and is not lanjobs.", hint: "It is left alone. Move it away, then try again.", cause: task.ErrConflict}
	case err == nil:
		did = "The program in " + to + " is replaced by this one."
	case errors.Is(err, fs.ErrNotExist):
		did = "The program is copied to " + to + "."
	default:
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", err
	}
	// A program that runs cannot be written to, only put aside: renaming works on every system.
	fresh, aside := to+".new", to+".old"
	if err := os.WriteFile(fresh, text, 0o755); err != nil {
		return "", err
	}
	if err := os.Chmod(fresh, 0o755); err != nil { // whatever the umask
		return "", err
	}
	if err := os.Rename(fresh, to); err == nil {
		return did, nil
	}
	_ = os.Remove(aside)
	if err := os.Rename(to, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return did, os.Rename(fresh, to)
}

// isLanjobs tells whether a file is this program, of whatever version. It is read, not run.
func isLanjobs(file string) bool {
	info, err := buildinfo.ReadFile(file)
	return err == nil && (info.Main.Path == "lanjobs" || info.Path == "lanjobs")
}

// ownLog makes the log file of a service whose manager would make it as root. The folder may be that user's already: nothing that lies
// there is followed or given away, only what is made here.
func (c *call) ownLog(spec service.Spec, who *account) error {
	if c.goos != "darwin" || spec.User == "" {
		return nil
	}
	if _, err := os.Lstat(spec.DataDir); errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.MkdirAll(spec.DataDir, 0o700), os.Lchown(spec.DataDir, who.UID, who.GID)); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Chown(who.UID, who.GID), f.Close())
}

// readPassword asks for the password of an account of Windows, which its service manager wants.
func (c *call) readPassword(user string) (string, error) {
	c.say("Password of %s (it is given to Windows only): ", user)
	if c.inTTY {
		text, err := term.ReadPassword(int(os.Stdin.Fd()))
		return string(text), err
	}
	var line []byte
	one := make([]byte, 1)
	for len(line) < 1024 {
		n, err := c.stdin.Read(one)
		if n == 0 || err != nil || one[0] == '\n' {
			break
		}
		line = append(line, one[0])
	}
	return strings.TrimRight(string(line), "\r"), nil
}

// The rule of Windows' firewall is one for TCP and one for UDP under the same name.
const firewallRule = "lanjobs"

// openFirewall lets the cluster's port in, for this program alone.
func (c *call) openFirewall(ctx context.Context, spec service.Spec) {
	c.closeFirewall(ctx)
	port := c.clusterPort(ctx, spec.DataDir)
	for _, protocol := range []string{"TCP", "UDP"} {
		if _, err := (service.System{}).Run(ctx, "netsh", "advfirewall", "firewall", "add", "rule", "name="+firewallRule, "dir=in", "action=allow",
			"protocol="+protocol, "localport="+port, "program="+spec.Exe); err != nil {
			c.say("lanjobs: the firewall was not opened for %s %s (%v).", protocol, port, err)
			return
		}
	}
	c.say("The Windows firewall lets %s in for lanjobs, TCP and UDP.", port)
}

func (c *call) closeFirewall(ctx context.Context) {
	_, _ = service.System{}.Run(ctx, "netsh", "advfirewall", "firewall", "delete", "rule", "name="+firewallRule) // there may be none
}

// clusterPort is the port of the node of a folder, the usual one if it has none yet.
func (c *call) clusterPort(ctx context.Context, dataDir string) string {
	v := &task.ClusterView{}
	if c.clientOf(dataDir).try(ctx, request{method: "GET", path: "/v1/status"}, v) == nil {
		for _, n := range v.Nodes {
			if n.ID == v.Self && len(n.Addresses) > 0 {
				return portOf(n.Addresses[0])
			}
		}
	}
	return fmt.Sprint(defaultPort)
}
