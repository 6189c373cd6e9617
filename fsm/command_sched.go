package fsm

import "lanjobs/task"

// The commands for schedules, queues, jobs as a whole, and ranges. As all commands they are checked again when they are applied.

// FireSchedule makes the job of one occurrence of a schedule, or applies the schedule's overlap rule if an earlier run is not
// over (R32). It is refused as a conflict if Due does not lie after the schedule's LastDue, so that each occurrence is decided
// once, whatever leaders propose; a Manual one ("run now") does not move LastDue and is known by its RequestID.
type FireSchedule struct {
	Name    string
	Nominal string     // the occurrence's name, unique in its schedule
	Due     int64      // its planned moment, Unix milliseconds: strictly rising; what the task is told it was scheduled for
	Job     task.JobID // id of the job to make; of an occurrence that waits, for when it is made
	// Missed counts the occurrences up to this one that were not fired when they were due; Dropped those of them that never
	// will be. They are not counted for an occurrence that is refused.
	Missed, Dropped int
	Manual          bool
	By              string
	RequestID       task.RequestID
}

// SkipSchedule settles all occurrences up to Due without a job. It is refused like FireSchedule.
type SkipSchedule struct {
	Name, Nominal string
	Due           int64
	Missed        int
	Reason        string
}

// ScheduleAction is what SetSchedule does.
type ScheduleAction string

// The actions.
const (
	SchedulePause  ScheduleAction = "pause"  // nothing fires; an occurrence that waits is skipped
	ScheduleResume ScheduleAction = "resume" // what lies before the resume does not count as missed
	ScheduleRemove ScheduleAction = "remove" // its jobs stay
)

// SetSchedule is a person's act on a schedule.
type SetSchedule struct {
	Name      string
	Action    ScheduleAction
	By        string
	RequestID task.RequestID
}

// JobAction is what SetJob does.
type JobAction string

// The actions.
const (
	JobPause    JobAction = "pause"  // nothing more of it is granted; what runs goes on
	JobResume   JobAction = "resume" // undoes it
	JobPriority JobAction = "priority"
)

// SetJob is a person's act on a job that is not final (R36, R33).
type SetJob struct {
	Job       task.JobID
	Action    JobAction
	Priority  int // with JobPriority, 0 … 100
	By        string
	RequestID task.RequestID
}

// ExpireJob ends a job whose start_within or deadline has passed; it does nothing to another.
type ExpireJob struct{ Job task.JobID }

// SetQueue makes or changes a queue (R33); nil fields stay as they are.
type SetQueue struct {
	Name      string
	Max       *int // most leases of its jobs at once, 0 = no limit
	Paused    *bool
	Balance   *task.Balance
	Remove    bool // refused for the default queue, and while an unfinished job or a schedule uses it
	By        string
	RequestID task.RequestID
}

// Cursor is what the task of a range shard says: nothing from Cursor on is begun (R35). The answer's Range is what it works on
// from then on, which is shorter if the shard was split by it. Repeating a cursor splits nothing.
type Cursor struct {
	Ref       task.ShardRef
	Token     task.Token
	Cursor    int64
	RequestID task.RequestID
}

// SplitShard asks for a running range shard to be split when its task next moves its cursor.
type SplitShard struct {
	Ref   task.ShardRef
	Token task.Token
}

func (*FireSchedule) kind() kind { return kindFireSchedule }
func (*SkipSchedule) kind() kind { return kindSkipSchedule }
func (*SetSchedule) kind() kind  { return kindSetSchedule }
func (*SetQueue) kind() kind     { return kindSetQueue }
func (*SetJob) kind() kind       { return kindSetJob }
func (*ExpireJob) kind() kind    { return kindExpireJob }
func (*Cursor) kind() kind       { return kindCursor }
func (*SplitShard) kind() kind   { return kindSplitShard }
