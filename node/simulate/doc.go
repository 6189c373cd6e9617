// Package simulate plays a scenario in virtual time with the real ledger and the real plan, and writes what happens as a
// timeline: machines are lost and come back, leases end, shards move, later triggers are skipped by their keys. It shows how
// the scheduler decides; nothing is run, no cluster is asked, and the same scenario always gives the same text.
//
// Machines are models: a living one renews all that it holds at each heartbeat, and ends a shard once that has run long enough
// and the window has opened. Time goes by ticks. Within a tick the order is that of a leader: the clock, renewals, ends, and
// then decisions until there is nothing more to decide.
package simulate
