package jobfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lanjobs/task"
	"lanjobs/task/schedule"
)

// schedule checks when the job runs (R32). What the texts mean is told by the package that fires them.
func (c *checker) schedule(spec *task.Spec, now time.Time) {
	if spec.Schedule == nil {
		return
	}
	for _, f := range schedule.Check(spec.Schedule, now) {
		message := f.Message
		if _, field, inside := strings.Cut(f.Path, "."); inside && strings.HasPrefix(message, field) {
			message = "schedule." + message
		} else if inside {
			message = f.Path + ": " + message
		}
		c.fault(message, f.Suggestion, f.Path)
	}
	c.wake(spec.Schedule)
	if spec.IdempotencyKey != "" {
		c.fault("idempotency_key and schedule exclude each other: each firing has a key of its own, its name and due time",
			"remove it; for single pieces of work there is shard_key", "idempotency_key", "schedule")
	}
}

// maxWakeText bounds the names of a schedule's machines together, with a comma between: what the ledger takes.
const maxWakeText = 256

// wake checks the names of machines; whether there are such is known where the job is submitted to.
func (c *checker) wake(s *task.Schedule) {
	names := s.WakeNames()
	if len(s.Wake) > maxWakeText {
		c.fault(fmt.Sprintf("schedule.wake has more than %d letters of names", maxWakeText), "", "schedule.wake")
		return
	}
	for i, name := range names {
		at := fmt.Sprintf("schedule.wake[%d]", i)
		if !validName(name) {
			c.fault(fmt.Sprintf("schedule.wake %s is no name of a machine", quote(name)), "as lanjobs node ls shows them, in wake: [nas]", at, "schedule.wake")
		} else if slices.Contains(names[:i], name) {
			c.fault(fmt.Sprintf("schedule.wake has %s twice", quote(name)), "", at, "schedule.wake")
		}
	}
}
