package doctor

import (
	"context"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lookSleep asks this system whether it sleeps when nobody uses it.
func lookSleep(ctx context.Context, h Host) Sleep {
	switch runtime.GOOS {
	case "linux":
		return linuxSleep(ctx, h)
	case "darwin":
		return macSleep(ctx, h)
	case "windows":
		return windowsSleep(ctx, h)
	}
	return Sleep{How: runtime.GOOS + " is not known well enough"}
}

// linuxSleep asks systemd whether sleep is forbidden, then GNOME's setting, then logind. Other desktops have ways of their own, so
// a machine with one that says nothing is not called awake.
func linuxSleep(ctx context.Context, h Host) Sleep {
	if out, _ := h.Run(ctx, "systemctl", "is-enabled", "sleep.target"); strings.TrimSpace(out) == "masked" {
		return Sleep{Known: true, How: "sleep.target is masked"}
	}
	const power = "org.gnome.settings-daemon.plugins.power"
	if kind, err := h.Run(ctx, "gsettings", "get", power, "sleep-inactive-ac-type"); err == nil {
		text, _ := h.Run(ctx, "gsettings", "get", power, "sleep-inactive-ac-timeout")
		seconds, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(text, "uint32 ")))
		if kind = strings.Trim(strings.TrimSpace(kind), "'"); kind != "nothing" && kind != "logout" && kind != "interactive" && seconds > 0 {
			return Sleep{Known: true, Sleeps: true, After: time.Duration(seconds) * time.Second, How: "GNOME: " + kind}
		}
	}
	action, found := idleAction(h)
	switch {
	case !found:
		return Sleep{How: "no systemd-logind"}
	case slices.Contains([]string{"suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate", "sleep"}, action):
		return Sleep{Known: true, Sleeps: true, How: "logind IdleAction=" + action}
	}
	if graphical, err := h.Run(ctx, "systemctl", "get-default"); err == nil && strings.TrimSpace(graphical) == "graphical.target" {
		if _, err := h.Run(ctx, "gsettings", "get", power, "sleep-inactive-ac-type"); err != nil {
			return Sleep{How: "a desktop that lanjobs does not know"}
		}
	}
	return Sleep{Known: true, How: "logind IdleAction=" + action}
}

// idleAction reads logind's configuration in its order: the last word counts.
func idleAction(h Host) (action string, found bool) {
	files := []string{"/usr/lib/systemd/logind.conf", "/etc/systemd/logind.conf"}
	drops, _ := filepath.Glob("/usr/lib/systemd/logind.conf.d/*.conf")
	own, _ := filepath.Glob("/etc/systemd/logind.conf.d/*.conf")
	action = "ignore"
	for _, name := range slices.Concat(files, drops, own) {
		text, err := h.ReadFile(name)
		if err != nil {
			continue
		}
		found = true
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "IdleAction="); ok {
				action = value
			}
		}
	}
	return action, found
}

var pmsetSleep = regexp.MustCompile(`(?m)^\s*sleep\s+(\d+)`)

// macSleep reads "sleep 10 (…)", minutes, 0 = never.
func macSleep(ctx context.Context, h Host) Sleep {
	out, err := h.Run(ctx, "pmset", "-g")
	m := pmsetSleep.FindStringSubmatch(out)
	if err != nil || m == nil {
		return Sleep{How: "pmset says nothing"}
	}
	minutes, _ := strconv.Atoi(m[1])
	return Sleep{Known: true, Sleeps: minutes > 0, After: time.Duration(minutes) * time.Minute, How: "pmset"}
}

var powercfgIndex = regexp.MustCompile(`0x([0-9a-fA-F]{8})\s*$`)

// windowsSleep reads the plan's setting. Its words are translated, its order is not: the last two numbers are seconds on mains and
// on battery, 0 = never.
func windowsSleep(ctx context.Context, h Host) Sleep {
	out, err := h.Run(ctx, "powercfg", "/query", "SCHEME_CURRENT", "SUB_SLEEP", "STANDBYIDLE")
	var numbers []int64
	for line := range strings.Lines(out) {
		if m := powercfgIndex.FindStringSubmatch(line); m != nil {
			n, _ := strconv.ParseInt(m[1], 16, 64)
			numbers = append(numbers, n)
		}
	}
	if err != nil || len(numbers) < 2 {
		return Sleep{How: "powercfg says nothing"}
	}
	seconds := numbers[len(numbers)-2]
	return Sleep{Known: true, Sleeps: seconds > 0, After: time.Duration(seconds) * time.Second, How: "powercfg, on mains"}
}

// quarantined tells whether macOS keeps a mark on a program that came over the network.
func quarantined(ctx context.Context, h Host, program string) bool {
	if runtime.GOOS != "darwin" {
		return false
	}
	_, err := h.Run(ctx, "xattr", "-p", "com.apple.quarantine", program)
	return err == nil
}
