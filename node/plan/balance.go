package plan

import (
	"lanjobs/fsm"
	"lanjobs/task"
)

// strategy says which of the machines that fit gets a shard (R33). To add one: a file with a type that has this method, a
// task.Balance, and a line in strategyOf.
type strategy interface {
	// choose gives the index of the seat that gets the shard now, or -1: the shard waits for the seat that it belongs to. The
	// seats stand in a fixed order; some may have no room, and what is chosen must have some.
	choose(p *pick, f *fit) int
}

// owning is a strategy by which every shard belongs to one machine.
type owning interface {
	strategy
	// owner gives the index of that machine's seat. There is at least one seat.
	owner(p *pick, f *fit) int
}

var _, _ owning = modulo{}, consistentHash{}

// ifRoom gives a seat if it has room, else -1.
func ifRoom(f *fit, i int) int {
	if !f.room(i) {
		return -1
	}
	return i
}

// pick is one shard that looks for a machine.
type pick struct {
	job          *fsm.Job
	stage, shard int
	last         int    // member.at of who got the queue's last shard, -1 = nobody yet
	work         uint64 // hash of the names of job and stage, once asked for
}

// strategyOf gives the strategy of a queue.
func strategyOf(b task.Balance) strategy {
	switch b {
	case task.BalanceRoundRobin:
		return roundRobin{}
	case task.BalanceModulo:
		return modulo{}
	case task.BalanceConsistentHash:
		return consistentHash{}
	}
	return leastLoaded{}
}
