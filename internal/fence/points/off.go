// SPDX-License-Identifier: Apache-2.0

//go:build !fencepoints

package points

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// Store returns the store as it is.
func Store(s fence.Store) fence.Store { return s }

// Upkeep returns the store as it is.
func Upkeep(s fence.Store) fence.Store { return s }

// Asker returns the sender as it is.
func Asker(s fence.Sender) fence.Sender { return s }

// Every returns the pause as it is.
func Every(d time.Duration) time.Duration { return d }

// Dial returns the function as it is.
func Dial(f func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return f
}

// Transport returns the transport as it is.
func Transport(t http.RoundTripper) http.RoundTripper { return t }

// Handler returns the handler as it is.
func Handler(h http.Handler) http.Handler { return h }
