// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
	"github.com/queueworker/operator/internal/schema"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Every so many changes are tried; PARITY_MUTANT_STEP=1 tries them all.
const mutantStep = 23

// TestEveryChangeOfARuleIsNoticed turns each comparison and each condition of
// the CRD's rules around, moves each edge and each number by one, and expects
// some object of the edges, the cases or the random ones to be judged otherwise.
// The comparison with the old object is another test's matter.
func TestEveryChangeOfARuleIsNoticed(t *testing.T) {
	corpus := newCorpus(t)
	step := fromEnv(t, "PARITY_MUTANT_STEP", mutantStep)
	var tried, invalid, survived int
	for i, m := range crdMutants(t) {
		if i%step != 0 {
			continue
		}
		s, err := schema.Parse(m.manifest)
		if err != nil {
			t.Fatal(err)
		}
		switch noticed, compiles := corpus.notices(s, m.rule); {
		case !compiles:
			invalid++
		case noticed:
			tried++
		default:
			tried++
			reason := equivalentMutants[m.String()]
			if reason == "" {
				survived++
				t.Errorf("nobody noticed %s", m)
			}
		}
	}
	t.Logf("%d changes tried, %d unnoticed and unexplained; %d more do not compile", tried, survived, invalid)
}

// equivalentMutants are changes that no object can show, and why.
var equivalentMutants = map[string]string{
	"retry-after-missing: 0 -> 1 at 81 of `etryAfterSeconds.orValue(0) > 0 : self.runtime == '` in spec":              guarded,
	"http-not-below-job: 0 -> 1 at 160 of `uts.?httpSeconds.orValue(0) * attempts + (attempts ` in spec":              guarded,
	"retry-after-not-below-grace: 0 -> 1 at 243 of `acePeriodSeconds.orValue(0))) || oldSelf.optMap(old` in spec":     guarded,
	"drain-exceeds-grace: 0 -> 1 at 321 of `acePeriodSeconds.orValue(0))) || oldSelf.optMap(old` in spec":             guarded,
	"sleep-not-below-job: 0 -> 1 at 129 of `ntime == 'Laravel' ? 3 : 0) < self.timeouts.jobSeco` in spec":             "only Laravel is judged",
	"backoff-exceeds-retention: == -> != at 97 of `ies.orValue(self.runtime == 'Laravel' ? 3 : 0)].all(` in spec":     aboveTwo,
	"backoff-exceeds-retention: 3 -> 4 at 112 of `f.runtime == 'Laravel' ? 3 : 0)].all(tries, !has(se` in spec":       aboveTwo,
	"backoff-exceeds-retention: 0 -> 1 at 116 of `ntime == 'Laravel' ? 3 : 0)].all(tries, !has(self.q` in spec":       aboveTwo,
	"backoff-exceeds-retention: 10 -> 11 at 277 of `] : tries == 2 ? [10] : [10, 60])).max() < self.queu` in spec":    "60 is the longest either way",
	"backoff-exceeds-retention: 0 -> 1 at 339 of `RetentionSeconds.orValue(0)))) || oldSelf.optMap(ol` in spec":       guarded,
	"key-ttl-below-retry-window: 0 -> 1 at 447 of `derKeyTTLSeconds.orValue(0) > (has(self.retries.ret` in spec":      guarded,
	"key-ttl-below-retry-window: > -> >= at 672 of `ackoff) > 0 && tries - 1 > size(backoff) ? (tries -` in spec":     "as many steps as gaps: nothing is added",
	"driver-limit: 0 -> 1 at 133 of `etryAfterSeconds.orValue(0) <= 43200) || oldSelf.op` in spec":                    "both are far below the limit",
	"env-owned: 0 -> 1 at 525 of `etryAfterSeconds.orValue(0)])].all(retryValue, !has` in spec":                       guarded,
	"in-flight-too-short: 0 -> 1 at 37 of `uts.?httpSeconds.orValue(0)].all(call, !(self.fence` in spec":              "either leaves the provider 1 s",
	"provider-timeout-not-below-http: 0 -> 1 at 37 of `uts.?httpSeconds.orValue(0)].all(call, !has(self.ti` in spec":  guarded,
	"provider-timeout-not-below-http: 3 -> 4 at 227 of `utSeconds.orValue(call > 3 ? call - 3 : 1) + 3 > ca` in spec": "4 - 3 is 1 as well",
	"provider-timeout-not-below-http: 3 -> 4 at 238 of `rValue(call > 3 ? call - 3 : 1) + 3 > call))) || ol` in spec": "a timeout that is derived leaves room either way",
	"provider-timeout-not-below-http: 1 -> 2 at 242 of `ue(call > 3 ? call - 3 : 1) + 3 > call))) || oldSel` in spec": "neither 1 nor 2 fits into a call of at most 3",
	"in-flight-too-short: 3 -> 4 at 229 of `utSeconds.orValue(call > 3 ? call - 3 : 1) + 30))) ` in spec":             "4 - 3 is 1 as well",
	"retention-below-retry-window: > -> >= at 656 of `ackoff) > 0 && tries - 1 > size(backoff) ? (tries -` in spec":   "as many steps as gaps: nothing is added",
	"connect-not-below-http: 0 -> 1 at 59 of `tpConnectSeconds.orValue(0) <= self.?httpSeconds.or` in spec.timeouts":  "no declared call is shorter than 1",
	"connect-not-below-http: 0 -> 1 at 91 of `elf.?httpSeconds.orValue(0)` in spec.timeouts":                          guarded,
}

const (
	guarded  = "the fallback is never read: the same condition asks for has() first"
	aboveTwo = "the default backoff differs for 1 and 2 tries of Laravel only, which are always declared"
)

