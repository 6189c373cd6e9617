package transport

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Fingerprint is the SHA-256 of an authority's certificate, as `openssl x509 -fingerprint -sha256` shows it.
type Fingerprint [sha256.Size]byte

func fingerprint(cert *x509.Certificate) Fingerprint { return sha256.Sum256(cert.Raw) }

// Fingerprint is that of the cluster's first authority.
func (c ClusterInfo) Fingerprint() (Fingerprint, error) {
	certs, err := parseCerts(c.CACert)
	if err != nil {
		return Fingerprint{}, err
	}
	return fingerprint(certs[0]), nil
}

// String is the whole of it in groups of four: 3F9A-7C21-…, 16 groups.
func (f Fingerprint) String() string { return groups(f[:]) }

// Short is enough to tell two apart at a glance: 3F9A-7C21-…-0B4E.
func (f Fingerprint) Short() string { return groups(f[:4]) + "-…-" + groups(f[len(f)-2:]) }

// groups writes bytes as 3F9A-7C21.
func groups(b []byte) string {
	var parts []string
	for len(b) > 0 {
		parts = append(parts, fmt.Sprintf("%X", b[:2]))
		b = b[2:]
	}
	return strings.Join(parts, "-")
}

func certPEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// parseCerts reads one or more certificates.
func parseCerts(text string) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for rest := []byte(text); len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("certificate: no PEM in it")
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, errors.New("certificate: none given")
	}
	return certs, nil
}
