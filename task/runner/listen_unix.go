//go:build unix

package runner

import "net"

// listenTask opens the socket of an attempt, at the same path in each life of the agent.
func (r *Runner) listenTask(a *attempt) (net.Listener, error) {
	return listenUnix(r.paths(a.x).socket)
}
