//go:build windows

package cli

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// detached gives a program no console, so that neither Ctrl-C nor the end of this window reaches it.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// ownerOf is not looked up here: the folder's access list says more than one name could.
func ownerOf(string) string { return "another one" }

// lockFile takes a lock that the system drops when this process ends, however it ends.
func lockFile(name string) (unlock func(), free bool, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if err != nil {
		f.Close()
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			return nil, false, nil
		}
		return nil, false, err
	}
	return func() { f.Close() }, true, nil
}

// privileged tells whether this process may change the machine.
func privileged() bool { return windows.GetCurrentProcessToken().IsElevated() }

// enableTerminal switches a console to escape sequences; it fails where there are none.
func enableTerminal(f *os.File) error {
	var mode uint32
	h := windows.Handle(f.Fd())
	if err := windows.GetConsoleMode(h, &mode); err != nil {
		return err
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
}
