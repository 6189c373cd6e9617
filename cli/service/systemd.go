package service

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// systemd is the manager of most Linux machines.
type systemd struct {
	host Host
	user bool
}

// subgroupSince is the first systemd that knows DelegateSubgroup. Before it, an agent under limits must leave its unit's own control
// group, and systemd could then not start the next agent beside the guard of the last: there, limits are given up for tasks that
// survive their agent.
const subgroupSince = 254

var systemdVersion = regexp.MustCompile(`systemd (\d+)`)

// version is systemd's; 0 = it does not say: it then knows little.
func (s *systemd) version() (n int) {
	out, _ := s.host.Run(context.Background(), "systemctl", "--version")
	if m := systemdVersion.FindStringSubmatch(out); m != nil {
		n, _ = strconv.Atoi(m[1])
	}
	return n
}

// Check is Manager.
func (s *systemd) Check(context.Context) error {
	h, user := s.host, s.user
	switch runtime := h.Getenv("XDG_RUNTIME_DIR"); {
	case user && (runtime == "" || !h.Exists(filepath.Join(runtime, "systemd"))):
		return fmt.Errorf("%w: systemd does not run for this user (no %s/systemd)", ErrNoManager, cmp.Or(runtime, "$XDG_RUNTIME_DIR"))
	case !user && !h.Exists("/run/systemd/system"):
		return fmt.Errorf("%w: systemd does not run here (a container?)", ErrNoManager)
	}
	return nil
}

func (s *systemd) path() string {
	if s.user {
		config := cmp.Or(s.host.Getenv("XDG_CONFIG_HOME"), filepath.Join(s.host.Home(), ".config"))
		return filepath.Join(config, "systemd", "user", Name+".service")
	}
	return "/etc/systemd/system/" + Name + ".service"
}

func (s *systemd) ctl(ctx context.Context, args ...string) (string, error) {
	if s.user {
		args = append([]string{"--user"}, args...)
	}
	return s.host.Run(ctx, "systemctl", args...)
}

// Unit is Manager.
func (s *systemd) Unit(spec Spec) (place, text string) {
	words := []string{quoteUnit(spec.Exe)}
	for _, a := range spec.Args {
		words = append(words, quoteUnit(a))
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# %s. The next one writes it anew; changes of your own: systemctl edit %s", Mark, Name)
	line("[Unit]")
	line("Description=lanjobs node")
	if !s.user { // a user's manager has no such target
		line("Wants=network-online.target")
		line("After=network-online.target")
	}
	line("RequiresMountsFor=%s", quoteUnit(spec.DataDir))
	line("StartLimitIntervalSec=0")
	line("\n[Service]")
	line("Type=exec")
	if spec.User != "" {
		line("User=%s", spec.User)
	}
	line("WorkingDirectory=~")
	line("ExecStart=%s", strings.Join(words, " "))
	line("Restart=always")
	line("RestartSec=2")
	line("# A node that has left its cluster stays down.")
	line("RestartPreventExitStatus=%d", ExitLeft)
	line("SuccessExitStatus=%d", ExitLeft)
	line("# Running tasks wait under their guard for the next agent.")
	line("KillMode=process")
	line("TimeoutStopSec=90")
	line("# A task that uses too much memory ends, its node does not.")
	line("OOMPolicy=continue")
	if s.version() >= subgroupSince {
		line("# The limits of job files need control groups of our own.")
		line("Delegate=yes")
		line("DelegateSubgroup=node")
	}
	line("LimitNOFILE=65536")
	line("\n[Install]")
	if s.user {
		line("WantedBy=default.target")
	} else {
		line("WantedBy=multi-user.target")
	}
	return s.path(), b.String()
}

// quoteUnit writes a word of a command line or a path as systemd reads it back. Some words come from the node that runs, which is its
// user's, and root writes them: none may begin a line of its own.
func quoteUnit(word string) string {
	word = strings.ReplaceAll(word, "%", "%%")
	if !strings.ContainsAny(word, " \"'\\$;") && !strings.ContainsFunc(word, unicode.IsControl) && word != "" {
		return word
	}
	var b strings.Builder
	for _, c := range []byte(strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `$$`).Replace(word)) {
		if c < ' ' || c == 0x7f {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}

// Install is Manager.
func (s *systemd) Install(ctx context.Context, spec Spec) error {
	place, text := s.Unit(spec)
	if err := s.host.WriteFile(place, []byte(text)); err != nil {
		return err
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", Name}, {"restart", Name}} {
		if _, err := s.ctl(ctx, args...); err != nil {
			return err
		}
	}
	if s.user { // without it a user's services end when that user logs out, and do not start before
		if _, err := s.host.Run(ctx, "loginctl", "enable-linger"); err != nil {
			return &Warning{"it runs only while you are logged in (" + err.Error() + ")"}
		}
	}
	return nil
}

// Uninstall is Manager.
func (s *systemd) Uninstall(ctx context.Context) error {
	if !s.host.Exists(s.path()) {
		return nil
	}
	for _, args := range [][]string{{"stop", Name}, {"disable", Name}} {
		if _, err := s.ctl(ctx, args...); err != nil {
			return err
		}
	}
	if err := s.host.Remove(s.path()); err != nil {
		return err
	}
	_, err := s.ctl(ctx, "daemon-reload")
	return err
}

// Start is Manager.
func (s *systemd) Start(ctx context.Context) error {
	_, err := s.ctl(ctx, "start", Name)
	return err
}

// Stop is Manager.
func (s *systemd) Stop(ctx context.Context) error {
	_, err := s.ctl(ctx, "stop", Name)
	return err
}

// State is Manager.
func (s *systemd) State(ctx context.Context) (State, error) {
	st := State{Manager: "systemd", Unit: s.path()}
	text, err := s.host.ReadFile(st.Unit)
	if err != nil {
		return st, nil
	}
	st.Installed, st.Ours = true, strings.Contains(string(text), Mark)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "User":
			st.User = value
		case "ExecStart":
			st.Exe, st.DataDir = fromCommand(splitUnit(value))
		}
	}
	out, err := s.ctl(ctx, "show", Name, "--property=ActiveState,MainPID,UnitFileState")
	if err != nil {
		return st, err
	}
	for line := range strings.Lines(out) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "ActiveState":
			st.Running = value == "active" || value == "activating" || value == "reloading"
		case "MainPID":
			st.PID, _ = strconv.Atoi(value)
		case "UnitFileState":
			st.AtBoot = value == "enabled"
		}
	}
	return st, nil
}

// fromCommand finds the program and its data folder in a command line that Spec made.
func fromCommand(words []string) (exe, dataDir string) {
	for i, w := range words {
		if i == 0 {
			exe = w
		}
		if w == "--data-dir" && i+1 < len(words) {
			dataDir = words[i+1]
		}
	}
	return exe, dataDir
}

// splitUnit undoes quoteUnit for the words of a line.
func splitUnit(line string) (words []string) {
	var word strings.Builder
	quoted, in := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			quoted, in = !quoted, true
		case quoted && (c == '\\' || c == '$') && i+1 < len(line), c == '%' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case c == ' ' && !quoted:
			if in {
				words, in = append(words, word.String()), false
				word.Reset()
			}
		default:
			in = true
			word.WriteByte(c)
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}
