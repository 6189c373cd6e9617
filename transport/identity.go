package transport

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"lanjobs/task"
)

// The files of an identity in the data folder, both readable by their owner only.
const (
	identityFile = "identity.json"
	keyFile      = "node.key"
	// nextKeyFile is the key of an identity that takes the place of another one, until that is done.
	nextKeyFile = "node.key.next"
)

// ClusterInfo is what every member knows of its cluster. The zero value: this machine only.
type ClusterInfo struct {
	ID         string `json:"id"` // UUID, made by `lanjobs init`
	Name       string `json:"name"`
	Generation uint64 `json:"generation"` // rises when a lost quorum was recovered or a backup restored (I3); see GenerationNumber
	// CACert is PEM: the authority that signs new certificates first, then others that are still believed (C48).
	CACert    string `json:"ca_cert"`
	GossipKey []byte `json:"gossip_key"` // 32 bytes, AES-256-GCM
}

// Identity is who a node is: its UUID, made once (R2), its key, and the certificate by which a cluster knows it. The key is
// that of one folder on one machine: LoadIdentity refuses a copy.
type Identity struct {
	Format  int         `json:"format,omitempty"` // of this file; 0 = the first, which did not say
	NodeID  task.NodeID `json:"node_id"`
	Name    string      `json:"name"` // for people
	Cluster ClusterInfo `json:"cluster"`
	Cert    string      `json:"cert,omitempty"`   // PEM, "" before the node is a member
	Machine string      `json:"machine"`          // MachineFingerprint of where it was made; "" = unknown
	Folder  string      `json:"folder,omitempty"` // the data folder that it was last used in; see identityfolder.go

	key *ecdsa.PrivateKey
}

// identityFormat is the newest form of identity.json that this binary reads; it writes the first.
const identityFormat = 1

// IdentityFormatError: identity.json was written by a newer version.
type IdentityFormatError struct{ Format int }

func (e *IdentityFormatError) Error() string {
	return fmt.Sprintf("%s is of form %d, and this version knows %d", identityFile, e.Format, identityFormat)
}

// NewIdentity makes a node that is no member of a cluster yet. The key is P-256 and not Ed25519, because browsers that will
// show the dashboard over the cluster port know only the former.
func NewIdentity(name string) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the node's key: %w", err)
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("make the node's id: %w", err)
	}
	return &Identity{NodeID: task.NodeID(id.String()), Name: name, Machine: MachineFingerprint(), key: key}, nil
}

// Member tells whether the node belongs to a cluster.
func (i *Identity) Member() bool { return i.Cluster.ID != "" && i.Cert != "" }

// CSR asks for a certificate and proves that the node holds its key; PEM.
func (i *Identity) CSR() (string, error) {
	return csrFor(i.key, string(i.NodeID))
}

func csrFor(key *ecdsa.PrivateKey, name string) (string, error) {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return "", fmt.Errorf("make a certificate request: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), nil
}

// Adopt makes the node a member: by what a member answered to a join, or what `init` issued. It checks that the certificate
// is for this node and its key and signed by the cluster's authority. Save it afterwards.
func (i *Identity) Adopt(cluster ClusterInfo, cert string) error {
	next := *i
	next.Cluster, next.Cert = cluster, cert
	if _, err := newCredentials(&next); err != nil {
		return err
	}
	*i = next
	return nil
}

// keyPair is the certificate as TLS presents it, with the authority's behind it: a machine that joins by token has only the
// hash of that one to go by.
func (i *Identity) keyPair() (tls.Certificate, error) {
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	pair, err := tls.X509KeyPair([]byte(i.Cert), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate of %s: %w", i.NodeID, err)
	}
	cas, err := parseCerts(i.Cluster.CACert)
	if err != nil {
		return tls.Certificate{}, err
	}
	for _, ca := range cas {
		if pair.Leaf.CheckSignatureFrom(ca) == nil {
			pair.Certificate = append(pair.Certificate[:1], ca.Raw)
			return pair, nil
		}
	}
	return tls.Certificate{}, fmt.Errorf("certificate of %s: not signed by the cluster's authority", i.NodeID)
}

// Save writes the identity into the data folder, and notes that this is its place. The key comes first: identity.json makes it
// count. Cut anywhere, the folder holds either the old identity or the new one.
func (i *Identity) Save(dataDir string) error {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(i.key)
	if err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	i.Folder = wholePath(dataDir)
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	path := filepath.Join(dataDir, keyFile)
	first := path
	if old, err := os.ReadFile(path); err == nil && !bytes.Equal(old, key) {
		first = filepath.Join(dataDir, nextKeyFile) // the old one still belongs to the identity that is there
	}
	if err := WriteFile(first, key); err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	if err := WriteFile(filepath.Join(dataDir, identityFile), append(text, '\n')); err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	if first == path {
		return nil
	}
	if err := errors.Join(os.Rename(first, path), SyncDir(dataDir)); err != nil {
		return fmt.Errorf("save identity: %w", err)
	}
	return nil
}

// LoadIdentity reads what Save wrote. The error is fs.ErrNotExist where no node has been, and a *task.Problem where the data
// folder is a copy: made on another machine, or of a folder of this one that is still there.
func LoadIdentity(dataDir string) (*Identity, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, identityFile))
	if err != nil {
		return nil, fmt.Errorf("load identity: %w", err)
	}
	i := &Identity{}
	if err := json.Unmarshal(text, i); err != nil {
		return nil, fmt.Errorf("load identity: %s is damaged: %w", identityFile, err)
	}
	if i.Format > identityFormat {
		return nil, &IdentityFormatError{i.Format}
	}
	if _, err := uuid.Parse(string(i.NodeID)); err != nil {
		return nil, fmt.Errorf("load identity: %s is damaged: %w", identityFile, err)
	}
	// Before anything is read that a copy must not use.
	if here := MachineFingerprint(); i.Machine != "" && here != "" && i.Machine != here {
		return nil, copied(dataDir, i)
	}
	if original := i.copyOf(dataDir); original != "" {
		return nil, copiedHere(dataDir, original, i)
	}
	if err := i.loadKey(dataDir, keyFile); err != nil {
		if i.Cert == "" || i.loadKey(dataDir, nextKeyFile) != nil { // cut between identity.json and its key
			return nil, err
		}
	}
	return i, nil
}

// loadKey reads the key from a file. That of a member must fit its certificate.
func (i *Identity) loadKey(dataDir, name string) error {
	text, err := os.ReadFile(filepath.Join(dataDir, name))
	if err != nil {
		return fmt.Errorf("load identity: %v", err) // not fs.ErrNotExist: there is a node, it must not be made anew
	}
	if i.key, err = parseKey(text); err != nil {
		return fmt.Errorf("load identity: %s is damaged: %w", name, err)
	}
	if i.Member() {
		if _, err := newCredentials(i); err != nil {
			return fmt.Errorf("load identity: %w", err)
		}
	}
	return nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM in it")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || ec.Curve != elliptic.P256() {
		return nil, errors.New("not a P-256 key")
	}
	return ec, nil
}
