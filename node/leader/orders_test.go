package leader

import (
	"context"
	"testing"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// TestOrdersAreForgottenWithTheirAttempts: a term lasts for months, and each attempt that was ever stopped would stay.
func TestOrdersAreForgottenWithTheirAttempts(t *testing.T) {
	lead(t, func(o *office) {
		remembered := func() int {
			n, err := o.l.current()
			if err != nil {
				t.Fatal(err)
			}
			return len(n.sessions.nodes["b"].orders)
		}
		stop := func() {
			job := o.submit(1)
			a := o.poll(1).Assignments[0]
			if r, err := o.l.Propose(context.Background(), &fsm.CancelJob{Job: job}); err != nil || r.Err != nil {
				t.Fatal(err, r.Err)
			}
			if got := o.poll(1, a.Token).Orders; len(got) != 1 || remembered() != 1 {
				t.Fatalf("%+v, %d remembered", got, remembered())
			}
			report := &transport.ReportRequest{Reports: []task.Report{{Job: job, Token: a.Token, Outcome: task.Outcome{End: task.EndCancelled}}}}
			o.call("b", transport.MethodReport, report, &transport.ReportReply{})
		}
		for range 3 {
			stop()
		}
		o.poll(1)
		if n := remembered(); n != 0 {
			t.Fatalf("%d orders are remembered, and nothing runs", n)
		}
	})
}
