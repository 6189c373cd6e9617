// Package leader is the granter's side: it runs on every voter and works only while its node leads.
//
// One term has one writer. Whatever arrives (registrations, renewals, reports, checkpoints, acts of people) is queued; the
// writer gathers the queue and the plan's decisions into one Batch, hands it to Raft, and while up to two batches are in
// flight everything new waits for the next. An answer is given only from the result of a committed batch: nothing that
// grants, renews or refuses rests on believing to be the leader (I5, R19).
//
//	not leading --Lead(ctx, term)--> leading --ctx ends--> not leading
//	   calls answer task.ErrNoLeader       queued and unanswered calls end with task.ErrNoLeader: outcome unknown, repeat them
//
// What fails, and then:
//
//	a batch is refused or its fate unknown   its callers get ErrNoLeader and repeat; every command is harmless when repeated
//	a worker's poll is lost                  the grants it would have carried are sent again with MustRenew at its next poll
//	the leader's machine sleeps or freezes   its clock for Elapsed stands still or is capped: it expires nobody for that time
//
// It never learns rules: those are in plan (which may be wrong) and fsm (which may not).
package leader
