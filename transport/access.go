package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The files of an access, in a folder of its own. The second one is written often and is no secret, so the first is left alone.
const (
	AccessFile  = "login.json"
	MembersFile = "members.json"
)

// Access is a person's or a program's way into a cluster without a node here: a key that was made on this machine, and the
// certificate by which the cluster knows it (R46). Its file is a secret.
type Access struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Role        string `json:"role"` // at the time of login; the cluster decides by its own list
	ClusterID   string `json:"cluster_id"`
	ClusterName string `json:"cluster"`
	CACert      string `json:"ca_cert"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`  // PEM
	Peer        string `json:"peer"` // where it logged in, HOST:PORT: a name may outlive all addresses

	Members []Member `json:"-"` // where the cluster was last, see SaveMembers
}

func newAccess(name string) (a *Access, csr string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	csr, err = csrFor(key, name)
	return &Access{Name: name, Key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}, csr, err
}

// adopt takes what a member answered, if it fits the key.
func (a *Access) adopt(r *LoginReply, peer string) error {
	next := *a
	next.ID, next.Role, next.Cert, next.CACert, next.Members = r.ID, r.Role, r.Cert, r.CACert, r.Members
	next.ClusterID, next.ClusterName, next.Peer = r.ClusterID, r.ClusterName, peer
	if _, err := next.credentials(); err != nil {
		return err
	}
	*a = next
	return nil
}

// credentials are what a handshake shows and believes.
func (a *Access) credentials() (*credentials, error) {
	pair, err := tls.X509KeyPair([]byte(a.Cert), []byte(a.Key))
	if err != nil {
		return nil, err
	}
	cas, err := parseCerts(a.CACert)
	if err != nil {
		return nil, err
	}
	c := &credentials{cluster: a.ClusterID, pair: pair, roots: x509.NewCertPool()}
	for _, ca := range cas {
		c.roots.AddCert(ca)
	}
	proof, err := c.verifyClient([]*x509.Certificate{pair.Leaf})
	if err == nil && proof.ID != a.ID {
		err = fmt.Errorf("%w: %s, not %s", ErrWrongIdentity, proof.ID, a.ID)
	}
	return c, err
}

// Addrs are where to look for the cluster, best first.
func (a *Access) Addrs() []string {
	var out []string
	for _, m := range a.Members {
		out = append(out, m.Addrs...)
	}
	out = append(out, a.Peer)
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(addr string) bool {
		again := addr == "" || seen[addr]
		seen[addr] = true
		return again
	})
}

// Text is what is to be kept: file names and their contents, the one that makes it count last.
func (a *Access) Text() (names []string, texts [][]byte, err error) {
	members, err := json.MarshalIndent(a.Members, "", "  ")
	if err != nil {
		return nil, nil, err
	}
	text, err := json.MarshalIndent(a, "", "  ")
	return []string{MembersFile, AccessFile}, [][]byte{append(members, '\n'), append(text, '\n')}, err
}

// SaveMembers remembers where the cluster is now.
func (a *Access) SaveMembers(dir string) error {
	text, err := json.MarshalIndent(a.Members, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, MembersFile), append(text, '\n'))
}

// LoadAccess reads what was kept in a folder; fs.ErrNotExist where there is none.
func LoadAccess(dir string) (*Access, error) {
	text, err := os.ReadFile(filepath.Join(dir, AccessFile))
	if err != nil {
		return nil, fmt.Errorf("read login: %w", err)
	}
	a := &Access{}
	if err := json.Unmarshal(text, a); err != nil {
		return nil, fmt.Errorf("read login: %s in %s is damaged: %w", AccessFile, dir, err)
	}
	if _, err := a.credentials(); err != nil {
		return nil, fmt.Errorf("read login: %s in %s is damaged: %w", AccessFile, dir, err)
	}
	// Where the members were is worth nothing more than a try: without it there is still Peer.
	if text, err := os.ReadFile(filepath.Join(dir, MembersFile)); err == nil {
		_ = json.Unmarshal(text, &a.Members)
	}
	return a, nil
}
