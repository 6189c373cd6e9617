package cli

import (
	"context"
)

// later is a command that is decided but not built: a person who has read of it gets a clear word and another way.
func later(name, what, instead string) *command {
	return &command{
		name: name, hidden: true, max: -1, takes: ^takes(0), short: what + " (not built yet)",
		run: func(_ context.Context, c *call) error { return notBuilt(c.path, what, instead) },
	}
}

func notBuilt(path, what, instead string) error {
	return &exitError{code: exitUsage, bare: true, detail: path + ": not built yet (" + what + ").", hint: instead}
}
