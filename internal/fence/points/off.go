// SPDX-License-Identifier: Apache-2.0

//go:build !fencepoints

package points

import (
	"net/http"

	"github.com/queueworker/operator/internal/fence"
)

// Store returns the store as it is.
func Store(s fence.Store) fence.Store { return s }

// Transport returns the transport as it is.
func Transport(t http.RoundTripper) http.RoundTripper { return t }

// Handler returns the handler as it is.
func Handler(h http.Handler) http.Handler { return h }
