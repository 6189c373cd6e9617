//go:build unix

package cli

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// detached gives a program a session of its own, so that neither Ctrl-C nor the end of this terminal reaches it.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}

// ownerOf names the user that a folder belongs to.
func ownerOf(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return "another one"
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "another one"
	}
	id := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// lockFile takes a lock that the system drops when this process ends, however it ends.
func lockFile(name string) (unlock func(), free bool, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, false, nil
		}
		return nil, false, err
	}
	return func() { f.Close() }, true, nil
}

// privileged tells whether this process may change the machine.
func privileged() bool { return os.Geteuid() == 0 }

// enableTerminal does nothing: terminals here move the cursor as they are.
func enableTerminal(*os.File) error { return nil }
