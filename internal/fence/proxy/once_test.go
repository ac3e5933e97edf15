// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net"
	"testing"
	"time"
)

// sink is a connection that counts bytes.
type sink struct {
	net.Conn
	bytes int
}

func (s *sink) Write(b []byte) (int, error) {
	s.bytes += len(b)
	return len(b), nil
}

func TestPermission(t *testing.T) {
	now := time.Unix(1000, 0)
	permission := func() *once {
		return &once{until: now, now: func() time.Time { return now }}
	}
	write := func(o *once, times int) (bytes int, err error) {
		s := &sink{}
		c := &guarded{Conn: s}
		if o != nil {
			c.begin(o)
		}
		for range times {
			_, err = c.Write([]byte("12345"))
		}
		return s.bytes, err
	}
	if n, err := write(nil, 1); n != 0 || !errors.Is(err, errNobody) {
		t.Errorf("without a request: %d bytes, %v", n, err)
	}
	o := permission()
	if n, err := write(o, 3); n != 15 || err != nil {
		t.Errorf("one request in three pieces: %d bytes, %v", n, err)
	}
	if n, err := write(o, 1); n != 0 || !errors.Is(err, errAgain) {
		t.Errorf("again on another connection: %d bytes, %v", n, err)
	}
	if o.seal() {
		t.Error("a written request counts as not sent")
	}
	o = permission()
	if !o.seal() {
		t.Error("an unwritten request does not count as not sent")
	}
	if n, err := write(o, 1); n != 0 || !errors.Is(err, errSealed) {
		t.Errorf("after the end: %d bytes, %v", n, err)
	}
	o = permission()
	o.until = now.Add(-time.Nanosecond)
	if n, err := write(o, 1); n != 0 || !errors.Is(err, errTooLate) || !o.seal() {
		t.Errorf("too late: %d bytes, %v", n, err)
	}
}

// TestConnectionOfAnotherRequest: what a kept connection was allowed before
// does not count for the next request.
func TestConnectionOfAnotherRequest(t *testing.T) {
	s := &sink{}
	c := &guarded{Conn: s}
	first := &once{until: time.Now().Add(time.Hour), now: time.Now}
	c.begin(first)
	_, _ = c.Write([]byte("1"))
	second := &once{until: time.Now().Add(-time.Hour), now: time.Now}
	c.begin(second)
	if _, err := c.Write([]byte("2")); !errors.Is(err, errTooLate) || s.bytes != 1 {
		t.Errorf("%d bytes, %v", s.bytes, err)
	}
}
