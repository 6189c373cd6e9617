// Package plan decides for the leader: which shard goes to which node, which lease has run out, which node is silent, which
// finished job may go. Each function takes what is known and gives commands; none waits, fails, logs or reads a clock.
//
// A plan may change in any release and may even be wrong: fsm checks every command again when it is applied, and refuses
// what no longer fits. So nothing here is a matter of safety, only of doing the right thing soon.
package plan
