package cli

import (
	"context"
	"errors"

	"lanjobs/task"
	"lanjobs/transport"
)

// The exit codes, promised for good.
const (
	exitDone        = 0   // partial success that meets its own threshold counts
	exitBad         = 1   // it worked, but the answer is bad: job failed, cluster degraded
	exitUsage       = 2   // wrong usage or invalid job file, nothing was sent
	exitNoNode      = 3   // no node here, or it is no member
	exitNotAllowed  = 4   // not allowed, approval needed
	exitNotFound    = 5   // no such job, node, queue
	exitUnreachable = 6   // no leader, no quorum, peer unreachable: try again
	exitConflict    = 7   // same key with another file, lease lost, changed meanwhile
	exitTimeout     = 8   // --timeout passed while waiting, the job goes on
	exitInterrupted = 130 // Ctrl-C, the job goes on
)

// exitError ends a command with a code of its own and a text, which may be empty: everything was said already.
type exitError struct {
	code         int
	detail, hint string
	bare         bool // without "lanjobs: " in front
	cause        error
}

func (e *exitError) Error() string { return e.detail }
func (e *exitError) Unwrap() error { return e.cause }

// silently ends with a code when all has been said.
func silently(code int) error { return &exitError{code: code} }

// exitCode maps an error to its code.
func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	for _, m := range []struct {
		err  error
		code int
	}{
		{transport.ErrNoNode, exitNoNode}, {errInterrupted, exitInterrupted}, {errTimedOut, exitTimeout},
		{task.ErrNotAllowed, exitNotAllowed}, {transport.ErrSocketPermission, exitNotAllowed}, {task.ErrNotFound, exitNotFound}, {task.ErrNoLeader, exitUnreachable},
		{task.ErrConflict, exitConflict}, {task.ErrStaleToken, exitConflict},
		{task.ErrInvalid, exitUsage}, {task.ErrTooLarge, exitUsage},
	} {
		if errors.Is(err, m.err) {
			return m.code
		}
	}
	return exitBad
}

// leftEarly puts Ctrl-C or the end of --timeout in the place of whatever broke because of it. A command that has said
// something better itself, and a lack of leader that was known before, stay.
func leftEarly(err, cause error) error {
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	switch {
	case errors.Is(cause, errInterrupted):
		return &exitError{code: exitInterrupted, cause: errInterrupted}
	case errors.Is(cause, errTimedOut) && errors.Is(err, task.ErrNoLeader):
		return err
	case errors.Is(cause, errTimedOut):
		return &exitError{code: exitTimeout, detail: "time is up (--timeout).", cause: errTimedOut}
	case errors.Is(cause, context.Canceled):
		return &exitError{code: exitInterrupted}
	}
	return err
}
