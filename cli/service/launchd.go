package service

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// launchd is the manager of macOS. The service is a daemon and not an agent: it starts before anybody logs in, and macOS' privacy of
// the local network does not concern it, while an agent is told "no route to host" until a person allows each new binary.
type launchd struct {
	host Host
	user bool
}

// Check is Manager.
func (l *launchd) Check(context.Context) error { return nil } // it is the first process of every Mac

func (l *launchd) path() string {
	if l.user {
		return filepath.Join(l.host.Home(), "Library", "LaunchAgents", Name+".plist")
	}
	return "/Library/LaunchDaemons/" + Name + ".plist"
}

func (l *launchd) domain() string {
	if l.user {
		return "gui/" + strconv.Itoa(l.host.UID())
	}
	return "system"
}

func (l *launchd) target() string { return l.domain() + "/" + Name }

// launchdPath is where programs of jobs are looked for: launchd's own has neither Homebrew's folder nor /usr/local.
const launchdPath = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"

// Unit is Manager.
func (l *launchd) Unit(spec Spec) (place, text string) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	pair := func(key, value string) { line("\t<key>%s</key>\n\t<string>%s</string>", key, escapeXML(value)) }
	b.WriteString(xml.Header)
	line("<!-- %s. The next one writes it anew. -->", Mark)
	line(`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">`)
	line("<plist version=\"1.0\">\n<dict>")
	pair("Label", Name)
	line("\t<key>ProgramArguments</key>\n\t<array>")
	for _, w := range append([]string{spec.Exe}, spec.Args...) {
		line("\t\t<string>%s</string>", escapeXML(w))
	}
	line("\t</array>")
	if spec.User != "" {
		pair("UserName", spec.User)
	}
	pair("WorkingDirectory", spec.Home)
	line("\t<key>EnvironmentVariables</key>\n\t<dict>")
	line("\t\t<key>HOME</key>\n\t\t<string>%s</string>", escapeXML(spec.Home))
	line("\t\t<key>PATH</key>\n\t\t<string>%s</string>\n\t</dict>", launchdPath)
	pair("StandardOutPath", spec.LogFile)
	pair("StandardErrorPath", spec.LogFile)
	line("\t<key>RunAtLoad</key>\n\t<true/>")
	line("\t<key>KeepAlive</key>\n\t<dict>\n\t\t<!-- A node that was told to end, or has left its cluster, stays down. -->")
	line("\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>")
	line("\t<key>ThrottleInterval</key>\n\t<integer>2</integer>")
	line("\t<!-- Running tasks wait under their guard for the next agent. -->")
	line("\t<key>AbandonProcessGroup</key>\n\t<true/>")
	line("\t<key>ExitTimeOut</key>\n\t<integer>90</integer>")
	pair("ProcessType", "Adaptive")
	line("</dict>\n</plist>")
	return l.path(), b.String()
}

func escapeXML(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}

// Install is Manager.
func (l *launchd) Install(ctx context.Context, spec Spec) error {
	place, text := l.Unit(spec)
	if err := l.host.WriteFile(place, []byte(text)); err != nil {
		return err
	}
	_ = l.bootout(ctx) // an earlier one, which reads no new file; there may be none
	for _, args := range [][]string{{"enable", l.target()}, {"bootstrap", l.domain(), place}} {
		if _, err := l.host.Run(ctx, "launchctl", args...); err != nil {
			return err
		}
	}
	return nil
}

func (l *launchd) bootout(ctx context.Context) error {
	_, err := l.host.Run(ctx, "launchctl", "bootout", l.target())
	return err
}

func (l *launchd) loaded(ctx context.Context) (string, bool) {
	out, err := l.host.Run(ctx, "launchctl", "print", l.target())
	return out, err == nil
}

// Uninstall is Manager.
func (l *launchd) Uninstall(ctx context.Context) error {
	if err := l.Stop(ctx); err != nil {
		return err
	}
	if !l.host.Exists(l.path()) {
		return nil
	}
	return l.host.Remove(l.path())
}

// Start is Manager.
func (l *launchd) Start(ctx context.Context) error {
	if _, ok := l.loaded(ctx); ok {
		_, err := l.host.Run(ctx, "launchctl", "kickstart", l.target())
		return err
	}
	_, err := l.host.Run(ctx, "launchctl", "bootstrap", l.domain(), l.path())
	return err
}

// Stop is Manager. The service comes back with the machine: its file stays.
func (l *launchd) Stop(ctx context.Context) error {
	if _, ok := l.loaded(ctx); !ok {
		return nil
	}
	return l.bootout(ctx)
}

var launchdPID = regexp.MustCompile(`(?m)^\s*pid = (\d+)`)

// State is Manager.
func (l *launchd) State(ctx context.Context) (State, error) {
	st := State{Manager: "launchd", Unit: l.path()}
	text, err := l.host.ReadFile(st.Unit)
	if err != nil {
		return st, nil
	}
	st.Installed, st.Ours, st.AtBoot = true, strings.Contains(string(text), Mark), true
	words, user := readPlist(string(text))
	st.User = user
	st.Exe, st.DataDir = fromCommand(words)
	out, ok := l.loaded(ctx)
	if m := launchdPID.FindStringSubmatch(out); ok && m != nil {
		st.PID, _ = strconv.Atoi(m[1])
	}
	st.Running = st.PID != 0
	return st, nil
}

// readPlist finds the command line and the user in a file that Unit wrote.
func readPlist(text string) (words []string, user string) {
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = false
	key, element := "", ""
	for {
		t, err := d.Token()
		if err == io.EOF || err != nil {
			return words, user
		}
		switch t := t.(type) {
		case xml.StartElement:
			element = t.Name.Local
		case xml.EndElement:
			element = ""
		case xml.CharData:
			switch {
			case element == "key":
				key = string(t)
			case element == "string" && key == "ProgramArguments":
				words = append(words, string(t))
			case element == "string" && key == "UserName":
				user = string(t)
			}
		}
	}
}
