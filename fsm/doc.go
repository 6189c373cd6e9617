// Package fsm is the ledger: the replicated state of a cluster and the laws by which a committed Batch changes it.
//
// It is pure. The next state follows from the state and the batch alone, on every replica and in every replay: no clock,
// no random number, no file, no goroutine, no order of a Go map ever decides anything. Time enters as Batch.Elapsed,
// the milliseconds that a leader has led since its last batch; State.Clock is their sum, and every lease deadline, retry
// time and retention limit is a value of it. What needs a choice (ids, which node, when to expire) is decided by the leader
// before the log and checked again here: a command that no longer fits is refused and changes nothing.
//
// The laws, each held by the tests over random histories, by Check where a state can show it by itself:
//
//	one lease per shard at most, held by one node under one token          (I1)
//	tokens only grow                                                       (I3)
//	a command with a token that is not the shard's current one is refused and audited (I4)
//	a refused command changes nothing and says nothing but its refusal
//	a repeated command is harmless, as long as requestMemory and requestWindow reach (R20)
//	a lease ends by report, by an Expire that finds its deadline passed, or by the next start of its node (I6, I13)
//	a done shard stays done, a final job stays final, unless a person retries
//	each occurrence of a schedule is decided once; one that waits has a run that it waits for (R32)
//	a grant never takes a queue over its limit, and a queue counts what its jobs hold, not what was said (R33)
//	the shards of a range cover it, each number once, however they are split; what an attempt has begun stays its shard's (R35)
//	a key that has succeeded is skipped within its window, also when its job is gone (R31)
//	a job that is not final has an open stage, and a shard that is neither done nor leased becomes ready by itself
//	same log, same bytes, on every replica and of every architecture       (I10)
//	whatever the log holds, Apply neither panics nor takes more memory or time than limits.go allows
//
// How a shard goes on:
//
//	pending -> assigned -> running -> succeeded
//	   ^          |           |
//	   |          +-----------+-> failed (out of attempts), cancelled
//	   +----------------------+   at once, or after its retry time
//
// A stage may get its shards when it opens: one for each line of an output, or one for each member, on which alone it may run. A
// machine that lacks what a shard needs gives it back, which counts for nothing.
//
// A stage waits for those it needs, is open, and ends succeeded, partial, failed or cancelled; or it is skipped. A retry by a
// person makes chosen shards pending again, and every stage that reads from them anew.
//
// Shards are compact records in copy-on-write pages, so that a snapshot of a million of them is taken in well under a
// millisecond and written while Apply goes on. Everything that can be worked out from the records (who holds what, what is
// ready, what falls due next) is kept beside them and rebuilt when a snapshot is read; it is in no snapshot and no digest.
//
// What is stored is copied: neither a log entry's buffer nor a snapshot's is kept. A field is added to a record at its end
// and read only if it is there. A state that uses nothing of level 2 (see Level) is written in the form of level 1, so that its
// bytes and digests stay what they were; one that does is refused by older replicas instead of being read in part. testdata/compat holds old logs and snapshots, which must go on giving the same state.
package fsm
