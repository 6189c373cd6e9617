package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"lanjobs/task"
)

// The protocols on the one port, named by ALPN. Each has its own door: a browser never reaches a call between nodes.
const (
	ALPNRaft   = "lanjobs-raft/1"
	ALPNGossip = "lanjobs-gossip/1"
	ALPNRPC    = "lanjobs-rpc/1" // HTTP/2 between nodes, see Client and ServeCalls
	alpnHTTP2  = "h2"            // API, join
	alpnHTTP1  = "http/1.1"
)

// Trust is who this node is and whom it lets in. It verifies that a certificate was signed by the cluster's authority and
// names a node of this cluster; host names, addresses and dates in it mean nothing (R2, R3). Every handshake asks the removed
// set, and it knows all open connections of a node, so that removal works at once.
type Trust struct {
	removed func(task.NodeID) bool
	clock   task.Clock
	now     atomic.Pointer[credentials]

	mu      sync.Mutex
	links   map[task.NodeID]map[*link]struct{}
	clients map[*link]struct{} // the open connections of clients
}

// credentials are read at each handshake, so that they can be exchanged while connections are open (C48).
type credentials struct {
	self    task.NodeID
	cluster string
	pair    tls.Certificate
	roots   *x509.CertPool
}

func newCredentials(i *Identity) (*credentials, error) {
	pair, err := i.keyPair()
	if err != nil {
		return nil, err
	}
	cas, err := parseCerts(i.Cluster.CACert)
	if err != nil {
		return nil, err
	}
	c := &credentials{self: i.NodeID, cluster: i.Cluster.ID, pair: pair, roots: x509.NewCertPool()}
	for _, ca := range cas {
		c.roots.AddCert(ca)
	}
	id, err := c.verify([]*x509.Certificate{pair.Leaf})
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", i.NodeID, err)
	}
	if id != i.NodeID {
		return nil, fmt.Errorf("certificate of %s: %w: %s", i.NodeID, ErrWrongIdentity, id)
	}
	return c, nil
}

// NewTrust makes the trust of a member. removed is asked at every handshake and must return soon; nil = nobody was removed.
func NewTrust(i *Identity, clock task.Clock, removed func(task.NodeID) bool) (*Trust, error) {
	if removed == nil {
		removed = func(task.NodeID) bool { return false }
	}
	t := &Trust{removed: removed, clock: clock, links: map[task.NodeID]map[*link]struct{}{}, clients: map[*link]struct{}{}}
	return t, t.Use(i)
}

// Use takes another certificate or other authorities from the next handshake on. Open connections stay.
func (t *Trust) Use(i *Identity) error {
	c, err := newCredentials(i)
	if err != nil {
		return err
	}
	t.now.Store(c)
	return nil
}

// Self is this node.
func (t *Trust) Self() task.NodeID { return t.now.Load().self }

// CloseNode closes all connections from and to a node at once. To remove a node, first make removed say so, then call this:
// no connection slips through between the two.
func (t *Trust) CloseNode(id task.NodeID) {
	t.mu.Lock()
	var cut []*link
	for l := range t.links[id] {
		cut = append(cut, l)
	}
	t.mu.Unlock()
	for _, l := range cut {
		_ = l.Close()
	}
}

// admit enters a connection that belongs to a node. It is entered before the removed set is asked: see CloseNode.
func (t *Trust) admit(l *link, id task.NodeID) error {
	t.mu.Lock()
	if l.closed {
		t.mu.Unlock()
		return ErrNotRunning
	}
	if t.links[id] == nil {
		t.links[id] = map[*link]struct{}{}
	}
	t.links[id][l] = struct{}{}
	l.peer = id
	t.mu.Unlock()
	if t.removed(id) {
		return ErrRemoved
	}
	return nil
}

// verify tells which node of this cluster a certificate belongs to. TLS has checked by then that the other side holds its key.
func (c *credentials) verify(chain []*x509.Certificate) (task.NodeID, error) {
	if len(chain) == 0 {
		return "", fmt.Errorf("%w: no certificate", ErrWrongIdentity)
	}
	cluster, id, err := nodeOf(chain[0])
	if err != nil {
		return "", err
	}
	return id, c.ours(chain[0], cluster)
}

// ours checks that a certificate is of this cluster: by what it says, and by who signed it.
func (c *credentials) ours(cert *x509.Certificate, cluster string) error {
	if cluster != c.cluster {
		return fmt.Errorf("%w: %s, here it is %s", ErrWrongCluster, cluster, c.cluster)
	}
	if err := signedBy(cert, c.roots); err != nil {
		return fmt.Errorf("%w: %w", ErrWrongCluster, err)
	}
	return nil
}

// nodeOf reads lanjobs://<cluster>/<node> from a certificate; nothing is believed yet.
func nodeOf(cert *x509.Certificate) (cluster string, id task.NodeID, err error) {
	if len(cert.URIs) != 1 || cert.URIs[0].Scheme != uriScheme {
		return "", "", fmt.Errorf("%w: no lanjobs certificate", ErrWrongIdentity)
	}
	u := cert.URIs[0]
	text := strings.TrimPrefix(u.Path, "/")
	if _, err := uuid.Parse(text); err != nil {
		return "", "", fmt.Errorf("%w: no node", ErrWrongIdentity)
	}
	return u.Host, task.NodeID(text), nil
}

// signedBy checks the signature of an authority at a moment at which every certificate is valid, instead of now: see validFrom.
func signedBy(cert *x509.Certificate, roots *x509.CertPool) error {
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: validFrom().Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err
}

// baseConfig holds for both sides. Sessions are never resumed: each connection proves itself anew, and the removed set is
// asked each time.
func (t *Trust) baseConfig(c *credentials) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.pair}, SessionTicketsDisabled: true, Time: t.clock.Wall,
	}
}

// serverConfig chooses by what the client wants to speak. Nodes must come with a certificate; it is verified after the
// handshake, so that the answer can say why it is refused (see welcome). The web may come without.
func (t *Trust) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			now := t.now.Load()
			c := t.baseConfig(now)
			for _, alpn := range []string{ALPNRaft, ALPNGossip, ALPNRPC} {
				if slices.Contains(hello.SupportedProtos, alpn) {
					c.NextProtos, c.ClientAuth = []string{alpn}, tls.RequireAnyClientCert
					return c, nil
				}
			}
			// The list of authorities keeps a browser from offering its owner's other certificates.
			c.NextProtos, c.ClientAuth, c.ClientCAs = []string{alpnHTTP2, alpnHTTP1}, tls.RequestClientCert, now.roots
			return c, nil
		},
	}
}

// clientConfig accepts the node want, or any node of the cluster for "". found is set to who answered.
func (t *Trust) clientConfig(alpn string, want task.NodeID, found *task.NodeID) *tls.Config {
	now := t.now.Load()
	c := t.baseConfig(now)
	c.NextProtos = []string{alpn}
	// The name of the host is not verified; VerifyConnection verifies everything else. See Trust.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		id, err := now.verify(s.PeerCertificates)
		if err != nil {
			return err
		}
		*found = id
		switch {
		case want != "" && id != want:
			return fmt.Errorf("%w: %s, not %s", ErrWrongNode, id, want)
		case s.NegotiatedProtocol != alpn:
			return fmt.Errorf("%w: %q instead of %q", ErrWrongVersion, s.NegotiatedProtocol, alpn)
		}
		return nil
	}
	return c
}
