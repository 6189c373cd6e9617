// Package clustertest runs whole clusters in virtual time: the real node.Core with the real hashicorp/raft over an in-memory
// network, and machines whose tasks are simulated. Hours pass in seconds, faults are exact, and no test waits for a clock.
package clustertest
