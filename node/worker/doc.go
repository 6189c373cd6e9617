// Package worker is the holder's side of the lease: it asks the leader for work, runs it through a Runner, renews what it
// holds, stops what it may no longer believe in, and brings every end to the leader until that is acknowledged.
//
// It knows the leader only as a Control and the processes only as a Runner. It must never know who leads, how a grant was
// decided, where a peer is, or the wall clock of anybody: one machine's boot clock and the messages are all it counts with.
//
// # One attempt
//
//	            poll reply
//	                │ admit (closing, asleep: declined at once, R7)
//	                v
//	             queued ──────────── no slot until its first lease is over ──────> forgotten
//	                │ slot free
//	                v
//	            preparing  spec fetched or cached
//	                │
//	  MustRenew, or │ less than half of the holder's share left
//	     ┌──────────┤
//	     v          │ first lease fresh (counted from before the poll was written)
//	confirming      │
//	     │ renewal  │
//	     │ acked    │                      Lost, not in Keep: stop without grace,
//	     └──────────┤                      and from then on no belief and no renewal
//	                v                                      ^
//	            starting ──> running ──────────────────────┘
//	                │           │ Term: SIGTERM   Kill: SIGKILL   order: SIGTERM, grace, SIGKILL
//	                v           v
//	              exit: the slot is free, the end is in the outbox
//	                │ acknowledged: accepted, or refused as stale
//	                v
//	              gone: Runner.Forget
//
// # Parts
//
//	session   registers, keeps one long poll parked, admits what it brings      (one goroutine)
//	launch    gives queued attempts their slots, fetches specs, starts          (one goroutine, one more per start)
//	keeper    deadlines first, then renewals, then sleep until the next of both (one goroutine, one more per request)
//	collect   takes exits from the runner into the outbox                       (one goroutine)
//	deliver   sends reports in groups                                           (one goroutine, at most two requests)
//	backend   answers running tasks                                             (the runner's goroutines)
//
// They share one book of attempts under one mutex that is never held over a call to Control, Runner or Store.
//
// # Hold
//
// An assignment's first lease is counted from before the poll that fetched it was written, since that is the only moment of
// which this node knows that it lies before the grant. Each second that the poll was parked is therefore lost from the first
// lease. A poll is held for at most a quarter of the shortest first lease seen of late: then at least 0.8 − 0.25 of it is
// left at arrival, more than the half of 0.8 that a start without a further round trip asks for, with room for a slow
// network. Never more than 10 s, as the poll is also the heartbeat of an idle node. Before the first assignment the length
// is unknown: 5 s suits every first lease from 20 s up (30 s is the rule), and a shorter one only costs its first attempt
// one renewal before the start. A short lease is forgotten after 10 minutes, so that one 2 s job does not make an idle
// node ask twice a second for ever.
//
// # Want
//
// A poll asks for as many assignments as the node has slots, not as are free at the moment it is written. The leader grants
// no more than slots less the leases it counts for the node, and that count goes down in the entry that takes a report: so
// a freed slot is offered without a word from here, and the poll parked long ago is still right. Less is asked for only
// where that count is wrong (a process outlives its lost lease), and nothing when the node is about to end or to sleep. Should more come than there are
// slots for, it waits for one, known to the leader, until its first lease is over.
//
// # Where a report lives
//
// The runner's exit record is the durable home of an end: the guard writes it anyway, before anybody knows of the exit,
// and it stays until Forget, which is called only after the leader's acknowledgement (R20, I15). Writing the report a second
// time would cost one more disk write per attempt, most of what a very short attempt costs, and save nothing. After a
// restart the runner delivers the exit again. The Store holds only what has no such record: that a task asked to be
// deferred (before Defer returns), and ends of attempts that never started, those only once they had to wait. If a report
// is lost nevertheless (the runner does not sync its records: a power cut), it was not acknowledged to anybody either: the
// node registers without that token and the shard runs again.
//
// # When something fails
//
//	leader gone, cut off        renewals are retried after TTL/60, /30, /15; work goes on; at Term SIGTERM, at Kill SIGKILL (R10)
//	request arrives, reply lost the lease is longer than this node believes: it stops too early, never too late (R9)
//	reply late or twice         counted from its own request; a later belief is never shortened
//	slow disk at the leader     a renewal out of time counts as failed, yet its late acknowledgement still counts
//	poll reply lost             the leader sees the tokens missing in Holding and sends them again, MustRenew: not started before an ack
//	machine slept, was frozen   within 200 ms of running again: what lapsed is killed without grace, then all is renewed (I2, I11)
//	agent killed, upgraded      the guard keeps deadlines and exits; the next agent takes Held, registers with it (R14, R44)
//	leader does not know it     registers again with all it holds; what is not kept is killed before anything else (I13)
//	stale token anywhere        the attempt is stopped without grace; its own report is still sent, to be refused and audited (R11)
//	report lost, repeated       repeated until acknowledged; the leader takes it once (R20)
//	store full, broken          said in the log; the report stays in memory
//	agent ends (Run's ctx)      nothing is stopped; Shutdown before it is the way to end the work too
package worker
