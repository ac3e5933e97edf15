// SPDX-License-Identifier: Apache-2.0

// Package certs makes, judges and serves the webhook's certificate. It holds no
// client: what it makes is kept in a Secret by whoever calls it.
//
// The certificates themselves come from open-policy-agent/cert-controller. Its
// ready-made controller is not used: it caches every Secret of the namespace,
// waits for the kubelet to update a mounted Secret, which takes a minute or
// more, and tells the cause of a failure only to the log. Here the certificate
// goes from the Secret straight into the listener.
package certs

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

// Keys of the Secret's data.
const (
	CACertKey = "ca.crt"
	caKeyKey  = "ca.key"
	certKey   = "tls.crt"
	keyKey    = "tls.key"
)

const (
	authority = "queueworker-operator-ca"

	authorityLifetime = 10 * 365 * 24 * time.Hour
	servingLifetime   = 365 * 24 * time.Hour
	// renewAhead is how long before its end a certificate is replaced.
	renewAhead = 90 * 24 * time.Hour
	// backdate keeps a certificate valid where clocks differ a little.
	backdate = time.Hour
)

var serverAuth = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// Renew returns the Secret's data with whatever is missing, broken, made out to
// another host, or about to expire made anew. changed is false when all was
// good. A new serving certificate keeps the authority, so that nobody has to
// learn a new one; keys of other writers are kept.
func Renew(data map[string][]byte, host string, now time.Time) (renewed map[string][]byte, changed bool, err error) {
	maker := &rotator.CertRotator{CAName: authority, CAOrganization: "queueworker.dev", DNSName: host, ExtKeyUsages: &serverAuth}
	soon := now.Add(renewAhead)

	trusted := data[CACertKey]
	goodCA := valid(trusted, pair{trusted, data[caKeyKey]}, authority, nil, soon)
	if goodCA && valid(trusted, pair{data[certKey], data[keyKey]}, host, &serverAuth, soon) {
		return data, false, nil
	}
	var ca *rotator.KeyPairArtifacts
	if goodCA {
		ca, err = parseAuthority(data)
	} else {
		ca, err = maker.CreateCACert(now.Add(-backdate), now.Add(authorityLifetime))
	}
	if err != nil {
		return nil, false, fmt.Errorf("making the webhook's authority: %w", err)
	}
	cert, key, err := maker.CreateCertPEM(ca, now.Add(-backdate), now.Add(servingLifetime))
	if err != nil {
		return nil, false, fmt.Errorf("making the webhook's certificate for %s: %w", host, err)
	}
	renewed = maps.Clone(data)
	if renewed == nil {
		renewed = map[string][]byte{}
	}
	renewed[CACertKey], renewed[caKeyKey], renewed[certKey], renewed[keyKey] = ca.CertPEM, ca.KeyPEM, cert, key
	return renewed, true, nil
}

// Parse is the serving certificate in the Secret's data.
func Parse(data map[string][]byte) (tls.Certificate, error) {
	return tls.X509KeyPair(data[certKey], data[keyKey])
}

type pair struct{ cert, key []byte }

func valid(ca []byte, p pair, host string, usages *[]x509.ExtKeyUsage, at time.Time) bool {
	ok, err := rotator.ValidCert(ca, p.cert, p.key, host, usages, at)
	return ok && err == nil
}

func parseAuthority(data map[string][]byte) (*rotator.KeyPairArtifacts, error) {
	parsed, err := tls.X509KeyPair(data[CACertKey], data[caKeyKey])
	if err != nil {
		return nil, err
	}
	key, ok := parsed.PrivateKey.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("its key is not an RSA key; delete the Secret, it is made anew")
	}
	return &rotator.KeyPairArtifacts{Cert: parsed.Leaf, Key: key, CertPEM: data[CACertKey], KeyPEM: data[caKeyKey]}, nil
}
