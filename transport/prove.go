package transport

import (
	"crypto/x509"
	"fmt"

	"lanjobs/task"
)

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

func notLanjobs(addr, why string) *task.Problem {
	return task.NewProblem(task.ErrInvalid, fmt.Sprintf("%s answers, but is no member of a lanjobs cluster (%s).", addr, why),
		"Name a machine on which \"lanjobs status\" shows a cluster")
}
