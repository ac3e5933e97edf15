// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// Columns are the table's, in the order in which rows are read and inserted.
var Columns = []string{
	"scope", "idem_key", "fingerprint", "state", "token", "attempt", "owner",
	"lease_until", "quiet_until", "first_sent_at", "doubt", "generation", "resends",
	"outcome", "status", "headers", "body", "body_digest", "provider_id",
	"reason", "settled_by", "settled_who", "settled_at", "checked_at",
}

var columnList = strings.Join(Columns, ", ")

// value takes one parameter out of a statement.
type value func(s *fence.Statement) any

// built is a statement's text and how its parameters are found.
type built struct {
	sql    string
	values []value
}

func (b built) args(s *fence.Statement) []any {
	args := make([]any, len(b.values))
	for i, v := range b.values {
		args[i] = v(s)
	}
	return args
}

// builder writes SQL and numbers the parameters.
type builder struct {
	d      Dialect
	values []value
}

func (b *builder) param(v value) string {
	b.values = append(b.values, v)
	return b.d.Param(len(b.values))
}

func (b *builder) plus(v func(s *fence.Statement) time.Duration) string {
	return b.d.Plus(b.param(func(s *fence.Statement) any { return v(s).Microseconds() }))
}

func scope(s *fence.Statement) any       { return s.Key.Scope }
func idemKey(s *fence.Statement) any     { return s.Key.ID }
func token(s *fence.Statement) any       { return s.Token[:] }
func newToken(s *fence.Statement) any    { return s.New[:] }
func fingerprint(s *fence.Statement) any { return s.Fingerprint[:] }
func owner(s *fence.Statement) any       { return clip(s.Owner, maxName) }
func reason(s *fence.Statement) any      { return clip(s.Reason, maxReason) }
func by(s *fence.Statement) any          { return s.By }
func who(s *fence.Statement) any         { return clip(s.Who, maxName) }

// What people read may be cut, since an outcome must never be lost because its
// explanation does not fit.
const (
	maxName   = 255
	maxReason = 1000
)

func clip(text string, limit int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "?")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

func lease(s *fence.Statement) time.Duration { return s.Lease }
func quiet(s *fence.Statement) time.Duration { return s.Quiet }

// response takes a part of what is to be kept; a statement without a response
// keeps an empty one.
func response(part func(r *fence.Response) any) value {
	return func(s *fence.Statement) any {
		if s.Response == nil {
			return part(&fence.Response{})
		}
		return part(s.Response)
	}
}

// kept is never NULL: NULL marks a tombstone.
func kept(b []byte) any {
	if b == nil {
		return []byte{}
	}
	return b
}

// claim writes OpClaim's INSERT without its conflict clause.
func (d Dialect) claim(t Table) built {
	b := builder{d: d}
	of := map[string]string{
		"scope": b.param(scope), "idem_key": b.param(idemKey),
	}
	rest := []struct{ column, text string }{
		{"fingerprint", b.param(fingerprint)}, {"state", "'" + fence.Claimed.String() + "'"},
		{"token", b.param(newToken)}, {"attempt", cmp.Or(d.First, "1")}, {"owner", b.param(owner)},
		{"lease_until", b.plus(lease)}, {"quiet_until", b.plus(quiet)}, {"first_sent_at", d.Now},
	}
	for _, r := range rest {
		of[r.column] = r.text
	}
	var columns, texts []string
	for _, c := range Columns {
		if text, ok := of[c]; ok {
			columns, texts = append(columns, c), append(texts, text)
		}
	}
	insert := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", t.Quoted(d), strings.Join(columns, ", "), strings.Join(texts, ", "))
	return built{d.Claim(insert, columnList, d.Now, t, d), b.values}
}

// update writes any other transition.
func (d Dialect) update(t Table, op fence.Op) built {
	b := builder{d: d}
	transition := fence.TransitionOf(op)
	sets := b.sets(transition.Change)
	where := b.where(transition.Guard)
	return built{fmt.Sprintf("UPDATE %s SET %s WHERE %s", t.Quoted(d), strings.Join(sets, ", "), where), b.values}
}

// sets lists doubt before quiet_until: some databases let an assignment see
// those to its left.
func (b *builder) sets(c fence.Change) []string {
	var sets []string
	set := func(column, text string) { sets = append(sets, column+" = "+text) }
	if c.Doubt {
		set("doubt", fmt.Sprintf("CASE WHEN quiet_until < %s THEN %d ELSE %d END", b.d.Now, fence.DoubtQuiet, fence.DoubtAlive))
		set("resends", "resends + 1")
	}
	if c.Grant {
		set("token", b.param(newToken))
		set("owner", b.param(owner))
		set("attempt", "attempt + 1")
		set("lease_until", b.plus(lease))
		set("quiet_until", b.plus(quiet))
	}
	if c.Restart {
		set("first_sent_at", b.d.Now)
		sets = append(sets, "doubt = 0", "resends = 0", "reason = ''", "settled_by = ''", "settled_who = ''",
			"settled_at = NULL", "checked_at = NULL")
	}
	return append(sets, b.evidence(c)...)
}

func (b *builder) evidence(c fence.Change) []string {
	var sets []string
	set := func(column, text string) { sets = append(sets, column+" = "+text) }
	if c.To != fence.NoRow {
		set("state", "'"+c.To.String()+"'")
	}
	if c.EndLease {
		set("lease_until", b.d.Now)
	}
	if c.NextGeneration {
		set("generation", "generation + 1")
	}
	if c.Outcome != fence.NoOutcome {
		set("outcome", "'"+string(c.Outcome)+"'")
		set("status", b.param(response(func(r *fence.Response) any { return r.Status })))
		set("headers", b.param(response(func(r *fence.Response) any { return kept(r.Headers) })))
		set("body", b.param(response(func(r *fence.Response) any { return kept(r.Body) })))
		set("body_digest", b.param(response(func(r *fence.Response) any { return r.BodyDigest[:] })))
		set("provider_id", b.param(response(func(r *fence.Response) any { return clip(r.ProviderID, maxName) })))
	}
	if c.Settled {
		set("settled_by", b.param(by))
		set("settled_who", b.param(who))
		set("settled_at", b.d.Now)
	}
	if c.Reason {
		set("reason", b.param(reason))
	}
	if c.Checked {
		set("checked_at", b.d.Now)
	}
	return sets
}

func (b *builder) where(g fence.Guard) string {
	states := make([]string, 0, 5)
	for s := fence.Claimed; s <= fence.NeedsReview; s++ {
		if g.From.Has(s) {
			states = append(states, "'"+s.String()+"'")
		}
	}
	all := []string{
		"scope = " + b.param(scope), "idem_key = " + b.param(idemKey),
		b.d.Hidden("state") + " IN (" + strings.Join(states, ", ") + ")",
	}
	if g.Token {
		all = append(all, "token = "+b.param(token))
	}
	if g.MaxDoubt < fence.DoubtAlive {
		all = append(all, fmt.Sprintf("doubt <= %d", g.MaxDoubt))
	}
	if g.LeaseOver {
		all = append(all, "lease_until < "+b.d.Now)
	}
	if g.Quiet {
		all = append(all, "quiet_until < "+b.d.Now)
	}
	if g.KeyAlive {
		all = append(all, "first_sent_at > "+b.plus(func(s *fence.Statement) time.Duration { return s.Margin - s.KeyLife }))
	}
	return strings.Join(all, " AND ")
}
