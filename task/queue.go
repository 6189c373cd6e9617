package task

import "slices"

// DefaultQueue is the queue of a job file that names none. It is always there.
const DefaultQueue = "default"

// Balance says which of the fitting machines gets a shard of a queue's jobs (R33).
type Balance string

// The values of Balance.
const (
	BalanceLeastLoaded    Balance = "least-loaded" // the default
	BalanceRoundRobin     Balance = "round-robin"
	BalanceModulo         Balance = "modulo"          // shard number modulo number of machines
	BalanceConsistentHash Balance = "consistent-hash" // the same shard to the same machine, as long as it is there
)

// Balances are all of them, the default first.
var Balances = []Balance{BalanceLeastLoaded, BalanceRoundRobin, BalanceModulo, BalanceConsistentHash}

// Known tells whether b is one of Balances.
func (b Balance) Known() bool { return slices.Contains(Balances, b) }
