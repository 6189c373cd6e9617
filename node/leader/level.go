package leader

import (
	"fmt"

	"lanjobs/fsm"
	"lanjobs/task"
)

// tooOld refuses a node that has gone back to a binary of a lower level than all members have: what is in the log and the state
// by then, it would read in another way than the others (R47). While any member is as old, an upgrade is under way and may
// be taken back.
func (t *term) tooOld(info *task.NodeInfo) (err error) {
	t.cfg.Log.Read(func(s *fsm.State) {
		n, level := s.Node(info.ID), s.Members()
		if n != nil && n.Incarnation > 0 && info.Level < n.Info.Level && max(info.Level, 1) < level {
			err = LevelProblem(s, info, level)
		}
	})
	return err
}

// fitInfo leaves out of what a node says of itself what a member of a lower level would not keep: the replicas would part. It tells whether
// nothing had to be.
func (t *term) fitInfo(info *task.NodeInfo) (whole bool) {
	t.cfg.Log.Read(func(s *fsm.State) {
		level := s.Members()
		whole = level >= fsm.LevelCare
		*info = fsm.InfoOf(*info, level)
	})
	return whole
}

// owesInfo tells whether a node is to register once more, since an upgrade is complete and what it said of itself before was perhaps left out.
// Who has nothing more to say is asked once in a term.
func (t *term) owesInfo(id task.NodeID) (owes bool) {
	t.cfg.Log.Read(func(s *fsm.State) {
		n := s.Node(id)
		owes = n != nil && n.Info.Level >= fsm.LevelCare && !fsm.NewerInfo(&n.Info) && s.Members() >= fsm.LevelCare
	})
	return owes && !t.sessions.saidAll(id)
}

// LevelProblem tells a node that it is not of the versions that work together.
func LevelProblem(s *fsm.State, info *task.NodeInfo, level int) *task.Problem {
	runs, name := "a newer version", s.Cluster.Name
	for _, n := range s.Nodes() {
		if n.Gone == "" && n.Info.ID != info.ID && n.Info.Level == level && n.Info.Version != "" {
			runs = n.Info.Version
		}
	}
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("this is lanjobs %s (level %d), %q runs %s (level %d) on every machine; only neighbouring versions work together, and only until an upgrade is complete. Nothing was changed.",
		info.Version, max(info.Level, 1), name, runs, level), "Use "+runs+" here: lanjobs help upgrade")
}
