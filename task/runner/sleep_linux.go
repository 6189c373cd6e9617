package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godbus/dbus/v5"

	"lanjobs/task"
)

// Bounds of the time that a delay lock gives (InhibitDelayMaxSec of logind.conf, 5 s by default). Some of it is kept for letting go
// of the lock: logind does not wait a moment longer.
const (
	defaultDelay = 5 * time.Second
	maxDelay     = 30 * time.Second
)

// WatchSleep tells s of each sleep until ctx ends, by a delay lock of systemd's login manager.
func WatchSleep(ctx context.Context, clock task.Clock, s Sleeper) error {
	for ctx.Err() == nil {
		err := watchLogind(ctx, s)
		if ctx.Err() != nil {
			return nil
		}
		s.Watching(err)
		select {
		case <-clock.After(retryNotices):
		case <-ctx.Done():
		}
	}
	return nil
}

// watchLogind watches over one connection; it ends with an error when that is gone.
func watchLogind(ctx context.Context, s Sleeper) error {
	l, err := openLogind(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	signals := make(chan *dbus.Signal, 16)
	l.conn.Signal(signals)
	err = l.conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(logindName), dbus.WithMatchInterface(logindManager),
		dbus.WithMatchMember("PrepareForSleep"), dbus.WithMatchObjectPath(logindPath))
	if err != nil {
		return err
	}
	lock, err := l.delay()
	if err != nil {
		return fmt.Errorf("systemd-logind: %w", err)
	}
	defer func() { _ = lock.Close() }()
	s.Watching(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case sig, open := <-signals:
			if !open {
				return errors.New("the system bus has closed the connection")
			}
			begins, ok := prepareForSleep(sig)
			switch {
			case !ok:
			case begins:
				s.Sleeps(l.budget())
				_ = lock.Close() // the machine sleeps now
			default:
				s.Woke()
				if lock, err = l.delay(); err != nil {
					return fmt.Errorf("systemd-logind: %w", err)
				}
			}
		}
	}
}

// delay takes the lock that makes logind wait before a sleep.
func (l *logind) delay() (*os.File, error) {
	return l.inhibit("sleep", "hands its work over first", "delay")
}

// budget is for how long logind waits.
func (l *logind) budget() time.Duration {
	d := defaultDelay
	if v, err := l.conn.Object(logindName, logindPath).GetProperty(logindManager + ".InhibitDelayMaxUSec"); err == nil {
		if us, ok := v.Value().(uint64); ok && us < uint64(maxDelay/time.Microsecond) {
			d = time.Duration(us) * time.Microsecond
		} else if ok {
			d = maxDelay
		}
	}
	return d - d/10
}

// prepareForSleep reads the signal: true before a sleep, false after it.
func prepareForSleep(sig *dbus.Signal) (begins, ok bool) {
	if sig == nil || sig.Name != logindManager+".PrepareForSleep" || len(sig.Body) != 1 {
		return false, false
	}
	begins, ok = sig.Body[0].(bool)
	return begins, ok
}
