// SPDX-License-Identifier: Apache-2.0

// Package cases holds QueueWorkers after public reports and real
// configurations, each with the verdict that it must get. Every door is tried
// with all of them: the CRD, the webhook, the command line.
package cases

import (
	"embed"
	"fmt"
	"path"

	"sigs.k8s.io/yaml"
)

//go:embed queueworkers/*/*.yaml
var files embed.FS

const root = "queueworkers"

// Verdict is what must come of a case.
type Verdict string

// The verdicts.
const (
	Accept Verdict = "accept" // admitted; Rules are warnings
	Reject Verdict = "reject" // refused; Rules are errors
)

// Case is one QueueWorker.
type Case struct {
	Name  string
	Input []byte // as a user wrote it
	Expect
}

// Expect is what must come of a case.
type Expect struct {
	Verdict Verdict  `json:"verdict"`
	Rules   []string `json:"rules"`  // ids that must be among the findings
	Why     string   `json:"why"`    // in one sentence
	Source  string   `json:"source"` // where it was seen
}

// Load reads all cases, in the order of their names.
func Load() ([]Case, error) {
	folders, err := files.ReadDir(root)
	if err != nil {
		return nil, err
	}
	all := make([]Case, 0, len(folders))
	for _, folder := range folders {
		c, err := read(folder.Name())
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", folder.Name(), err)
		}
		all = append(all, c)
	}
	return all, nil
}

func read(name string) (Case, error) {
	c := Case{Name: name}
	var err error
	if c.Input, err = files.ReadFile(path.Join(root, name, "input.yaml")); err != nil {
		return c, err
	}
	expect, err := files.ReadFile(path.Join(root, name, "expect.yaml"))
	if err != nil {
		return c, err
	}
	if err := yaml.UnmarshalStrict(expect, &c.Expect); err != nil {
		return c, err
	}
	if c.Verdict != Accept && c.Verdict != Reject {
		return c, fmt.Errorf("verdict %q is neither accept nor reject", c.Verdict)
	}
	return c, nil
}
