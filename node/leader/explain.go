package leader

import (
	"lanjobs/fsm"
	"lanjobs/node/plan"
)

// View is what the running term would plan by at this moment, without what is in flight: for explanations (R41). It is called
// within Log.Read with the state that that gives. nil when this node does not lead.
func (l *Leader) View(s *fsm.State) *plan.View {
	t, err := l.current()
	if err != nil {
		return nil
	}
	presence, _ := t.sessions.offers()
	return &plan.View{State: s, Now: s.Clock, Self: t.cfg.Self, Nodes: presence, Lacks: t.lacksNow()}
}