// corpus is what changes are tried on, each object with the rules that Go says
// it breaks.
type corpus struct {
	objects []map[string]any
	broken  [][]string
}

const corpusSpecs = 400

func newCorpus(t *testing.T) *corpus {
	t.Helper()
	s, c := loadSchema(t), &corpus{}
	add := func(object map[string]any) {
		object = completed(t, s, object)
		c.objects = append(c.objects, object)
		c.broken = append(c.broken, goIDs(goErrors(t, object)))
	}
	for _, edge := range edges {
		add(patched(t, edge.keeps))
		add(patched(t, edge.breaks))
	}
	// No edge of one rule alone: the shortest call leaves the provider no time either.
	add(patched(t, "timeouts: {httpSeconds: 3}, "+proxy("providers: [{name: b, url: 'http://b', maxInFlightSeconds: 30}]")))
	for i := range corpusSpecs {
		add(newGenerator(uint64(1 + i)).object())
	}
	return c
}

// notices says whether any object shows that the rule is another one now.
func (c *corpus) notices(s *schema.Schema, rule string) (noticed, compiles bool) {
	for i, object := range c.objects {
		errs := celErrors(s, object)
		for _, err := range errs {
			if strings.Contains(err.Detail, "rule compile error") || strings.Contains(err.Detail, "compilation failed") {
				return false, false
			}
		}
		if len(errs) > 0 != slices.Contains(c.broken[i], rule) {
			return true, true
		}
	}
	return false, true
}

// crdMutant is a CRD that holds one rule only, changed in one place.
type crdMutant struct {
	rule, place, change string
	manifest            []byte
}

// String names a mutant by its rule and its change.
func (m crdMutant) String() string { return fmt.Sprintf("%s: %s in %s", m.rule, m.change, m.place) }

func crdMutants(t *testing.T) []crdMutant {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.QueueWorkers, &definition); err != nil {
		t.Fatal(err)
	}
	root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	var mutants []crdMutant
	holders := ruleHolders(root)
	for _, h := range holders {
		for i, v := range *h.rules {
			id := idOf(v)
			if _, known := timeoutchain.RuleByID(id); !known {
				continue
			}
			for _, changed := range changesOf(v.Rule) {
				restore := keepOnly(holders, id, h.path, i, changed.text)
				manifest, err := yaml.Marshal(&definition)
				restore()
				if err != nil {
					t.Fatal(err)
				}
				mutants = append(mutants, crdMutant{
					rule: id, place: h.path, change: changed.what, manifest: manifest,
				})
			}
		}
	}
	return mutants
}

var saidID = regexp.MustCompile(`'([a-z][a-z-]+): `)

// idOf is the rule that a validation's message names.
func idOf(v apiextensionsv1.ValidationRule) string {
	if match := saidID.FindStringSubmatch(v.MessageExpression); match != nil {
		return match[1]
	}
	return ""
}

// holder is a part of the schema that carries rules.
type holder struct {
	path  string
	rules *apiextensionsv1.ValidationRules
	put   func(apiextensionsv1.ValidationRules)
}

func ruleHolders(root *apiextensionsv1.JSONSchemaProps) []holder {
	spec := root.Properties["spec"]
	holders := []holder{{"spec", &spec.XValidations, func(r apiextensionsv1.ValidationRules) {
		changed := root.Properties["spec"]
		changed.XValidations = r
		root.Properties["spec"] = changed
	}}}
	names := make([]string, 0, len(spec.Properties))
	for name := range spec.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		part := spec.Properties[name]
		if len(part.XValidations) == 0 {
			continue
		}
		holders = append(holders, holder{"spec." + name, &part.XValidations, func(r apiextensionsv1.ValidationRules) {
			changed := root.Properties["spec"].Properties[name]
			changed.XValidations = r
			root.Properties["spec"].Properties[name] = changed
		}})
	}
	return holders
}

// keepOnly leaves the rules of one id in the CRD, one of them changed. Other
// rules cost time and say nothing about this one.
func keepOnly(holders []holder, id, path string, index int, text string) (restore func()) {
	for _, h := range holders {
		var kept apiextensionsv1.ValidationRules
		for i, v := range *h.rules {
			if idOf(v) != id {
				continue
			}
			if h.path == path && i == index {
				v.Rule = text
			}
			kept = append(kept, v)
		}
		h.put(kept)
	}
	return func() {
		for _, h := range holders {
			h.put(*h.rules)
		}
	}
}

type textChange struct{ what, text string }

var (
	ratchet = regexp.MustCompile(`\|\| oldSelf\.optMap\([^()]*\)\.orValue\(false\)$`)
	token   = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|<=|>=|==|!=|&&|\|\||<|>|\b\d+\b`)
)

var otherTokens = map[string][]string{
	"<": {"<=", ">="}, "<=": {"<", ">"}, ">": {">=", "<="}, ">=": {">", "<"},
	"==": {"!="}, "!=": {"=="}, "&&": {"||"}, "||": {"&&"},
}

func changesOf(rule string) []textChange {
	own := ratchet.ReplaceAllString(rule, "")
	var changes []textChange
	for _, at := range token.FindAllStringIndex(own, -1) {
		from, to := at[0], at[1]
		old := own[from:to]
		others := otherTokens[old]
		if n, err := strconv.Atoi(old); err == nil {
			others = []string{strconv.Itoa(n + 1)}
		}
		for _, other := range others {
			changes = append(changes, textChange{
				what: fmt.Sprintf("%s -> %s at %d of `%s`", old, other, from, around(rule, from, to)),
				text: rule[:from] + other + rule[to:],
			})
		}
	}
	return changes
}

func around(rule string, from, to int) string {
	return rule[max(from-25, 0):min(to+25, len(rule))]
}
