// Package fsm is the ledger: the replicated state of a cluster and the laws by which a committed Batch changes it.
//
// It is pure. The next state follows from the state and the batch alone, on every replica and in every replay: no clock,
// no random number, no file, no goroutine, no order of a Go map ever decides anything. Time enters as Batch.Elapsed,
// the milliseconds that a leader has led since its last batch; State.Clock is their sum, and every lease deadline, retry
// time and retention limit is a value of it. What needs a choice (ids, which node, when to expire) is decided by the leader
// before the log and checked again here: a command that no longer fits is refused and changes nothing.
//
// The laws, each checked by Check after every step of the tests:
//
//	one lease per shard at most, held by one node under one token          (I1)
//	tokens only grow                                                       (I3)
//	a command with a token that is not the shard's current one is refused  (I4)
//	a lease ends by report, release or an Expire that finds its deadline passed (I6)
//	a done shard stays done, a final job stays final, unless a person retries
//	same log, same bytes                                                   (I10)
//
// Shards are compact records in copy-on-write pages, so that a snapshot of a million of them is taken in well under a
// millisecond and written while Apply goes on.
package fsm
