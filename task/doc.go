// Package task is the language of lanjobs: the words Job, Stage, Shard, Attempt, Lease, Token, Checkpoint,
// Node, and the pure rules that follow from them alone (lease arithmetic, retry waits, placement matching).
//
// It is a leaf: it imports no other package of lanjobs, opens no file, reads no clock, draws no random number
// and starts no goroutine, so that the replicated state machine (package fsm) may use all of it.
//
// Words, one meaning each:
//
//	Job         one submission of a job file; has stages
//	Stage       a named part of a job with its own shards; opens when the stages it needs are done
//	Shard       one of the N pieces of a stage; the unit that is leased, retried and checkpointed
//	Attempt     one run of a shard on one node under one lease; numbered from 1
//	Execution   the id of an attempt, fresh for every assignment
//	Lease       who may work on a shard, until when (on the cluster clock for the granter, on the boot clock for the holder)
//	Token       the fencing token of a lease; grows over the whole life of the cluster
//	Checkpoint  completed work of a shard as its task described it, written under the lease
//	Node        a machine with a UUID; a worker runs attempts, the leader grants leases
package task
