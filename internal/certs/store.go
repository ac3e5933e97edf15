// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrNoCertificate is what a caller is told before there is a certificate.
var ErrNoCertificate = errors.New("there is no certificate yet")

// Store holds the certificate that the listeners present. The zero value is
// empty; it may be filled, and filled anew, at any time.
type Store struct {
	current atomic.Pointer[tls.Certificate]
}

// Set replaces the certificate.
func (s *Store) Set(cert tls.Certificate) { s.current.Store(&cert) }

// GetCertificate is a tls.Config's.
func (s *Store) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := s.current.Load(); cert != nil {
		return cert, nil
	}
	return nil, ErrNoCertificate
}

// Ready is nil while there is a certificate that has not expired.
func (s *Store) Ready(now time.Time) error {
	cert, err := s.GetCertificate(nil)
	if err != nil {
		return err
	}
	if now.After(cert.Leaf.NotAfter) {
		return fmt.Errorf("the certificate expired at %s", cert.Leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}
