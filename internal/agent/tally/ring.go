// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A worker writes each run into the next slot of a file that never grows: it
// waits for nobody, and who reads too late misses the oldest. A slot is a line
//
//	SEQUENCE RESULT ATTEMPT MICROSECONDS CLASS   …padding…   SEQUENCE
//
// with the sequence, which counts from 1, at both ends: where they differ, the
// slot is being written.
const (
	slotBytes = 256
	tailBytes = 16   // the last sequence and the line's end
	slots     = 2048 // of one worker
	inOneRead = 64
)

// Ring reads one worker's file.
type Ring struct {
	path string
	next int64
}

// RingOf is the file of a process.
func RingOf(dir string, pid int) *Ring {
	return &Ring{path: filepath.Join(dir, "w."+strconv.Itoa(pid)+".runs"), next: 1}
}

// Drop removes the file.
func (r *Ring) Drop() { _ = os.Remove(r.path) }

// Read counts what was written since the last time. A worker without a file has
// written nothing.
func (r *Ring) Read(into *Tally) {
	file, err := os.Open(r.path)
	if err != nil {
		return
	}
	defer file.Close()
	buffer := make([]byte, inOneRead*slotBytes)
	for {
		at := (r.next - 1) % slots
		n, err := file.ReadAt(buffer[:min(inOneRead, slots-at)*slotBytes], at*slotBytes)
		if err != nil && !errors.Is(err, io.EOF) || n < slotBytes || !r.take(buffer[:n/slotBytes*slotBytes], into) {
			return
		}
	}
}

// take counts the slots that are new, and says whether there may be more.
func (r *Ring) take(text []byte, into *Tally) bool {
	for len(text) > 0 {
		sequence, run, ok := parse(text[:slotBytes])
		switch {
		case !ok || sequence < r.next || (sequence-r.next)%slots != 0:
			return false
		case sequence > r.next: // a lap or more behind: the oldest that is left is in the next slot
			oldest := sequence - slots + 1
			into.Lost(oldest - r.next)
			r.next = oldest
		default:
			into.Ran(run)
			r.next++
		}
		text = text[slotBytes:]
	}
	return true
}

func parse(slot []byte) (sequence int64, run Run, ok bool) {
	fields := strings.SplitN(string(bytes.TrimRight(slot[:slotBytes-tailBytes], " ")), " ", 5)
	last, err := strconv.ParseInt(strings.TrimSpace(string(slot[slotBytes-tailBytes:])), 10, 64)
	if err != nil || len(fields) != 5 || strconv.FormatInt(last, 10) != fields[0] {
		return 0, Run{}, false
	}
	attempt, attemptErr := strconv.Atoi(fields[2])
	micros, microsErr := strconv.ParseInt(fields[3], 10, 64)
	if attemptErr != nil || microsErr != nil || last < 1 {
		return 0, Run{}, false
	}
	return last, Run{Class: fields[4], Result: Result(fields[1]), Attempt: attempt, Took: time.Duration(micros) * time.Microsecond}, true
}
