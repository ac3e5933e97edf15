// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/queueworker/operator/internal/fence/store/postgres"
)

// microseconds is where a time is read to: the store's own type is not ours.
type microseconds struct{ got any }

func (m *microseconds) Scan(from any) error { m.got = from; return nil }

// TestValuesOfTheServer: what the server sends for a value is that value.
func TestValuesOfTheServer(t *testing.T) {
	number := func(want int) func(*testing.T, []byte, uint32) {
		return func(t *testing.T, value []byte, oid uint32) {
			var got int
			if err := decodeOne(&got, value, oid); err != nil || got != want {
				t.Errorf("%d, %v: want %d", got, err, want)
			}
		}
	}
	moment := func(want any) func(*testing.T, []byte, uint32) {
		return func(t *testing.T, value []byte, oid uint32) {
			var got microseconds
			if err := decodeOne(&got, value, oid); err != nil || got.got != want {
				t.Errorf("%v, %v: want %v", got.got, err, want)
			}
		}
	}
	for sql, check := range map[string]func(t *testing.T, value []byte, oid uint32){
		"-7::smallint": number(-7), "-70000::integer": number(-70000), "-7000000000::bigint": number(-7000000000),
		"NULL::timestamptz":                            moment(nil),
		"'1969-12-31 23:59:59.999999+00'::timestamptz": moment(int64(-1)),
		"'2026-12-01 12:00:00.000001+02'::timestamptz": moment(time.Date(2026, 12, 1, 10, 0, 0, 1000, time.UTC).UnixMicro()),
		"'9999-12-31 23:59:59.999999+00'::timestamptz": moment(time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC).UnixMicro()),
		"'Ünïcode'": func(t *testing.T, value []byte, oid uint32) {
			var got string
			if err := decodeOne(&got, value, oid); err != nil || got != "Ünïcode" {
				t.Errorf("%q, %v", got, err)
			}
		},
		"NULL::bytea": func(t *testing.T, value []byte, oid uint32) {
			got := []byte("before")
			if err := decodeOne(&got, value, oid); err != nil || got != nil {
				t.Errorf("%v, %v", got, err)
			}
		},
		"''::bytea": func(t *testing.T, value []byte, oid uint32) {
			var got []byte
			if err := decodeOne(&got, value, oid); err != nil || got == nil || len(got) > 0 {
				t.Errorf("%v, %v", got, err)
			}
		},
	} {
		t.Run(sql, func(t *testing.T) {
			value, oid := ask(t, "SELECT "+sql)
			check(t, value, oid)
		})
	}
}

func decodeOne(dest any, value []byte, oid uint32) error {
	return postgres.Decode([]any{dest}, [][]byte{value}, []pgconn.FieldDescription{{Name: "c", DataTypeOID: oid}})
}

// ask returns the one value of a query, as the server sends it.
func ask(t *testing.T, sql string, args ...any) (value []byte, oid uint32) {
	t.Helper()
	values, formats, err := postgres.Encode(args)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := admin.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	result := conn.Conn().PgConn().ExecParams(t.Context(), sql, values, nil, formats, []int16{1}).Read()
	if result.Err != nil || len(result.Rows) != 1 {
		t.Fatalf("%s: %d rows, %v", sql, len(result.Rows), result.Err)
	}
	return result.Rows[0][0], result.FieldDescriptions[0].DataTypeOID
}

// TestParametersReachTheServer: it takes a parameter for the value it was.
func TestParametersReachTheServer(t *testing.T) {
	for sql, args := range map[string][]any{
		"$1 = 'O''Brien \\ $2 ü'::text":                                        {`O'Brien \ $2 ü`},
		"$1::text = '' AND $2::text = 'b'":                                     {"", "b"},
		`$1 = '\x00ff5c27'::bytea`:                                             {[]byte{0, 0xff, '\\', '\''}},
		"$1::bytea IS NULL AND length($2::bytea) = 0":                          {[]byte(nil), []byte{}},
		"$1 = (-9223372036854775808)::bigint":                                  {int64(math.MinInt64)},
		"$1 = 32767::smallint AND $2 = 7::integer":                             {32767, 7},
		"$1 = '2026-12-01 10:00:00.000001+00'::timestamptz AND $2 = 'x' || ''": {time.Date(2026, 12, 1, 12, 0, 0, 1999, time.FixedZone("", 7200)), "x"},
		"octet_length($1) = 1000 AND $2 = 'after'::text":                       {strings.Repeat("x", 1000), "after"},
	} {
		if value, _ := ask(t, "SELECT "+sql, args...); len(value) != 1 || value[0] != 1 {
			t.Errorf("%s is not so for %v", sql, args)
		}
	}
	if _, _, err := postgres.Encode([]any{"a", 1.5}); err == nil || err.Error() != "parameter 2 is a float64" {
		t.Errorf("%v", err)
	}
}

func TestValuesThatDoNotFit(t *testing.T) {
	for want, c := range map[string]struct {
		dest  any
		value []byte
		oid   uint32
	}{
		"the column c: it is NULL, for a *string":                              {new(string), nil, pgtype.TextOID},
		"the column c: it is NULL, for a *int":                                 {new(int), nil, pgtype.Int4OID},
		"the column c: its type has the OID 1114, which is none for a time":    {new(microseconds), make([]byte, 8), pgtype.TimestampOID},
		"the column c: its type has the OID 3802, which is none for a *string": {new(string), []byte("\x01{}"), pgtype.JSONBOID},
		"the column c: its type has the OID 25, which is none for a *[]uint8":  {new([]byte), []byte("x"), pgtype.TextOID},
		"the column c: its type has the OID 1700, which is none for a *int":    {new(int), make([]byte, 8), pgtype.NumericOID},
		"the column c: its time is infinite":                                   {new(microseconds), []byte{0x7f, 255, 255, 255, 255, 255, 255, 255}, pgtype.TimestamptzOID},
	} {
		if err := decodeOne(c.dest, c.value, c.oid); err == nil || err.Error() != want {
			t.Errorf("%v: want %s", err, want)
		}
	}
	if err := postgres.Decode([]any{nil, nil}, [][]byte{nil}, nil); err == nil || err.Error() != "a row has 1 values instead of 2" {
		t.Errorf("%v", err)
	}
}
