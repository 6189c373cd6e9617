package fsm

// Level is the highest cluster level that this package applies (R47).
const Level = 2

// LevelOf is the cluster level that a command needs of every member: a replica of a lower level would stop at it, or read it in
// another way and part from the others.
func LevelOf(c Command) int {
	if c.kind() >= kindFireSchedule {
		return 2
	}
	if c, ok := c.(*SubmitJob); ok {
		if sp, problem := newSpec(string(c.Spec), ""); problem == "" {
			return sp.level
		}
	}
	return 1 // a key of AdmitNode is skipped by a lower one, which then refuses nobody for it
}

// Members is the lowest level that a member applies, Level if there is none.
func (s *State) Members() int {
	level := Level
	for _, n := range s.nodes {
		if n.Gone == "" && n.Incarnation > 0 {
			level = min(level, max(n.Info.Level, 1))
		}
	}
	return level
}

// level is the lowest level whose snapshots can hold the state: as long as nothing needs a higher one, older replicas can read it.
func (s *State) level() int {
	q := s.queues
	if len(s.schedules) > 0 || len(s.acts) > 0 || len(q) != 1 || q[0].Max != 0 || q[0].Paused || q[0].Balance != "" || q[0].By != "" {
		return 2
	}
	level := 1
	for _, n := range s.nodes {
		if len(n.Key) > 0 || n.Info.Limits != "" {
			level = 2
		}
	}
	s.keys.each(func(_ int, p *KeyProof) bool {
		if p.Key != "" {
			level = 2
		}
		return level < 2
	})
	s.Jobs(func(j *Job) bool {
		if j.Spec.level > 1 || j.Paused || j.Priority != j.Spec.Priority || j.Schedule != "" {
			level = 2
		}
		return level < 2
	})
	return level
}
