package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"lanjobs/task"
)

// accessDoor leads to some member of a cluster over TLS, as a client. Every member answers for all of them, so one that answers and
// knows a leader is as good as another: the door stays with it, and turns to the next one when it is gone or knows no leader.
type accessDoor struct {
	access *Access
	creds  *credentials
	net    NetDial
	clock  task.Clock
	web    *http.Transport

	mu    sync.Mutex
	addrs []string // best first
	at    string   // where the last connection went
}

// AccessDoor leads to the cluster of an access. An error of its RoundTrip is a *task.Problem, no_leader if no member could be
// reached, or that of a broken connection.
func AccessDoor(a *Access, net NetDial, clock task.Clock) (http.RoundTripper, error) {
	creds, err := a.credentials()
	if err != nil {
		return nil, fmt.Errorf("login to %q: %w", a.ClusterName, err)
	}
	d := &accessDoor{access: a, creds: creds, net: net, clock: clock, addrs: a.Addrs()}
	d.web = &http.Transport{DialContext: d.dial, DisableCompression: true}
	return d, nil
}

// RoundTrip asks the member at hand.
func (d *accessDoor) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.web.RoundTrip(r) // http to net/http: its connections have their TLS
	if err != nil || resp.StatusCode == http.StatusServiceUnavailable {
		d.turn()
	}
	return resp, err
}

// CloseIdleConnections ends what is not in use.
func (d *accessDoor) CloseIdleConnections() { d.web.CloseIdleConnections() }

// turn makes the next request go to another member first.
func (d *accessDoor) turn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.addrs, d.at); i >= 0 {
		d.addrs = append(slices.Delete(d.addrs, i, i+1), d.at)
	}
	d.at = ""
	d.web.CloseIdleConnections()
}

// dial connects to the first member that answers, each address a little after the one before.
func (d *accessDoor) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d.mu.Lock()
	addrs := slices.Clone(d.addrs)
	d.mu.Unlock()
	conn, addr, tried, err := race(ctx, d.clock, addrs, d.one)
	if err != nil {
		return nil, err
	}
	if conn == nil {
		return nil, d.unreached(tried)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = addr
	if i := slices.Index(d.addrs, addr); i > 0 {
		d.addrs = slices.Insert(slices.Delete(d.addrs, i, i+1), 0, addr)
	}
	return conn, nil
}

// one connects to one address, and has whoever answers prove to be a machine of this cluster.
func (d *accessDoor) one(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := WithTimeout(ctx, d.clock, DialTimeout)
	defer cancel()
	raw, err := d.net(ctx, addr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	free := boundConn(ctx, raw)
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpnHTTP1}, Certificates: []tls.Certificate{d.creds.pair}, Time: d.clock.Wall,
		// Neither names nor dates are verified, see Trust; VerifyConnection verifies who it is.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := d.creds.verify(s.PeerCertificates)
			return err
		},
	})
	err = conn.Handshake()
	if !free() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// unreached says for every address why not.
func (d *accessDoor) unreached(tried []AddrError) error {
	var parts []string
	foreign := len(tried) > 0
	for _, t := range tried {
		foreign = foreign && (errors.Is(t.Err, ErrWrongCluster) || errors.Is(t.Err, ErrWrongIdentity))
		parts = append(parts, t.Addr+" ("+plainReason(t.Err)+")")
	}
	if foreign {
		return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("no machine of %q answers: %s.", d.access.ClusterName, strings.Join(parts, ", ")),
			fmt.Sprintf("If that cluster was made anew: lanjobs logout --cluster %s, then log in again.", d.access.ClusterName))
	}
	return task.NewProblem(task.ErrNoLeader, fmt.Sprintf("cannot reach %q: %s.", d.access.ClusterName, strings.Join(parts, ", ")),
		"Is this machine on the network of the cluster? After all its addresses have changed: lanjobs login MACHINE again")
}
