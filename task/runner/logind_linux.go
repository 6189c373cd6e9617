package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godbus/dbus/v5"
)

// Names of systemd's login manager on the system bus.
const (
	logindName      = "org.freedesktop.login1"
	logindPath      = "/org/freedesktop/login1"
	logindManager   = logindName + ".Manager"
	busAccessDenied = "org.freedesktop.DBus.Error.AccessDenied"
	busAuthRequired = "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"
)

// busTimeout bounds one call. Neither bus nor login manager does anything slow for us.
const busTimeout = 5 * time.Second

// logind is the login manager through one connection to the system bus.
type logind struct{ conn *dbus.Conn }

// openLogind connects. The error is one line for a person.
func openLogind(ctx context.Context) (*logind, error) {
	conn, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("no system bus (%w)", err)
	}
	return &logind{conn}, nil
}

func (l *logind) close() { _ = l.conn.Close() }

func (l *logind) call(method string, args ...any) *dbus.Call {
	ctx, cancel := context.WithTimeout(l.conn.Context(), busTimeout)
	defer cancel()
	return l.conn.Object(logindName, logindPath).CallWithContext(ctx, method, 0, args...)
}

// inhibit takes a lock, which lasts until the file is closed: with this process at the latest. The connection may go before.
func (l *logind) inhibit(what, why, mode string) (*os.File, error) {
	var fd dbus.UnixFD
	if err := l.call(logindManager+".Inhibit", what, "lanjobs", why, mode).Store(&fd); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "inhibitor"), nil
}

// present tells whether a login manager answers on the bus, or would be started by it.
func (l *logind) present() error {
	var owned bool
	ctx, cancel := context.WithTimeout(l.conn.Context(), busTimeout)
	defer cancel()
	err := l.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, logindName).Store(&owned)
	if err == nil && !owned {
		err = errors.New("systemd-logind does not run here")
	}
	return err
}

// denied tells whether the caller lacks the right for a lock.
func denied(err error) bool {
	e, ok := errors.AsType[dbus.Error](err)
	return ok && (e.Name == busAccessDenied || e.Name == busAuthRequired)
}
