package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lanjobs/task"
)

// joinTimeout bounds the answer to a join request, which a commit of the cluster comes before.
const joinTimeout = 30 * time.Second

// JoinConfig is what Join is told.
type JoinConfig struct {
	Peer     string // a member, as typed: HOST or HOST:PORT
	Token    string
	Identity *Identity // of this machine; not changed, see Identity.Adopt
	Info     task.NodeInfo
	Addrs    []string // see JoinRequest
	Net      NetDial
	// HasRoute tells whether this machine has a way to an address, by its own routing table; see LocalToward. May be nil.
	HasRoute func(netip.AddrPort) bool
	Clock    task.Clock
}

// Join asks a member to let this machine in. The secret of the token is sent only to a node whose certificate was signed by
// the authority that the token names. The error is a *task.Problem for a person: not_allowed if that is another cluster or the
// token is not valid, no_leader if nobody answers or nobody leads for a while, invalid if the token or PEER is mistyped or no lanjobs runs there.
func Join(ctx context.Context, cfg JoinConfig) (*JoinReply, error) {
	token, err := ParseJoinToken(cfg.Token)
	if err != nil {
		return nil, err
	}
	host, addr, err := peerAddr(cfg.Peer)
	if err != nil {
		return nil, err
	}
	csr, err := cfg.Identity.CSR()
	if err != nil {
		return nil, err
	}
	reply := &JoinReply{}
	prove := func(chain []*x509.Certificate) error { return pinned(chain, token, host) }
	if err := cfg.request(ctx, host, addr, prove, pathJoin, JoinRequest{TokenSecret: token.Secret, CSR: csr, Info: cfg.Info, Addrs: cfg.Addrs}, reply); err != nil {
		return nil, err
	}
	return reply, cfg.check(reply, token)
}

// peerAddr reads HOST[:PORT].
func peerAddr(peer string) (host, addr string, err error) {
	host, port := peer, strconv.Itoa(DefaultPort)
	if h, p, err := net.SplitHostPort(peer); err == nil { // first: a zone may hold whatever follows it
		host, port = h, p
	} else if ip, err := netip.ParseAddr(strings.Trim(peer, "[]")); err == nil {
		host = ip.String() // also IPv6 without a port, with or without brackets
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if host == "" || strings.ContainsAny(host, "/ @") || err != nil || n == 0 {
		return "", "", task.NewProblem(task.ErrInvalid, fmt.Sprintf("%q is no machine: write HOST or HOST:PORT.", peer), "")
	}
	return host, net.JoinHostPort(host, port), nil
}

// reach connects and has the other side prove that it belongs to a cluster that prove accepts. Nothing is sent before.
func (cfg JoinConfig) reach(ctx context.Context, host, addr string, prove func(chain []*x509.Certificate) error) (net.Conn, error) {
	ctx, cancel := WithTimeout(ctx, cfg.Clock, HandshakeTimeout)
	defer cancel()
	raw, err := cfg.Net(ctx, addr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, cfg.unreached(ctx, host, addr, err)
	}
	free := boundConn(ctx, raw)
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{alpnHTTP1}, Time: cfg.Clock.Wall,
		// Neither names nor dates are verified, see Trust; VerifyConnection verifies who it is.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return prove(s.PeerCertificates)
		},
	})
	err = conn.Handshake()
	if !free() {
		err = context.Cause(ctx)
	}
	if err == nil {
		return conn, nil
	}
	_ = raw.Close()
	if p, ok := errors.AsType[*task.Problem](err); ok {
		return nil, p
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil, cfg.unreached(ctx, host, addr, err)
	}
	return nil, notLanjobs(addr, plainReason(err))
}

// pinned checks that a node of a cluster presents its certificate, and behind it that of the authority which the token names.
func pinned(chain []*x509.Certificate, token JoinToken, host string) error {
	ca, err := clusterOf(chain, host)
	if err != nil {
		return err
	}
	if f := fingerprint(ca); !token.Matches(f) {
		return task.NewProblem(task.ErrNotAllowed,
			fmt.Sprintf("%s is not the cluster this token was made for (token: CA %s…, %s: CA %s…).", host, groups(token.Pin[:4]), host, groups(f[:4])),
			"Nothing was sent. Make a new one on a member: lanjobs token create")
	}
	return ownedBy(chain[0], ca, host)
}

