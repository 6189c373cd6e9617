package cli

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
)

// indent of what follows the first line of an error.
const indent = "      "

// report tells of an error on standard error and gives the exit code.
func report(w *world, err error) int {
	if err == nil {
		return exitDone
	}
	if text := explain(err); text != "" {
		fmt.Fprintln(w.stderr, text)
	}
	return exitCode(err)
}

// explain is the text of an error: what happened, why, and what to type.
func explain(err error) string {
	if e, ok := errors.AsType[*exitError](err); ok {
		if e.bare || e.detail == "" {
			return withHint(e.detail, e.hint)
		}
		return withHint("lanjobs: "+e.detail, e.hint)
	}
	if e, ok := errors.AsType[*usageError](err); ok {
		return e.Error()
	}
	if errors.Is(err, transport.ErrNoNode) {
		return withHint("lanjobs: "+transport.ErrNoNode.Error()+".", noNodeHint)
	}
	p := task.Explain(err)
	if len(p.Faults) > 0 {
		// The client has read the file already, so faults from a node have no file name of their own.
		return strings.TrimRight(jobfile.Render("job.yaml", p.Faults), "\n")
	}
	hint := p.Hint
	if hint == "" && p.Code == "no_leader" {
		hint = "Try again in a moment; lanjobs status shows who is there."
	}
	return withHint("lanjobs: "+sentence(p.Detail), hint)
}

const noNodeHint = "run a job here: lanjobs run job.yaml · start a cluster: lanjobs init · join one: lanjobs join MACHINE"

func withHint(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + "\n" + indent + strings.ReplaceAll(hint, "\n", "\n"+indent)
}

// sentence ends a text with a full stop, unless it has some end already.
func sentence(s string) string {
	s = strings.TrimRight(s, " \n")
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?:)") {
		return s
	}
	return s + "."
}

// notYours is a socket that belongs to someone else.
func notYours(owner, user, dataDir string) error {
	return &exitError{
		code:   exitNotAllowed,
		detail: fmt.Sprintf("the node here belongs to user %q; you are %q (socket: permission denied).", owner, user),
		hint: fmt.Sprintf("sudo lanjobs status --data-dir %s   or get your own access: sudo lanjobs login localhost --grant %s --data-dir %s",
			dataDir, user, dataDir),
		cause: transport.ErrSocketPermission,
	}
}

func portOf(peer string) string {
	if _, port, err := net.SplitHostPort(peer); err == nil {
		return port
	}
	return defaultPort
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
