package api
import ("testing";"math/rand";"fmt";"lanjobs/node/plan";"lanjobs/task";"lanjobs/fsm")
func TestZZ(t *testing.T) {
	for _, seed := range []int64{7,135,754} {
	r := rand.New(rand.NewSource(seed)); c := randomCluster(t, r)
	for _, n := range c.state.Nodes() { _, h := c.seen[n.Info.ID]; fmt.Println(n.Info.ID, n.Info.Labels, "online", n.Online, "drain", n.Draining, "slots", n.Info.Slots, "held", c.state.Held(n.Info.ID), "heard", h) }
	j := c.state.Job("j1")
	for i := range j.Stages { fmt.Println("stage", i, j.Spec.Stages[i].Require, "par", j.Spec.Stages[i].Parallelism, "retryElse", j.Spec.Stages[i].Retry.ElsewhereOn)
	for k := range j.Stages[i].Len() { sh := j.Stages[i].At(k); fmt.Print("  ", k, sh.State, " due ", sh.Due, " fails ", sh.Fails); for _, h := range sh.History() { fmt.Print(" [", h.Node, " ", h.Outcome.ExitCode, h.Outcome.End, "]") }; 
		c.api.look(&request{}, func(v *view) { fmt.Print("  ", plan.Explain(v.plan(), "j1", i, k)) }); fmt.Println() } }
	pv := &plan.View{State: c.state, Now: c.state.Clock, Self: "n0", Nodes: map[task.NodeID]plan.Presence{}, Flight: plan.NewFlight()}
	for _, n := range c.state.Nodes() { if _, heard := c.seen[n.Info.ID]; heard { pv.Nodes[n.Info.ID] = plan.Presence{Want: 8, Heard: true} } }
	for _, g := range plan.Place(pv) { fmt.Printf("GRANT %+v\n", g.(*fsm.Grant)) }
	}
}
