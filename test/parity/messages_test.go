// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// A user reads the same sentence whoever refuses. Only the fix may differ: Go
// tries several and takes the first that adds no other error, CEL knows one.
func TestBothSayTheSame(t *testing.T) {
	s := loadSchema(t)
	seed := fromEnv(t, "PARITY_SEED", 1)
	var same, otherFix, addsError int
	for i := range fromEnv(t, "PARITY_SPECS", specs) {
		object := completed(t, s, newGenerator(uint64(seed+i)).object())
		findings := goErrors(t, object)
		for _, err := range celErrors(s, object) {
			f, ok := sameSentence(findings, err.Detail)
			switch {
			case !ok:
				t.Fatalf("seed %d: CEL says\n%s\nGo says\n%s", seed+i, err.Detail, messages(findings, ruleID(err.Detail)))
			case f.Message() == err.Detail:
				same++
			default:
				otherFix++
				if tryFix(t, object, f, err.Detail) {
					addsError++
				}
			}
		}
	}
	t.Logf("%d texts equal, %d with another fix, of which %d add another error", same, otherFix, addsError)
	if addsError*10 > same+otherFix {
		t.Errorf("too many fixes that are not enough")
	}
}

// sameSentence finds the finding with the same problem and consequence.
func sameSentence(findings []timeoutchain.Finding, text string) (timeoutchain.Finding, bool) {
	for _, f := range findings {
		consequence := f.Consequence
		if f.Rule == "template-grace" {
			// On the template CEL does not see the grace of timeouts.
			consequence, _, _ = strings.Cut(consequence, ", where it is")
		}
		if strings.HasPrefix(text, f.Rule+": "+f.Problem+": "+consequence+"; ") {
			return f, true
		}
	}
	return timeoutchain.Finding{}, false
}

func messages(findings []timeoutchain.Finding, id string) string {
	var texts []string
	for _, f := range findings {
		if f.Rule == id {
			texts = append(texts, f.Message())
		}
	}
	return strings.Join(texts, "\n")
}

var assignment = regexp.MustCompile(`(?:set|and) ([A-Za-z.]+)(?: of ([a-z]+))? to (\d+)`)

// tryFix does what a text of CEL says and fails the test where the finding is
// still there. It says whether another error came up.
func tryFix(t *testing.T, object map[string]any, f timeoutchain.Finding, text string) (addsError bool) {
	t.Helper()
	_, fix, _ := strings.Cut(text, f.Consequence+"; ")
	before := goIDs(goErrors(t, object))
	fixed := runtime.DeepCopyJSON(object)
	qw := typed(t, object)
	steps := assignment.FindAllStringSubmatch(fix, -1)
	for _, step := range steps {
		setField(t, fixed, chainsource.PathOfChange(qw, timeoutchain.Assignment{Link: timeoutchain.Link(step[1]), Subject: step[2]}), step[3])
	}
	if len(steps) == 0 {
		return false // advice without numbers
	}
	for _, g := range goErrors(t, fixed) {
		if g.Rule == f.Rule && g.Link == f.Link && g.Subject == f.Subject {
			t.Errorf("%q does not help:\n%s\n%s", fix, g.Message(), yamlOf(object["spec"]))
		}
		addsError = addsError || !slices.Contains(before, g.Rule)
	}
	return addsError
}

var pathStep = regexp.MustCompile(`[^.\[\]]+`)

func setField(t *testing.T, object map[string]any, field fmt.Stringer, number string) {
	t.Helper()
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	path := pathStep.FindAllString(field.String(), -1)
	var at any = object
	for i, step := range path {
		switch node := at.(type) {
		case map[string]any:
			if i == len(path)-1 {
				node[step] = n
				return
			}
			if node[step] == nil {
				node[step] = map[string]any{}
			}
			at = node[step]
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil {
				t.Fatal(err)
			}
			at = node[index]
		default:
			t.Fatalf("no %v in the object", path[:i])
		}
	}
}
