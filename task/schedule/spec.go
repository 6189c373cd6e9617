package schedule

import "lanjobs/task"

// Spec says when a job runs; see task.Schedule.
type Spec = task.Schedule

// Limits of a Spec, and of the work that an answer costs.
const (
	MinEvery      = task.Second
	MaxEvery      = 366 * task.Day
	MinGrace      = OnTime
	MaxGrace      = 366 * task.Day
	MaxJitter     = task.Day
	MaxRunAll     = 100
	MaxExpression = 512  // bytes of Cron and At
	MaxCount      = 1000 // missed occurrences that Decide counts, and occurrences that Between gives
	MustFireIn    = 5    // years
)

// Default is the Spec of a job file that gives nothing but cron, every or at (UX 2.1).
func Default() Spec {
	return Spec{Timezone: "UTC", Overlap: task.OverlapSkip, Misfire: task.MisfireRunOnce, MisfireGrace: task.Hour, RunAllMax: MaxRunAll}
}
