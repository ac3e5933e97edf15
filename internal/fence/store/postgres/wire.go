// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// epoch is where the server's clock begins, in microseconds since 1970.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// encode turns parameters into bytes. Numbers and times go as text, since the
// server knows how wide its columns are.
func encode(args []any) (values [][]byte, formats []int16, err error) {
	values, formats = make([][]byte, len(args)), make([]int16, len(args))
	text := make([]byte, 0, 192)
	for i, arg := range args {
		from := len(text)
		switch v := arg.(type) {
		case []byte:
			values[i], formats[i] = v, pgx.BinaryFormatCode
			continue
		case string:
			text = append(text, v...)
		case int64:
			text = strconv.AppendInt(text, v, 10)
		case int:
			text = strconv.AppendInt(text, int64(v), 10)
		case time.Time:
			text = v.UTC().AppendFormat(text, "2006-01-02 15:04:05.999999Z")
		default:
			return nil, nil, fmt.Errorf("parameter %d is a %T", i+1, arg)
		}
		values[i] = text[from:len(text):len(text)]
	}
	return values, formats, nil
}

// decode reads one row; a value whose destination is nil is left out.
func decode(dest []any, values [][]byte, fields []pgconn.FieldDescription) error {
	if len(dest) != len(values) || len(dest) != len(fields) {
		return fmt.Errorf("a row has %d values instead of %d", len(values), len(dest))
	}
	for i, to := range dest {
		if to == nil {
			continue
		}
		if err := decodeOne(to, values[i], fields[i].DataTypeOID); err != nil {
			return fmt.Errorf("the column %s: %w", fields[i].Name, err)
		}
	}
	return nil
}

func decodeOne(dest any, value []byte, oid uint32) error {
	switch to := dest.(type) {
	case *string:
		if (oid == pgtype.TextOID || oid == pgtype.VarcharOID) && value != nil {
			*to = string(value)
			return nil
		}
	case *[]byte:
		if oid == pgtype.ByteaOID {
			*to = slices.Clone(value) // NULL and empty stay apart
			return nil
		}
	case *int:
		n, ok := number(value, oid)
		*to = n
		if ok {
			return nil
		}
	case sql.Scanner: // of a time
		return decodeTime(to, value, oid)
	}
	if value == nil {
		return fmt.Errorf("it is NULL, for a %T", dest)
	}
	return fmt.Errorf("its type has the OID %d, which is none for a %T", oid, dest)
}

func number(value []byte, oid uint32) (n int, ok bool) {
	switch {
	case oid == pgtype.Int2OID && len(value) == 2:
		return int(int16(binary.BigEndian.Uint16(value))), true //nolint:gosec // as it was sent
	case oid == pgtype.Int4OID && len(value) == 4:
		return int(int32(binary.BigEndian.Uint32(value))), true //nolint:gosec // as it was sent
	case oid == pgtype.Int8OID && len(value) == 8:
		return int(int64(binary.BigEndian.Uint64(value))), true //nolint:gosec // as it was sent
	}
	return 0, false
}

func decodeTime(to sql.Scanner, value []byte, oid uint32) error {
	if value == nil {
		return to.Scan(nil)
	}
	if oid != pgtype.TimestamptzOID || len(value) != 8 {
		return fmt.Errorf("its type has the OID %d, which is none for a time", oid)
	}
	micros := int64(binary.BigEndian.Uint64(value)) //nolint:gosec // as it was sent
	if micros == math.MaxInt64 || micros == math.MinInt64 {
		return fmt.Errorf("its time is infinite")
	}
	return to.Scan(micros + epoch)
}
