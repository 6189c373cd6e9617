package jobfile

import (
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
	if spec.IdempotencyKey != "" {
		c.fault("idempotency_key and schedule exclude each other: each firing has a key of its own, its name and due time",
			"remove it; for single pieces of work there is shard_key", "idempotency_key", "schedule")
	}
}
