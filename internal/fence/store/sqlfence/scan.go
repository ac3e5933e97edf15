// SPDX-License-Identifier: Apache-2.0

package sqlfence

import (
	"bytes"
	"fmt"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// moment reads a time however the database hands it over: as a time, or as
// microseconds since 1970. NULL is the zero time.
type moment struct{ t time.Time }

// Scan implements sql.Scanner.
func (m *moment) Scan(from any) error {
	switch v := from.(type) {
	case nil:
		m.t = time.Time{}
	case time.Time:
		m.t = v.UTC()
	case int64:
		m.t = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time came as %T", from)
	}
	return nil
}

func scanMoment(scan scanner) (m moment, err error) {
	err = scan(&m)
	return m, err
}

// scanClaimed is scanRow for the answer to a claim. Of a row that the claim
// itself made, only what the database chose is read, since reading a value costs
// more than making the row.
func scanClaimed(scan scanner, st *fence.Statement) (fence.Row, error) {
	var state string
	var token []byte
	var lease, quiet, first, readAt moment
	row := fence.Row{
		Key: st.Key, Fingerprint: st.Fingerprint, State: fence.Claimed, Token: st.New, Owner: clip(st.Owner, maxName),
	}
	err := scan(nil, nil, nil, &state, &token, &row.Attempt, nil,
		&lease, &quiet, &first, nil, &row.Generation, nil,
		nil, nil, nil, nil, nil, nil,
		nil, nil, nil, nil, nil, &readAt)
	if err != nil {
		return fence.Row{}, err
	}
	if state != fence.Claimed.String() || row.Attempt != 1 || !bytes.Equal(token, st.New[:]) {
		return scanRow(scan)
	}
	row.LeaseUntil, row.QuietUntil, row.FirstSentAt, row.ReadAt = lease.t, quiet.t, first.t, readAt.t
	return row, nil
}

// scanRow reads Columns and the clock.
func scanRow(scan scanner) (fence.Row, error) {
	var (
		row                                           fence.Row
		response                                      fence.Response
		state, outcome                                string
		fingerprint, token, digest                    []byte
		lease, quiet, first, settled, checked, readAt moment
	)
	err := scan(&row.Key.Scope, &row.Key.ID, &fingerprint, &state, &token, &row.Attempt, &row.Owner,
		&lease, &quiet, &first, &row.Doubt, &row.Generation, &row.Resends,
		&outcome, &response.Status, &response.Headers, &response.Body, &digest, &response.ProviderID,
		&row.Reason, &row.SettledBy, &row.SettledWho, &settled, &checked, &readAt)
	if err != nil {
		return fence.Row{}, err
	}
	if row.State, err = fence.ParseState(state); err != nil {
		return fence.Row{}, err
	}
	for _, b := range []struct {
		name string
		from []byte
		to   []byte
	}{
		{"fingerprint", fingerprint, row.Fingerprint[:]}, {"token", token, row.Token[:]},
		{"body_digest", digest, response.BodyDigest[:]},
	} {
		if len(b.from) != len(b.to) && !(b.name == "body_digest" && b.from == nil) {
			return fence.Row{}, fmt.Errorf("%s holds %d bytes instead of %d", b.name, len(b.from), len(b.to))
		}
		copy(b.to, b.from)
	}
	row.LeaseUntil, row.QuietUntil, row.FirstSentAt = lease.t, quiet.t, first.t
	row.SettledAt, row.CheckedAt, row.ReadAt = settled.t, checked.t, readAt.t
	if row.Outcome = fence.Outcome(outcome); row.Outcome != fence.NoOutcome {
		row.Response = &response
	}
	return row, nil
}
