// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// CertificatesFile is where Debian keeps the authorities that a machine trusts, and where the image has its own: Go looks there.
const CertificatesFile = "/etc/ssl/certs/ca-certificates.crt"

// Certificates reads the authorities that an image is to trust, and says how many they are.
func Certificates(file string) (content []byte, count int, err error) {
	const remedy = "name a PEM file of authorities with CA_CERTIFICATES=FILE, or install the package ca-certificates"
	content, err = os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("there are no authorities at %s, by which the fence verifies providers: %s", file, remedy)
	}
	if err != nil {
		return nil, 0, err
	}
	for rest := content; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, 0, fmt.Errorf("%s: block %d is a %s, not a CERTIFICATE: %s", file, count+1, block.Type, remedy)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, 0, fmt.Errorf("%s: block %d is no certificate (%w): %s", file, count+1, err, remedy)
		}
	}
	if count == 0 {
		return nil, 0, fmt.Errorf("%s holds no certificate in PEM: %s", file, remedy)
	}
	return content, count, nil
}
