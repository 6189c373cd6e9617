package runner

import (
	"net"

	"golang.org/x/sys/unix"
)

// peerPid is the process that listens at the other end of a unix socket, 0 if unknown.
func peerPid(conn net.Conn) int {
	return socketPid(conn, func(fd int) (int, error) {
		return unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
}