// clusterOf takes the authority's certificate out of what a node of a cluster presents; nothing is believed yet.
func clusterOf(chain []*x509.Certificate, host string) (*x509.Certificate, error) {
	if len(chain) < 2 {
		return nil, notLanjobs(host, "no certificate of a cluster")
	}
	if _, _, err := nodeOf(chain[0]); err != nil {
		return nil, notLanjobs(host, "no certificate of a cluster")
	}
	return chain[1], nil
}

// ownedBy: the authority's certificate is no secret: whoever shows it must also hold a key that it signed for.
func ownedBy(leaf, ca *x509.Certificate, host string) error {
	cluster, _, err := nodeOf(leaf)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if err == nil {
		err = signedBy(leaf, roots)
	}
	if err != nil || len(ca.URIs) != 1 || ca.URIs[0].Host != cluster {
		return task.NewProblem(task.ErrNotAllowed,
			fmt.Sprintf("%s shows the authority of a cluster, but was not signed by it.", host),
			"Nothing was sent. Somebody may be altering the traffic: try another member, or another network")
	}
	return nil
}

// ask sends a request over the proven connection and reads the answer to it into reply. The error is leaderless if that is the answer.
func (cfg JoinConfig) ask(ctx context.Context, conn net.Conn, addr, path string, request, reply any) error {
	ctx, cancel := WithTimeout(ctx, cfg.Clock, joinTimeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	// Not the address: one with a zone is no part of a URL, and the connection is there already.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://member"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	once := &http.Transport{
		// http to net/http: the connection has its TLS, and there is only this one.
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true,
	}
	resp, err := once.RoundTrip(req)
	if err != nil {
		return cfg.unanswered(ctx, addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		p := ReadProblem(resp)
		if errors.Is(p, task.ErrNoLeader) {
			return leaderless{p}
		}
		return p
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxJoinBytes))
	if err != nil {
		return cfg.unanswered(ctx, addr, err)
	}
	if err := json.Unmarshal(text, reply); err != nil {
		return notLanjobs(addr, "the answer is no JSON")
	}
	return nil
}

// check makes sure that what came back fits this machine and the token: the node that answered is a member, but may be broken.
func (cfg JoinConfig) check(reply *JoinReply, token JoinToken) error {
	f, err := reply.Cluster.Fingerprint()
	if err == nil && !token.Matches(f) {
		err = errors.New("another authority")
	}
	if err == nil && len(reply.Cluster.GossipKey) != gossipKeyBytes {
		err = errors.New("no key for gossip")
	}
	if err == nil {
		trial := *cfg.Identity
		err = trial.Adopt(reply.Cluster, reply.Cert)
	}
	if err != nil {
		return &task.Problem{Code: "internal", Detail: fmt.Sprintf("%s let this machine in, but its answer is not usable: %v.", cfg.Peer, err)}
	}
	return nil
}

// unanswered: the request is out, what became of it is not known. Joining again with the same identity is harmless.
func (cfg JoinConfig) unanswered(ctx context.Context, addr string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return task.NewProblem(task.ErrNoLeader, fmt.Sprintf("no answer from %s (%s).", addr, plainReason(err)), "Run the same command again")
}

func (cfg JoinConfig) unreached(ctx context.Context, host, addr string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	_, port, _ := net.SplitHostPort(addr)
	peer, parseErr := netip.ParseAddrPort(addr)
	routed := parseErr == nil && cfg.HasRoute != nil && cfg.HasRoute(peer)
	return unreachedText(runtime.GOOS, host, port, err, routed)
}

// unreachedText is UX 1.5 word for word.
func unreachedText(goos, host, port string, err error, routed bool) *task.Problem {
	what := fmt.Sprintf("cannot reach %s (%s)", net.JoinHostPort(host, port), plainReason(err))
	if goos == "darwin" && routed && errors.Is(err, syscall.EHOSTUNREACH) {
		return task.NewProblem(task.ErrNoLeader, what+", although this Mac has a route to it. macOS may be blocking lanjobs:",
			"System Settings > Privacy & Security > Local Network. A system service is exempt: sudo lanjobs service install")
	}
	return task.NewProblem(task.ErrNoLeader, fmt.Sprintf("%s. A firewall must let in TCP and UDP %s.", what, port),
		fmt.Sprintf("If \"lanjobs status\" on %s says \"this machine only\", run \"lanjobs init\" there first.", host))
}

func notLanjobs(addr, why string) *task.Problem {
	return task.NewProblem(task.ErrInvalid, fmt.Sprintf("%s answers, but is no member of a lanjobs cluster (%s).", addr, why),
		"Name a machine on which \"lanjobs status\" shows a cluster")
}
