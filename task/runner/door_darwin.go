package runner

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

func privateSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	return ours(fd, err)
}

// acceptNow takes a waiting connection, EAGAIN if there is none.
func acceptNow(fd int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	conn, _, err := unix.Accept(fd)
	return ours(conn, err)
}

func ours(fd int, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
