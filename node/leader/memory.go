package leader

import (
	"time"

	"lanjobs/fsm"
	"lanjobs/node/plan"
	"lanjobs/task"
)

// note takes from what is about to be written what the plans remember and whom it may order to stop. The caller holds mu.
func (t *term) note(s *fsm.State, b *batch, commands []fsm.Command, awake time.Duration) {
	t.lacks.Pass(awake)
	for _, c := range commands {
		r, ok := c.(*fsm.Report)
		if !ok {
			continue
		}
		for i := range r.Reports {
			o := &r.Reports[i].Outcome
			if o.End == task.EndExited && o.ExitCode == 0 {
				continue
			}
			l := s.Lease(r.Reports[i].Token)
			if l == nil {
				continue
			}
			spec := &s.JobBySeq(l.Seq).Spec.Stages[l.Ref.Stage]
			if o.End == task.EndUnmet {
				t.lacks.Note(r.Node, spec, o.Message, awake)
				t.shown.Store(t.lacks.Clone())
			}
			b.orders = b.orders || spec.Success.FailFast
		}
	}
}

// ending notes that decisions may end attempts that run.
func (t *term) ending(b *batch, decisions []fsm.Command) []fsm.Command {
	b.orders = b.orders || len(decisions) > 0
	return decisions
}

// untilMore is how long until a plan may find something without anything having happened. The caller holds mu.
func (t *term) untilMore() time.Duration {
	wait := time.Hour
	if t.flight.More() {
		wait = moreEvery
	}
	awake := t.cfg.Clock.Awake()
	if next, ok := t.lacks.Pass(awake); ok {
		wait = min(wait, next-awake)
	}
	return wait
}

// lacksNow gives what is known to be lacking, for who does not hold mu.
func (t *term) lacksNow() *plan.Lacks {
	shown := t.shown.Load()
	if shown == nil {
		return nil
	}
	l := shown.Clone()
	l.Pass(t.cfg.Clock.Awake())
	return l
}
