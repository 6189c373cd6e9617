package transport

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"strings"

	"lanjobs/task"
)

// The certificate of a client, a person's or a program's access (R46), names lanjobs://<cluster>/client/<id>, that of a node
// lanjobs://<cluster>/<uuid>. Neither can be read as the other: the protocols of nodes want a UUID, the API wants a client. Whether a
// client still is one is no matter of its certificate: the ledger is asked at every request.
const clientPath = "/client/"

const loginHint = "Get access: lanjobs login MACHINE, or with a token of lanjobs token create --role operator"

// ClientIDOf is the id of the client that has a key, by its hash (CSRKeyHash): who logs in again with the same key is the same.
func ClientIDOf(keyHash []byte) string { return "c" + hex.EncodeToString(keyHash)[:11] }

// IssueClient signs the certificate of a client, for the key that the request proves to hold. It is good for nothing but to be
// shown to a node.
func (ca *CA) IssueClient(csr, id string) (certificate string, err error) {
	if !validClientID(id) {
		return "", task.NewProblem(task.ErrInvalid, fmt.Sprintf("client id %q", id), "")
	}
	return ca.sign(csr, "client "+id, clientPath+id, x509.ExtKeyUsageClientAuth)
}

func validClientID(id string) bool {
	return id != "" && len(id) <= 64 && !strings.ContainsFunc(id, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// ClientProof is what a client has proven by its handshake: that it holds a key that the cluster's authority signed for an id.
type ClientProof struct {
	ID  string
	Key []byte // hash of the public key, as CSRKeyHash
}

// isClient tells what a certificate claims to be; nothing is believed yet.
func isClient(chain []*x509.Certificate) bool {
	_, _, err := clientIn(chain)
	return err == nil
}

func clientIn(chain []*x509.Certificate) (cluster, id string, err error) {
	if len(chain) == 0 || len(chain[0].URIs) != 1 || chain[0].URIs[0].Scheme != uriScheme {
		return "", "", fmt.Errorf("%w: no lanjobs certificate", ErrWrongIdentity)
	}
	u := chain[0].URIs[0]
	id, ok := strings.CutPrefix(u.Path, clientPath)
	if !ok || !validClientID(id) {
		return "", "", fmt.Errorf("%w: no client", ErrWrongIdentity)
	}
	return u.Host, id, nil
}

// verifyClient tells which client of this cluster a certificate belongs to.
func (c *credentials) verifyClient(chain []*x509.Certificate) (ClientProof, error) {
	cluster, id, err := clientIn(chain)
	if err != nil {
		return ClientProof{}, err
	}
	if err := c.ours(chain[0], cluster); err != nil {
		return ClientProof{}, err
	}
	key, err := keyHash(chain[0].PublicKey)
	return ClientProof{ID: id, Key: key}, err
}

// admitClient enters a connection that belongs to a client, so that CloseClients finds it.
func (t *Trust) admitClient(l *link, proof ClientProof) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.closed {
		return ErrNotRunning
	}
	l.client = proof
	t.clients[l] = struct{}{}
	return nil
}

// CloseClients closes the connections of those clients that are gone, streams included. The ledger must say so before: what they ask
// by another connection is refused by it.
func (t *Trust) CloseClients(gone func(id string) bool) {
	t.mu.Lock()
	open := make([]*link, 0, len(t.clients))
	for l := range t.clients {
		open = append(open, l)
	}
	t.mu.Unlock()
	for _, l := range open {
		if gone(l.client.ID) { // does not change once it is listed
			_ = l.Close()
		}
	}
}

type clientKey struct{}

// ClientFrom tells which client sent the request that a handler is answering; the zero value = none.
func ClientFrom(ctx context.Context) ClientProof {
	proof, _ := ctx.Value(clientKey{}).(ClientProof)
	return proof
}

// clientOf is what the client at the other end of a connection of the web has proven.
func clientOf(c net.Conn) ClientProof {
	web, ok := c.(interface{ NetConn() net.Conn })
	if !ok {
		return ClientProof{}
	}
	l, ok := web.NetConn().(*link)
	if !ok {
		return ClientProof{}
	}
	l.trust.mu.Lock()
	defer l.trust.mu.Unlock()
	return l.client
}
