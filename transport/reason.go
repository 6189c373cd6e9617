package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
)

// plainReason says in a person's words why a connection did not come about, without the addresses and system calls that Go puts
// before it.
func plainReason(err error) string {
	if d, ok := errors.AsType[*DialError](err); ok {
		return d.Error()
	}
	refusal, isRefusal := errors.AsType[*Refusal](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	_, isRecord := errors.AsType[tls.RecordHeaderError](err)
	errno, isErrno := errors.AsType[syscall.Errno](err)
	switch {
	case isRefusal:
		return refusal.Reason.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case isDNS && dns.IsNotFound:
		return "no such host"
	case isRecord:
		return "no TLS is spoken there"
	case isErrno:
		return errnoText(errno)
	case errors.Is(err, io.EOF):
		return "the connection was closed"
	}
	return err.Error()
}

// errnoText uses the same words on all systems; those of Windows are whole sentences.
func errnoText(e syscall.Errno) string {
	if runtime.GOOS == "windows" {
		switch e {
		case 10051: // WSAENETUNREACH
			return "network is unreachable"
		case 10054: // WSAECONNRESET
			return "connection reset by peer"
		case 10060: // WSAETIMEDOUT
			return "connection timed out"
		case 10061: // WSAECONNREFUSED
			return "connection refused"
		case 10065: // WSAEHOSTUNREACH
			return "no route to host"
		}
	}
	return e.Error()
}
