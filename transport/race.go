package transport

import (
	"context"
	"net"
	"time"

	"lanjobs/task"
)

// race tries addresses, each dialStagger after the one before or at once when that has failed, and gives the first connection that
// comes about and where it leads. No connection and no error: all have failed, for the reasons in tried. The error is the cause of ctx.
func race(ctx context.Context, clock task.Clock, addrs []string, dial func(context.Context, string) (net.Conn, error)) (conn net.Conn, addr string, tried []AddrError, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answers := make(chan dialAnswer, len(addrs))
	next, running := 0, 0
	start := func() {
		addr := addrs[next]
		next++
		running++
		go func() {
			conn, err := dial(ctx, addr)
			a := dialAnswer{addr: addr, conn: conn, err: err}
			if err == nil {
				a.keep = context.AfterFunc(ctx, func() { _ = conn.Close() }) // another one was faster
			}
			answers <- a
		}()
	}
	for next < len(addrs) || running > 0 {
		if next < len(addrs) {
			start()
		}
		a, ok := awaitAnswer(ctx, clock, answers, next < len(addrs))
		if !ok {
			continue
		}
		running--
		if a.err == nil && a.keep() {
			return a.conn, a.addr, nil, nil
		}
		if a.err != nil {
			tried = append(tried, AddrError{a.addr, a.err})
		}
		if ctx.Err() != nil {
			return nil, "", nil, context.Cause(ctx)
		}
	}
	return nil, "", tried, nil
}

type dialAnswer struct {
	addr string
	conn net.Conn
	err  error
	keep func() bool // false if the connection was given up meanwhile
}

// awaitAnswer waits for an attempt to end; if there is another address to try, only for as long as the lead of this one.
func awaitAnswer(ctx context.Context, clock task.Clock, answers <-chan dialAnswer, more bool) (dialAnswer, bool) {
	var lead <-chan time.Time
	if more {
		timer := clock.NewTimer(dialStagger)
		defer timer.Stop()
		lead = timer.C()
	}
	select {
	case a := <-answers:
		return a, true
	case <-lead:
		return dialAnswer{}, false
	case <-ctx.Done():
		return dialAnswer{err: context.Cause(ctx)}, true
	}
}
