package task

import "strings"

// Schedule says when a job runs: exactly one of Cron, Every and At, every default filled in (R32). It is plain data: package
// task/schedule checks it and works out its occurrences. Fields are only added.
type Schedule struct {
	Cron         string  `json:"cron,omitempty"` // five fields, or a word such as @daily
	Every        Millis  `json:"every,omitempty"`
	At           string  `json:"at,omitempty"`  // RFC 3339, or a local date and time in Timezone
	Timezone     string  `json:"timezone"`      // IANA name, never the machine's own
	Overlap      Overlap `json:"overlap"`       // what happens while an earlier run is not over
	Misfire      Misfire `json:"misfire"`       // what happens to occurrences that could not be fired when they were due
	MisfireGrace Millis  `json:"misfire_grace"` // an occurrence that is later than this is not made up
	RunAllMax    int     `json:"run_all_max"`   // most occurrences that run_all makes up
	Jitter       Millis  `json:"jitter,omitempty"`
	Paused       bool    `json:"paused,omitempty"`
	Wake         string  `json:"wake,omitempty"` // names of nodes to wake by the network for each run, separated by commas
}

// WakeNames are the nodes of Wake.
func (s *Schedule) WakeNames() []string {
	if s.Wake == "" {
		return nil
	}
	return strings.Split(s.Wake, ",")
}

// Overlap says what happens to an occurrence while a run of the same schedule is not over.
type Overlap string

// The values of Overlap.
const (
	OverlapSkip    Overlap = "skip"
	OverlapQueue   Overlap = "queue"   // at most one waits
	OverlapReplace Overlap = "replace" // the running one is cancelled
	OverlapAllow   Overlap = "allow"
)

// Misfire says what happens to occurrences that could not be fired when they were due.
type Misfire string

// The values of Misfire.
const (
	MisfireSkip    Misfire = "skip"
	MisfireRunOnce Misfire = "run_once" // the latest one
	MisfireRunAll  Misfire = "run_all"  // the latest Schedule.RunAllMax
)
