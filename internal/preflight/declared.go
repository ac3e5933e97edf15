// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// DeclaredEnv is the environment variable that carries [Declared] to the init
// container.
const DeclaredEnv = "QUEUEWORKER_PREFLIGHT"

// MemoryLimitEnv is the environment variable that carries the container's memory
// limit, in bytes.
const MemoryLimitEnv = "QUEUEWORKER_MEMORY_LIMIT"

// DeclaredVersion is the version of [Declared] that this package writes and
// reads.
const DeclaredVersion = 1

// Supervision is how much the agent does for the worker.
type Supervision string

// The kinds of supervision.
const (
	Full        Supervision = "Full"        // our entry runs in the worker and sets its retry_after
	SignalsOnly Supervision = "SignalsOnly" // the worker runs as the image has it
)

// Declared is what the application can contradict and the chain document of the
// pod does not hold. Seconds, unless the name says otherwise; an absent number
// is one that was not declared.
type Declared struct {
	Version     int         `json:"v"`
	Connection  string      `json:"connection,omitempty"` // empty = the application's default
	Queues      []string    `json:"queues,omitempty"`     // empty = the connection's own queue
	Supervision Supervision `json:"supervision"`

	BlockFor         *int64  `json:"blockFor,omitempty"`
	Tries            *int64  `json:"tries,omitempty"`
	RetryUntil       *int64  `json:"retryUntil,omitempty"`
	Backoff          []int64 `json:"backoff,omitempty"`
	MessageRetention *int64  `json:"messageRetention,omitempty"`
	ProviderKeyTTL   *int64  `json:"providerKeyTTL,omitempty"`

	MemoryMegabytes *int64 `json:"memory,omitempty"` // --memory
	Rest            *int64 `json:"rest,omitempty"`

	Fence      timeoutchain.FenceMode `json:"fence,omitempty"` // empty = None
	FenceTable string                 `json:"fenceTable,omitempty"`
	FenceKey   string                 `json:"fenceKey,omitempty"` // the column that must be unique
}

// Encode renders the document; the same declaration always gives the same text.
func (d Declared) Encode() string {
	d.Version = DeclaredVersion
	text, err := json.Marshal(d)
	if err != nil { // texts and integers only: cannot happen
		return ""
	}
	return string(text)
}

// DecodeDeclared reads the document strictly: what is not understood is an
// error, since a judge that guesses at the law is worse than none.
func DecodeDeclared(text string) (Declared, error) {
	var d Declared
	if err := timeoutchain.DecodeStrictly([]byte(text), &d); err != nil {
		return Declared{}, fmt.Errorf("%s is not a preflight document: %w", DeclaredEnv, err)
	}
	if d.Version != DeclaredVersion {
		return Declared{}, fmt.Errorf("%s has version %d, this program reads version %d", DeclaredEnv, d.Version, DeclaredVersion)
	}
	if d.Supervision != Full && d.Supervision != SignalsOnly {
		return Declared{}, fmt.Errorf("%s names supervision %q, known are %s and %s", DeclaredEnv, d.Supervision, Full, SignalsOnly)
	}
	switch d.Fence {
	case "", timeoutchain.FenceNone, timeoutchain.FenceTable, timeoutchain.FenceProxy:
		return d, nil
	default:
		return Declared{}, fmt.Errorf("%s names fence %q, known are None, Table and Proxy", DeclaredEnv, d.Fence)
	}
}

// chain is the chain that a worker in this pod acts on.
func (d Declared) chain(w timeoutchain.Wire, memoryLimit int64) timeoutchain.Chain {
	c := timeoutchain.Chain{
		Runtime: w.Runtime, Driver: w.Driver,
		HTTP: positive(w.CallSeconds), Job: timeoutchain.Of(w.JobSeconds), RetryAfter: positive(w.RetryAfterSeconds),
		Grace: timeoutchain.Of(w.GraceSeconds), GraceOutlasts: timeoutchain.OutlastsReservation,
		BeforeStop: positive(w.BeforeStopSeconds),
		BlockFor:   optional(d.BlockFor), Queues: max(int64(len(d.Queues)), 1),
		Tries: optional(d.Tries), RetryUntil: optional(d.RetryUntil), Backoff: d.Backoff,
		MessageRetention: optional(d.MessageRetention), ProviderKeyTTL: optional(d.ProviderKeyTTL), Fence: cmp.Or(d.Fence, timeoutchain.FenceNone),
		Worker: timeoutchain.Worker{Rest: optional(d.Rest), MemoryMegabytes: optional(d.MemoryMegabytes)},
		Pod:    timeoutchain.Pod{MemoryLimitBytes: positive(memoryLimit)},
	}
	if c.RetryAfter.N() >= c.Grace.N() { // only one declaration admits that
		c.GraceOutlasts = timeoutchain.OutlastsJob
	}
	return c
}

func optional(n *int64) timeoutchain.Value {
	if n == nil {
		return timeoutchain.Value{}
	}
	return timeoutchain.Of(*n)
}

func positive(n int64) timeoutchain.Value {
	if n <= 0 {
		return timeoutchain.Value{}
	}
	return timeoutchain.Of(n)
}
