package fsm

// Level is the highest cluster level that this package applies (R47).
const Level = 3

// LevelCare is the level from which on crashes and presence are counted, see Care. Rules of Apply that came with it or later hold
// from it on as well.
const LevelCare = 3

// LevelOf is the cluster level that a command needs of every member: a replica of a lower level would stop at it, or read it in
// another way and part from the others.
func LevelOf(c Command) int {
	switch c := c.(type) {
	case *AdmitClient, *RemoveClient:
		return 3
	case *CreateToken:
		if c.Role != "" {
			return 3
		}
	case *RegisterNode:
		if c.Caring {
			return 3
		}
	case *SetOnline:
		if c.Caring {
			return 3
		}
	case *SetNode:
		switch c.Action {
		case NodeClear, NodePromote, NodeDemote, NodeAuto:
			return 3
		}
	}
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
	level := 1
	need := func(l int, does bool) bool {
		if does {
			level = max(level, l)
		}
		return level < 3 // there is nothing higher to look for
	}
	q := s.queues
	need(3, len(s.clients) > 0)
	need(2, len(s.schedules) > 0 || len(s.acts) > 0 || len(q) != 1 || q[0].Max != 0 || q[0].Paused || q[0].Balance != "" || q[0].By != "")
	for _, n := range s.nodes {
		need(3, n.Care != (Care{}))
		need(2, len(n.Key) > 0 || n.Info.Limits != "")
	}
	for _, t := range s.tokens {
		need(3, t.Role != "")
	}
	for _, sc := range s.schedules {
		need(sc.Spec.level, true)
	}
	if level == 1 { // keys have nothing of a higher one
		s.keys.each(func(_ int, p *KeyProof) bool { need(2, p.Key != ""); return level < 2 })
	}
	if level < 3 {
		s.Jobs(func(j *Job) bool {
			need(2, j.Paused || j.Priority != j.Spec.Priority || j.Schedule != "")
			return need(j.Spec.level, true)
		})
	}
	return level
}
