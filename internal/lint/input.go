// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxInput is the most that is read of one file. A rendered chart has a few
// MiB; a parsed document needs a hundred times its size.
const maxInput = 16 << 20

// Fault is a reason why an input cannot be read.
type Fault struct {
	File string
	// Line counts from 1; 0 where the whole file is meant.
	Line int
	// Field is the path inside the object; empty where none is to blame.
	Field string
	// Message says what is wrong and what was expected, in one line.
	Message string
}

// String is the fault as compilers print theirs: file:line: field: message.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Field != "" {
		b.WriteString(": " + f.Field)
	}
	return b.String() + ": " + f.Message
}

// byLine orders faults as they stand in their file.
func byLine(a, b Fault) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
}

// Input is one file with what was found in it.
type Input struct {
	// Name is the file's name as the caller gave it.
	Name string
	// Objects are the QueueWorkers, in the order in which they stand there.
	Objects []Object
	// Faults are those that belong to no QueueWorker.
	Faults []Fault
	// PassedOver is the number of objects of other kinds.
	PassedOver int
}

// Unreadable is an input that could not even be opened.
func Unreadable(name, message string) Input {
	return Input{Name: name, Faults: []Fault{{File: name, Message: message}}}
}

// Read takes a file apart. It reads at most 16 MiB and never fails: what cannot
// be read is a fault of the input.
func Read(name string, r io.Reader) Input {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return Unreadable(name, "cannot be read: "+oneLine(err.Error()))
	}
	data, problem := text(data)
	if problem != "" {
		return Unreadable(name, problem)
	}
	in := Input{Name: name}
	documents, faults := split(data)
	in.fault(faults...)
	for _, d := range documents {
		in.add(d)
	}
	if len(in.Objects)+len(in.Faults)+in.PassedOver == 0 {
		in.fault(Fault{Message: "holds no object: expected YAML or JSON with QueueWorkers"})
	}
	return in
}

func (in *Input) fault(faults ...Fault) {
	for _, f := range faults {
		f.File = in.Name
		in.Faults = append(in.Faults, f)
	}
}

// sortedFaults are the faults of a file and of its objects by line.
func (in Input) sortedFaults() []Fault {
	faults := slices.Clone(in.Faults)
	for i := range in.Objects {
		faults = append(faults, in.Objects[i].Faults...)
	}
	slices.SortStableFunc(faults, byLine)
	return faults
}

// text returns the input without a byte order mark, or says why it is no text.
func text(data []byte) (clean []byte, problem string) {
	switch {
	case len(data) > maxInput:
		return nil, fmt.Sprintf("is larger than %d MiB: split it", maxInput>>20)
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return nil, "is UTF-16: save it as UTF-8"
	}
	data = bytes.TrimPrefix(data, []byte{0xef, 0xbb, 0xbf})
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return nil, fmt.Sprintf("is not text: line %d holds a zero byte", lineAt(data, i))
	}
	if !utf8.Valid(data) {
		return nil, fmt.Sprintf("is not text: line %d is not UTF-8", lineAt(data, firstInvalid(data)))
	}
	return data, ""
}

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return len(data)
}

// lineAt is the line, from 1, that holds a position.
func lineAt(data []byte, position int) int {
	return bytes.Count(data[:position], []byte("\n")) + 1
}

// oneLine keeps a foreign error text from breaking a report apart.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
