// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/helm-unittest/helm-unittest/pkg/unittest"
	"github.com/helm-unittest/helm-unittest/pkg/unittest/printer"

	"github.com/queueworker/operator/hack/chart/render"
)

var ran = regexp.MustCompile(`Tests: +[1-9][0-9]* passed`)

// The suites of the chart, as the plugin runs them. They render with Helm 3, all
// other tests with Helm 4.
func TestSuitesOfTheChart(t *testing.T) {
	output, plain := &bytes.Buffer{}, false
	runner := unittest.TestRunner{
		Printer:   printer.NewPrinter(output, &plain),
		TestFiles: []string{filepath.Join("tests", "*_test.yaml")},
		Strict:    true,
	}
	if !runner.RunV3([]string{filepath.Join(root, render.Folder)}) {
		t.Error(output.String())
	}
	if !ran.Match(output.Bytes()) {
		t.Errorf("no suite ran:\n%s", output.String())
	}
}
