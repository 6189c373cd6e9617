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

// Sight is what the running term knows besides the ledger, for plan.Explain: it makes a View of a state that is held still. Get
// it before the state is held. ok is false when this node does not lead.
func (l *Leader) Sight() (view func(*fsm.State) *plan.View, ok bool) {
	t, err := l.current()
	if err != nil {
		return nil, false
	}
	presence, _ := t.sessions.offers()
	t.mu.Lock()
	flight, lacks := t.flight.Clone(), t.lacks.Clone()
	t.mu.Unlock()
	return func(s *fsm.State) *plan.View {
		t.sessions.judge(s, presence)
		return &plan.View{State: s, Now: s.Clock, Self: t.cfg.Self, Nodes: presence, Flight: flight, Lacks: lacks}
	}, true
}
