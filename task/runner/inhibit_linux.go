package runner

import (
	"context"
	"fmt"
	"sync"
)

// SystemInhibitor is that of this system: a lock of systemd's login manager.
func SystemInhibitor() Inhibitor { return logindInhibitor{} }

type logindInhibitor struct{}

func (logindInhibitor) Check() error {
	l, err := openLogind(context.Background())
	if err != nil {
		return err
	}
	defer l.close()
	return l.present()
}

// Take holds back sleep, also one that a person asks for without force, and going to sleep when idle. Whoever has no seat at this
// machine may not forbid the first (polkit's inhibit-block-sleep), but still the second. A closed lid is obeyed in any case, unless
// logind.conf says otherwise (LidSwitchIgnoreInhibited).
func (logindInhibitor) Take() (*Hold, error) {
	l, err := openLogind(context.Background())
	if err != nil {
		return nil, err
	}
	defer l.close()
	const why = "tasks are running"
	what := "sleep and idle"
	lock, err := l.inhibit("sleep:idle", why, "block")
	if denied(err) {
		what = "idle sleep only (no right to hold back more)"
		lock, err = l.inhibit("idle", why, "block")
	}
	if err != nil {
		return nil, fmt.Errorf("systemd-logind: %w", err)
	}
	return &Hold{What: what, Release: sync.OnceFunc(func() { _ = lock.Close() })}, nil
}
