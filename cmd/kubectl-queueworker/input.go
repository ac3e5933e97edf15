// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/queueworker/operator/internal/lint"
	"github.com/queueworker/operator/internal/terminal"
)

const stdin = "-"

// readAll reads every input. One that cannot be opened becomes a fault, so that
// the others are still read.
func readAll(in io.Reader, names []string) ([]lint.Input, error) {
	inputs := make([]lint.Input, 0, len(names))
	fromStdin := false
	for _, name := range names {
		if name != stdin {
			inputs = append(inputs, readFile(name))
			continue
		}
		if fromStdin {
			return nil, errors.New("- is given twice: the standard input can be read once")
		}
		fromStdin = true
		inputs = append(inputs, lint.Read("<stdin>", in))
	}
	return inputs, nil
}

func readFile(name string) lint.Input {
	file, err := os.Open(name)
	if err != nil {
		return lint.Unreadable(name, reason(err))
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return lint.Unreadable(name, fmt.Sprintf("is a directory: name its files, as in %s", filepath.Join(name, "*.yaml")))
	}
	return lint.Read(name, file)
}

func reason(err error) string {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "does not exist"
	case errors.Is(err, os.ErrPermission):
		return "cannot be opened: permission denied"
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return "cannot be opened: " + strings.TrimSpace(err.Error())
}

func printFaults(w io.Writer, faults []lint.Fault) {
	for _, f := range faults {
		fmt.Fprintln(w, terminal.Clean(f.String()))
	}
}
