package transport

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"lanjobs/task"
)

// ForgedCA is another authority that claims the id of a cluster.
func ForgedCA(cluster, name string) *CA {
	ca, err := newCA(cluster, name)
	if err != nil {
		panic(err)
	}
	return ca
}

// KeyPair is the certificate of an identity as TLS presents it.
func (i *Identity) KeyPair() tls.Certificate {
	pair, err := i.keyPair()
	if err != nil {
		panic(err)
	}
	return pair
}

// Cert is an authority's certificate.
func (ca *CA) Cert() *x509.Certificate { return ca.cert }

// Strangers counts connections that have proven nothing yet, Guests those of the web without a certificate.
func (m *Mux) Strangers() int { return m.strangers.len() }
func (m *Mux) Guests() int    { return m.guests.len() }

func (c *crowd) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.links)
}

// Links counts the open connections of a node.
func (t *Trust) Links(id task.NodeID) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.links[id])
}

// CloseIdle ends what a test left open.
func (c *APIClient) CloseIdle() { c.door.(*http.Transport).CloseIdleConnections() }

// DialStagger is the lead of an address over the next.
const DialStagger = dialStagger

var (
	WriteVerdict  = writeVerdict
	ReadVerdict   = readVerdict
	UnreachedText = unreachedText
)

// NewClient makes an access that an authority has signed.
func (ca *CA) NewClient(info ClusterInfo, name, peer string) (*Access, error) {
	a, csr, err := newAccess(name)
	if err != nil {
		return nil, err
	}
	hash, err := CSRKeyHash(csr)
	if err != nil {
		return nil, err
	}
	id := ClientIDOf(hash)
	cert, err := ca.IssueClient(csr, id)
	if err != nil {
		return nil, err
	}
	return a, a.adopt(&LoginReply{ID: id, Role: "operator", Cert: cert, ClusterID: info.ID, ClusterName: info.Name, CACert: info.CACert}, peer)
}

// KeyPair is the certificate of an access as TLS presents it.
func (a *Access) KeyPair() tls.Certificate {
	c, err := a.credentials()
	if err != nil {
		panic(err)
	}
	return c.pair
}

// Clients counts the open connections of clients.
func (t *Trust) Clients() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.clients)
}
