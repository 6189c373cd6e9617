package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"lanjobs/task"
)

const (
	uriScheme = "lanjobs"
	caKeyFile = "ca.key"
)

// gossipKeyBytes makes gossip's packets AES-256.
const gossipKeyBytes = 32

// validFrom and validTo bound every certificate of lanjobs: always. A clock that is off by years, as on a machine whose
// battery is dead, must neither keep a node out nor let one in, since no decision compares the clocks of two machines (R3,
// C48). A node is put out by removing it: every handshake asks the removed set, and its connections are closed at once.
func validFrom() time.Time { return time.Unix(0, 0).UTC() }

// validTo is RFC 5280's date for "no end".
func validTo() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

// CA is a cluster's certificate authority with its key. Whoever holds the key can make members.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCluster makes a cluster: its id, the key of its gossip, and its authority.
func NewCluster(name string) (ClusterInfo, *CA, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return ClusterInfo{}, nil, fmt.Errorf("make cluster: %w", err)
	}
	gossip := make([]byte, gossipKeyBytes)
	_, _ = rand.Read(gossip) // never fails
	ca, err := newCA(id.String(), name)
	if err != nil {
		return ClusterInfo{}, nil, fmt.Errorf("make cluster: %w", err)
	}
	return ClusterInfo{ID: id.String(), Name: name, Generation: 1, CACert: ca.CertPEM(), GossipKey: gossip}, ca, nil
}

func newCA(cluster, name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "lanjobs " + name},
		NotBefore: validFrom(), NotAfter: validTo(),
		URIs: []*url.URL{{Scheme: uriScheme, Host: cluster}},
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &CA{cert, key}, err
}

func newSerial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	b[0] &= 0x7f // positive
	return new(big.Int).SetBytes(b)
}

// CertPEM is the public half.
func (ca *CA) CertPEM() string { return certPEM(ca.cert.Raw) }

// Fingerprint is what people compare and tokens pin.
func (ca *CA) Fingerprint() Fingerprint { return fingerprint(ca.cert) }

// Cluster is the id of the cluster whose nodes it signs.
func (ca *CA) Cluster() string { return ca.cert.URIs[0].Host }

// Issue signs the certificate of a node: for the key that the request proves to hold, for the id that the cluster admitted.
// Names in the request are not looked at. The generation is not part of it: recovering a cluster makes no node another one.
func (ca *CA) Issue(csr string, id task.NodeID) (certificate string, err error) {
	if _, err := uuid.Parse(string(id)); err != nil {
		return "", task.NewProblem(task.ErrInvalid, fmt.Sprintf("node id %q: %v", id, err), "")
	}
	return ca.sign(csr, string(id), "/"+string(id), x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// sign makes a certificate for the key of a request. path is who that is within the cluster, name the same for people.
func (ca *CA) sign(csr, name, path string, usage ...x509.ExtKeyUsage) (certificate string, err error) {
	key, err := csrKey(csr)
	if err != nil {
		return "", task.NewProblem(task.ErrInvalid, err.Error(), "")
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: name},
		NotBefore: validFrom(), NotAfter: validTo(),
		URIs:                  []*url.URL{{Scheme: uriScheme, Host: ca.Cluster(), Path: path}},
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           usage,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key, ca.key)
	if err != nil {
		return "", fmt.Errorf("issue certificate of %s: %w", name, err)
	}
	return certPEM(der), nil
}

// CSRKeyHash names the key of a certificate request. A member that joins again must come with the key it had: an id alone
// proves nothing, and a token would let anybody take over a voter.
func CSRKeyHash(csr string) ([]byte, error) {
	key, err := csrKey(csr)
	if err != nil {
		return nil, task.NewProblem(task.ErrInvalid, err.Error(), "")
	}
	return keyHash(key)
}

// keyHash names a public key.
func keyHash(key any) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return sum[:], nil
}

func csrKey(csr string) (*ecdsa.PublicKey, error) {
	block, _ := pem.Decode([]byte(csr))
	if block == nil {
		return nil, errors.New("certificate request: no PEM in it")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("certificate request: %w", err)
	}
	key, ok := request.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("certificate request: not for a P-256 key")
	}
	return key, nil
}

// Marshal is the authority with its key as one PEM text, a secret. ParseCA reads it.
func (ca *CA) Marshal() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(ca.key)
	if err != nil {
		return nil, fmt.Errorf("write authority: %w", err)
	}
	return append([]byte(ca.CertPEM()), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...), nil
}

// ParseCA reads what Marshal wrote.
func ParseCA(text []byte) (*CA, error) {
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, errors.New("read authority: no PEM in it")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	if !cert.IsCA || len(cert.URIs) != 1 || cert.URIs[0].Scheme != uriScheme {
		return nil, errors.New("read authority: not one of lanjobs")
	}
	key, err := parseKey(rest)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("read authority: key and certificate do not belong together")
	}
	return &CA{cert, key}, nil
}

// Save keeps the authority in a data folder.
func (ca *CA) Save(dataDir string) error {
	text, err := ca.Marshal()
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dataDir, caKeyFile), text)
}

// LoadCA reads it; fs.ErrNotExist where there is none.
func LoadCA(dataDir string) (*CA, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, caKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	return ParseCA(text)
}

// ForgetCA deletes the authority from a data folder; none there is no error.
func ForgetCA(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, caKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
