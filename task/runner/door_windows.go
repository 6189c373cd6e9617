package runner

import (
	"crypto/rand"
	"net"
	"net/url"
)

// door is a loopback port that wants a token: many programs on Windows cannot speak to a unix socket.
type door struct{ listener net.Listener }

type doors struct{ dir string }

// open gives an attempt a port of its own; the record keeps it for the next life of the agent.
func (s *doors) open(r *Runner, e *endpoint) error {
	address := "127.0.0.1:0"
	if u, err := url.Parse(e.rec.URL); err == nil && u.Host != "" {
		address = u.Host
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if e.rec.URL == "" {
		e.rec.URL = "http://" + l.Addr().String()
		e.rec.Secret = rand.Text()
	}
	e.door = &door{l}
	r.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.reception.admit(conn, e)
		}
	})
	return nil
}

func (s *doors) take(e *endpoint, _ bool) { _ = e.door.listener.Close() }

func (s *doors) close() {}
