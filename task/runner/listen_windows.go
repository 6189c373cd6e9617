package runner

import (
	"crypto/rand"
	"net"
	"net/url"
)

// listenTask: many programs on Windows cannot speak to a unix socket, so it is a loopback port that wants a token. The record keeps
// both for the next life of the agent.
func (r *Runner) listenTask(a *attempt) (net.Listener, error) {
	address := "127.0.0.1:0"
	if u, err := url.Parse(a.record.URL); err == nil && u.Host != "" {
		address = u.Host
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if a.record.URL == "" {
		a.record.URL = "http://" + l.Addr().String()
		a.record.Secret = rand.Text()
	}
	return l, nil
}
