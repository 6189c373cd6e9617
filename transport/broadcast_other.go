//go:build !windows

package transport

import "syscall"

// allowBroadcast has nothing to do: Go lets every UDP socket send to broadcast addresses.
func allowBroadcast(string, string, syscall.RawConn) error { return nil }
