// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of the key's two parts, in bytes. The generation suffix is added on
// top of MaxID when the key is sent.
const (
	MaxScope = 64
	MaxID    = 255
)

// Key names one operation: ID is the business key, Scope the provider (or
// claims namespace) it is meant for. Both are compared byte by byte.
type Key struct {
	Scope string
	ID    string
}

// Validate refuses a key that some database could store as another one.
func (k Key) Validate() error {
	if err := validPart("scope", k.Scope, MaxScope); err != nil {
		return err
	}
	return validPart("key", k.ID, MaxID)
}

func validPart(name, value string, limit int) error {
	switch {
	case value == "":
		return fmt.Errorf("%s is empty: it must name the business operation", name)
	case len(value) > limit:
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", name, len(value), limit)
	case !utf8.ValidString(value):
		return fmt.Errorf("%s is not valid UTF-8", name)
	}
	for _, r := range value {
		if unicode.IsControl(r) {
			return fmt.Errorf("%s holds the control character %U", name, r)
		}
	}
	return nil
}

// Token names one attempt. It becomes the token of a row at most once, so a
// guard on it can never mistake one attempt for another.
type Token [16]byte

// NewToken returns 16 random bytes.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:]) // documented never to fail
	return t
}

func (t Token) String() string { return hex.EncodeToString(t[:]) }

// ParseToken reads what String wrote.
func ParseToken(text string) (Token, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(Token{}) {
		return Token{}, fmt.Errorf("%q is no token: it has %d hexadecimal digits", text, 2*len(Token{}))
	}
	return Token(b), nil
}

// Digest is a SHA-256 sum.
type Digest [sha256.Size]byte

// Fingerprint sums up what a request asks for. Another payload under the same
// key has another fingerprint and is refused.
func Fingerprint(method, path string, body []byte) Digest {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(method), []byte(path), body} {
		// The length first, so that no part can flow into the next.
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return Digest(h.Sum(nil))
}

// State is what the row says about the key.
type State uint8

// The states. NoRow is never stored.
const (
	NoRow       State = iota
	Claimed           // one attempt owns the key and may send
	Done              // an effect, or a refusal that is final
	Released          // no effect, and none can still come
	Unknown           // nobody knows yet; time alone never makes it free
	NeedsReview       // only a person can tell
)

var stateNames = [...]string{"no_row", "claimed", "done", "released", "unknown", "needs_review"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "state(" + strconv.Itoa(int(s)) + ")"
}

// ParseState reads what a store wrote with String.
func ParseState(name string) (State, error) {
	for s := Claimed; s <= NeedsReview; s++ {
		if stateNames[s] == name {
			return s, nil
		}
	}
	return NoRow, fmt.Errorf("the row has the unknown state %q", name)
}

// Outcome is the kind of a done row.
type Outcome string

// The outcomes; NoOutcome for every row that is not done.
const (
	NoOutcome Outcome = ""
	Effect    Outcome = "effect"
	Refused   Outcome = "refused"
)

// How much an attempt knows about the attempts before it.
const (
	NoDoubt    = 0 // no earlier attempt is unsettled
	DoubtQuiet = 1 // one is, but its requests were dead when this one was granted
	DoubtAlive = 2 // one is, and its request may still be under way
)

// Response is what the provider said, as far as it is kept for a replay.
type Response struct {
	Status     int
	Headers    []byte // as the store's user encodes them
	Body       []byte // nil once only the tombstone is kept
	BodyDigest Digest // of the body, kept when the body is gone
	ProviderID string // the provider's own name for the effect, "" when it gives none
}

// Row is the fence's memory of one key. All times are the database's.
type Row struct {
	Key         Key
	Fingerprint Digest
	State       State
	Token       Token // the attempt that owns, or last owned, the row
	Attempt     int   // for people; no guard uses it
	Owner       string
	LeaseUntil  time.Time // Claimed: others wait until then. Unknown: since when
	QuietUntil  time.Time // after it every request so far is dead and visible
	FirstSentAt time.Time // grant of the first attempt since the row was free
	Doubt       int
	Generation  int // from 1 on part of the key that is sent
	Resends     int

	Outcome  Outcome
	Response *Response // nil unless done

	Reason     string // why unknown or in review
	SettledBy  string // attempt, lookup or person
	SettledWho string
	SettledAt  time.Time
	CheckedAt  time.Time

	ReadAt time.Time // the database's clock when the row was read
}

// LeaseOver reports whether the owner's time had run out when the row was read.
func (r Row) LeaseOver() bool { return r.LeaseUntil.Before(r.ReadAt) }

// Quiet reports whether, when the row was read, every request of every attempt
// so far was dead and its effect visible to a lookup.
func (r Row) Quiet() bool { return r.QuietUntil.Before(r.ReadAt) }

// SentKey is the key the provider sees. A new generation begins when a lookup
// or a person releases the key, so that what the provider stored for a dead
// attempt is not replayed to the next one. A key that itself ends like a later
// generation always carries its own, or the provider would take it for one of
// another key, and replay to it what that one did.
func (r Row) SentKey() string {
	if r.Generation == 0 && !endsInGeneration(r.Key.ID) {
		return r.Key.ID
	}
	return r.Key.ID + generationMark + strconv.Itoa(r.Generation)
}

const generationMark = "~"

func endsInGeneration(id string) bool {
	i := strings.LastIndex(id, generationMark)
	return i >= 0 && i < len(id)-1 && strings.Trim(id[i+1:], "0123456789") == ""
}

// ErrNoRow says that the store holds nothing under the key.
var ErrNoRow = errors.New("no row for this key")
