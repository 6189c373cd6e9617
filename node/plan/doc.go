// Package plan decides for the leader: which shard goes to which node, which lease has run out, which node is silent, which
// occurrence of a schedule is due, which job's time is over, which shard is to be split, which finished job may go. Each
// function takes what is known and gives commands; none waits, fails, logs or reads a clock.
//
// A plan may change in any release and may even be wrong: fsm checks every command again when it is applied, and refuses
// what no longer fits. So nothing here is a matter of safety, only of doing the right thing soon.
//
// How a shard finds its machine: scan.go walks over the ready jobs, fair.go says whose shard is next, member.go which machines
// fit its stage, resources.go which of them have room, retry.go which are to be avoided, and the strategy of the queue
// (balance.go, and a file each) which one it is. Explain asks the same functions.
//
// What a term remembers between plans is in Flight, Lacks and Timetable. None of it is replicated, and a new leader begins
// without: it would be known anew after the first plans, or is worked out from the ledger.
package plan
