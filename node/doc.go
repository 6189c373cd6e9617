// Package node is the body: it puts ledger, Raft, leader, worker, network and audit log together into one process on one
// machine, and holds no rule of its own but one: who votes (voters.go).
//
//	Node      what the CLI starts; builds a machine, and builds it anew when it becomes a member
//	machine   one life: every real part in one straight line, taken down in reverse
//	Core      the part without the machine: ledger, Raft, leader, worker; the same in tests with virtual time
//	ledger    raft.FSM on one side, leader.Log on the other
//
// A node's folder holds all that it is: identity.json and node.key (who it is), node.db (its lock, counters, settings, unsent
// notes, the phone book), raft/ (the log and snapshots), audit/ (what committed entries did), runner/ (attempts and their output).
//
// What fails, and then:
//
//	the agent is killed      the guard keeps its tasks until their deadlines; the next agent takes them over (R14, R44)
//	it is told to stop       leadership is handed over, work is given back and reported (R7, R16)
//	its log is damaged       it does not vote under its name: it comes back as a new member, and says so (I15)
//	its disk is full         it neither leads nor votes, says so, and goes on by itself when there is room (disk.go)
//	node.db is damaged       it is begun anew; what cannot be made again are unsent reports (localrepair.go)
//	the cluster was recovered while it was away: it goes over to the later history (history.go)
//	it was removed           told by a member, it stops what it runs and its Raft, and its status says what to type
//	its folder was copied    the copy is refused before it takes part; copies that meet later: the later one stops
//	it leads and hangs       it says so; others elect a leader as soon as its heartbeats stop
package node
