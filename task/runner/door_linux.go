package runner

import "golang.org/x/sys/unix"

func privateSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

// acceptNow takes a waiting connection, EAGAIN if there is none.
func acceptNow(fd int) (int, error) {
	conn, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	return conn, err
}
