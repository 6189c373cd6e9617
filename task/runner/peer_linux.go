package runner

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerPid is the process that listens at the other end of a unix socket, 0 if unknown.
func peerPid(conn net.Conn) int {
	return socketPid(conn, func(fd int) (int, error) {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return 0, err
		}
		return int(cred.Pid), nil
	})
}
