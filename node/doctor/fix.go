package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"lanjobs/task"
)

// System is this machine.
type System struct{}

var _ Host = System{}

// Run is Host.
func (System) Run(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out), err
}

// ReadFile is Host.
func (System) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// Fix does what mends findings of this machine without harm, and says what it did or why not: a data folder that others may read, a
// quarantined program, the rule of Windows' firewall. All else is for a person.
func Fix(ctx context.Context, h Host, goos string, w Where, port int, found []task.Finding) (did []string) {
	note := func(what string, err error) {
		if err != nil {
			what += ": " + err.Error()
		}
		did = append(did, what)
	}
	for _, f := range found {
		if f.Level == task.LevelOK {
			continue
		}
		switch {
		case f.Check == "folder":
			note("chmod 700 "+w.DataDir, os.Chmod(w.DataDir, 0o700))
		case f.Check == "quarantine":
			_, err := h.Run(ctx, "xattr", "-d", "com.apple.quarantine", w.Program)
			note("took "+w.Program+" out of quarantine", err)
		case f.Check == "ports" && goos == "windows":
			for _, protocol := range []string{"TCP", "UDP"} {
				out, err := h.Run(ctx, "netsh", "advfirewall", "firewall", "add", "rule", "name=lanjobs", "dir=in", "action=allow",
					"protocol="+protocol, "localport="+strconv.Itoa(port), "program="+w.Program)
				if err != nil {
					err = fmt.Errorf("%s", strings.TrimSpace(out))
				}
				note(fmt.Sprintf("let %s %d in through the Windows firewall", protocol, port), err)
			}
		}
	}
	return did
}
