package fsm

// The table of jobs by sequence number. Numbers fit an int of 32 bits with room to reckon, and the table is as long as the
// span between the oldest and the newest job, not as the number of jobs that ever were.
const (
	maxJobSeq  = 1 << 30
	maxJobSpan = 1 << 28 // its table takes 8 MiB
)

// oldestJob is the lowest sequence number in use, that of the next job if none is.
func (s *State) oldestJob() int {
	oldest := s.jobs.n
	s.Jobs(func(j *Job) bool { oldest = j.Seq; return false })
	return oldest
}

// rebase numbers all jobs from the beginning again, in the same order. It happens once in 2^30 jobs.
func (s *State) rebase() {
	pages := s.oldestJob() / pageSize
	s.jobs.pages = s.jobs.pages[pages-s.jobs.first:]
	s.jobs.first = 0
	s.jobs.n -= pages * pageSize
	s.jobs.each(func(seq int, j **Job) bool {
		if *j != nil {
			s.mutJob(seq).Seq = seq
		}
		return true
	})
	s.index()
}
