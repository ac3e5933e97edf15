// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// Rules that no registry holds: they name faults in JSON output.
const (
	ruleSchema     = "schema"     // the object does not fit the schema
	ruleUnreadable = "unreadable" // the file does not hold what it should
)

type jsonReport struct {
	Files []jsonObject `json:"files"`
}

type jsonObject struct {
	File     string        `json:"file"`
	Object   string        `json:"object"`
	Verdict  Verdict       `json:"verdict"`
	Findings []jsonFinding `json:"findings"`
}

type jsonFinding struct {
	Rule     string                `json:"rule"`
	Severity timeoutchain.Severity `json:"severity"`
	Field    string                `json:"field"`
	Message  string                `json:"message"`
	Fix      string                `json:"fix"`
	Set      []Change              `json:"set,omitempty"`
}

// JSON prints one entry per QueueWorker, and one without a name per file that
// could not be read in full.
func (r Report) JSON(w io.Writer) error {
	out := jsonReport{Files: []jsonObject{}}
	for _, in := range r.Inputs {
		if len(in.Faults) > 0 {
			out.Files = append(out.Files, jsonObject{File: in.Name, Verdict: Reject, Findings: faultFindings(in.Faults, ruleUnreadable)})
		}
		for i := range in.Objects {
			o := &in.Objects[i]
			findings := faultFindings(o.Faults, ruleSchema)
			for _, f := range o.Findings {
				findings = append(findings, jsonFinding{f.Rule, f.Severity, f.Field, f.Message, f.Fix, f.Set})
			}
			out.Files = append(out.Files, jsonObject{File: in.Name, Object: o.Namespace + "/" + o.Name, Verdict: o.Verdict(), Findings: findings})
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

func faultFindings(faults []Fault, rule string) []jsonFinding {
	findings := make([]jsonFinding, len(faults))
	for i, f := range faults {
		message := f.Message
		if f.Line > 0 {
			message = fmt.Sprintf("line %d: %s", f.Line, f.Message)
		}
		findings[i] = jsonFinding{Rule: rule, Severity: timeoutchain.Error, Field: f.Field, Message: message}
	}
	return findings
}
