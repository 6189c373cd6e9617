package transport

import (
	"strings"
	"syscall"
)

// allowBroadcast lets a UDP socket send to broadcast addresses. Go does so by itself but for IPv6 sockets on Windows, which
// carry IPv4 here.
func allowBroadcast(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "udp") {
		return nil
	}
	// Where that is refused there are no beacons over IPv4; all else works.
	return c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(syscall.Handle(fd), syscall.SOL_SOCKET, syscall.SO_BROADCAST, 1)
	})
}
