package cli

import (
	"errors"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task/jobfile"
)

// lengthValue is the value of a flag that takes a length of time as job files have it: 30s, 1h30m, 7d. What package flag would take
// besides, as 1.5h, it takes too.
type lengthValue time.Duration

func (v *lengthValue) Set(s string) error {
	m, err := jobfile.ParseLength(s)
	if err == nil {
		*v = lengthValue(m.Duration())
		return nil
	}
	d, other := time.ParseDuration(s)
	if other == nil && d >= 0 {
		*v = lengthValue(d)
		return nil
	}
	return errors.New(jobfile.SuggestLength(s, err))
}

// String is what urfave/cli's Context.Duration reads back.
func (v *lengthValue) String() string { return time.Duration(*v).String() }

// lengthFlag makes such a flag.
func lengthFlag(name string, value time.Duration, usage string, variables ...string) *urfave.GenericFlag {
	v := lengthValue(value)
	return &urfave.GenericFlag{Name: name, Value: &v, Usage: usage, EnvVars: variables}
}
