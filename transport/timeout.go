package transport

import (
	"context"
	"net"
	"time"

	"lanjobs/task"
)

// WithTimeout is context.WithTimeout on an injected clock; the cause is context.DeadlineExceeded. cancel must be called.
func WithTimeout(parent context.Context, clock task.Clock, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	timer := clock.NewTimer(d)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel(context.DeadlineExceeded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// longAgo as a deadline makes blocked reads and writes of a connection return at once.
var longAgo = time.Unix(1, 0)

// boundConn makes reads and writes of conn fail when ctx ends, so that a handshake needs no clock of its own. free must be
// called before the connection is used further; it reports false if ctx was faster and the connection is spoilt.
func boundConn(ctx context.Context, conn net.Conn) (free func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(longAgo) })
}
