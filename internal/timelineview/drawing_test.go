// SPDX-License-Identifier: Apache-2.0

package timelineview

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/terminal"
)

var update = flag.Bool("update", false, "write the golden files anew")

// worker is 20 < 30 < 90, with a derived grace.
func worker(change func(*v1alpha1.QueueWorkerSpec)) *v1alpha1.QueueWorker {
	qw := &v1alpha1.QueueWorker{
		ObjectMeta: metav1.ObjectMeta{Name: "payments", Namespace: "shop"},
		Spec: v1alpha1.QueueWorkerSpec{
			Queue:    v1alpha1.Queue{Connection: "redis"},
			Timeouts: v1alpha1.Timeouts{HTTPSeconds: ptr[int32](20), JobSeconds: 30, RetryAfterSeconds: ptr[int32](90)},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "worker"}}}},
		},
	}
	change(&qw.Spec)
	return qw
}

func ptr[T any](v T) *T { return &v }

// chains are drawn in every form.
var chains = []struct {
	name   string
	change func(*v1alpha1.QueueWorkerSpec)
}{
	{"holds", func(*v1alpha1.QueueWorkerSpec) {}},
	{"broken", func(s *v1alpha1.QueueWorkerSpec) {
		s.Timeouts.RetryAfterSeconds, s.Timeouts.TerminationGracePeriodSeconds = ptr[int32](25), ptr[int64](28)
	}},
	{"drain", func(s *v1alpha1.QueueWorkerSpec) {
		s.Queue.Names, s.Queue.BlockForSeconds = []string{"payments", "default"}, ptr[int32](5)
		s.Drain.BeforeStop = &v1alpha1.BeforeStop{Command: []string{"true"}, TimeoutSeconds: 5}
		s.Timeouts.HTTPSeconds, s.Timeouts.HTTPAttempts = ptr[int32](10), ptr[int32](2)
	}},
	{"logarithmic", func(s *v1alpha1.QueueWorkerSpec) {
		s.Timeouts.JobSeconds, s.Timeouts.RetryAfterSeconds = 7200, ptr[int32](90)
	}},
	{"waived", func(s *v1alpha1.QueueWorkerSpec) {
		s.Timeouts.JobSeconds, s.Timeouts.RetryAfterSeconds = 900, ptr[int32](86400)
		s.Timeouts.TerminationGracePeriodSeconds, s.Drain.GraceOutlasts = ptr[int64](960), v1alpha1.GraceOutlastsJob
	}},
	{"unset", func(s *v1alpha1.QueueWorkerSpec) {
		s.Timeouts.HTTPSeconds, s.Timeouts.RetryAfterSeconds = nil, nil
	}},
	{"endless", func(s *v1alpha1.QueueWorkerSpec) {
		s.Runtime, s.Timeouts = v1alpha1.RuntimeGeneric, v1alpha1.Timeouts{}
		s.Template.Spec.Containers[0].Command = []string{"worker"}
	}},
	{"elsewhere", func(s *v1alpha1.QueueWorkerSpec) {
		s.Template.Spec.Containers = nil
		s.Retries.Tries = ptr[int32](0)
	}},
}

func TestText(t *testing.T) {
	for _, c := range chains {
		t.Run(c.name, func(t *testing.T) {
			compare(t, c.name+".txt", text(t, New(worker(c.change), chainsource.Options{}), terminal.Style{}))
		})
	}
}

func text(t *testing.T, d Drawing, style terminal.Style) string {
	t.Helper()
	var out strings.Builder
	if err := d.Text(&out, style); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSVG(t *testing.T) {
	for _, c := range chains {
		t.Run(c.name, func(t *testing.T) {
			got := svg(t, New(worker(c.change), chainsource.Options{}))
			compare(t, c.name+".svg", got)
			wellFormed(t, got)
		})
	}
}

func svg(t *testing.T, d Drawing) string {
	t.Helper()
	var out strings.Builder
	if err := d.SVG(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wellFormed reads the picture as XML and checks what a screen reader and a
// README need.
func wellFormed(t *testing.T, picture string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(picture))
	found := map[string]string{}
	element := ""
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
		case xml.CharData:
			if strings.TrimSpace(string(token)) != "" {
				found[element] += string(token)
			}
		}
	}
	for _, element := range []string{"title", "desc", "style"} {
		if found[element] == "" {
			t.Errorf("the picture has no %s", element)
		}
	}
	if !strings.Contains(found["style"], "prefers-color-scheme: dark") {
		t.Error("the picture has no dark colours")
	}
	if strings.Contains(picture, "%!") {
		t.Error("a format went wrong")
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the drawing differs from %s (run the test with -update and look at it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestTextFitsTheWindow(t *testing.T) {
	for _, c := range chains {
		for _, width := range []int{0, 52, 60, 80, 100, 132, 400} {
			for i, line := range strings.Split(text(t, New(worker(c.change), chainsource.Options{}), terminal.Style{Width: width}), "\n") {
				limit := min(width, mostWidth)
				if width == 0 {
					limit = defaultWidth
				}
				if n := utf8.RuneCountInString(line); n > limit && !strings.ContainsAny(line, "✓✗~,") { // names, gaps
					t.Errorf("%s in %d columns: line %d has %d: %s", c.name, width, i+1, n, line)
				}
			}
		}
	}
}

// With colour nothing but colour is added.
func TestColour(t *testing.T) {
	codes := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, c := range chains {
		d := New(worker(c.change), chainsource.Options{})
		plain, painted := text(t, d, terminal.Style{}), text(t, d, terminal.Style{Color: true})
		if !codes.MatchString(painted) || strings.Contains(plain, "\x1b") {
			t.Errorf("%s: colour is where it must not be, or is not where it must be", c.name)
		}
		if trimmed(codes.ReplaceAllString(painted, "")) != trimmed(plain) {
			t.Errorf("%s: with colour the text is another one:\n%s", c.name, painted)
		}
	}
}

func trimmed(text string) string {
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, "")
}

// No text of a picture may run over its edge, even in a wide font.
func TestSVGTextStaysInside(t *testing.T) {
	const widest = 7.1 // pixels per character of 13 px DejaVu Sans, on average
	place := regexp.MustCompile(`<text x="(\d+)" y="(\d+)"([^>]*)>([^<]*)</text>`)
	height := regexp.MustCompile(`height="(\d+)"`)
	for _, c := range chains {
		picture := svg(t, New(worker(c.change), chainsource.Options{}))
		bottom, _ := strconv.Atoi(height.FindStringSubmatch(picture)[1])
		for _, m := range place.FindAllStringSubmatch(picture, -1) {
			x, _ := strconv.Atoi(m[1])
			y, _ := strconv.Atoi(m[2])
			width := widest * float64(utf8.RuneCountInString(html.UnescapeString(m[4])))
			if !strings.Contains(m[3], "anchor") && float64(x)+width > svgWidth-12 {
				t.Errorf("%s: %q at %d runs over the edge", c.name, m[4], x)
			}
			if y > bottom-4 {
				t.Errorf("%s: %q at %d of %d is cut", c.name, m[4], y, bottom)
			}
		}
	}
}

// The colours keep their contrast on the picture's own background.
func TestContrast(t *testing.T) {
	light, dark, found := strings.Cut(svgStyle, "@media")
	if !found {
		t.Fatal("the style has no dark part")
	}
	fill := regexp.MustCompile(`\.?([\w, .]+) \{ [^}]*?fill: (#[0-9a-f]{6})`)
	for mode, css := range map[string]string{"light": light, "dark": dark} {
		background := regexp.MustCompile(`\.card \{ fill: (#[0-9a-f]{6})`).FindStringSubmatch(css)[1]
		checked := 0
		for _, m := range fill.FindAllStringSubmatch(css, -1) {
			name := strings.TrimLeft(m[1], " .")
			if name == "card" {
				continue
			}
			least := 4.5
			if slices.Contains([]string{"call", "job", "reservation", "grace", "hook", "pop"}, name) {
				least = 3 // graphics
			}
			if got := contrast(m[2], background); got < least {
				t.Errorf("%s: %s %s on %s has a contrast of %.1f, want %.1f", mode, name, m[2], background, got, least)
			}
			checked++
		}
		if checked < 9 {
			t.Errorf("%s: only %d colours found", mode, checked)
		}
	}
}

// contrast is the ratio of the Web Content Accessibility Guidelines.
func contrast(a, b string) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

func luminance(color string) float64 {
	var total float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, _ := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
		c := float64(n) / 255
		if c <= 0.03928 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		total += weight * c
	}
	return total
}

func TestNamesAreEscaped(t *testing.T) {
	qw := worker(func(*v1alpha1.QueueWorkerSpec) {})
	qw.Name = "<b>&\x1b[31m\n"
	d := New(qw, chainsource.Options{})
	wellFormed(t, svg(t, d))
	if out := svg(t, d); strings.Contains(out, "<b>") {
		t.Error("a name became markup")
	}
	if out := text(t, d, terminal.Style{}); strings.Contains(out, "\x1b") {
		t.Error("a name steers the terminal")
	}
}

func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 s", 59: "59 s", 60: "1 min", 90: "1 min 30 s", 3600: "1 h", 7210: "2 h 10 s", 5430: "1 h 30 min", 86400: "1 d", 31536000: "365 d",
	} {
		if got := unitsText(n); got != want {
			t.Errorf("unitsText(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestScale(t *testing.T) {
	for _, length := range []int64{1, 7, 59, 100, 3600, 90_000, 31_536_000 * 4} {
		for _, logarithmic := range []bool{false, true} {
			s := scale{length: length, logarithmic: logarithmic}
			if s.at(-1) != 0 || s.at(0) != 0 || s.at(length) != 1 || s.at(length+1) != 1 {
				t.Errorf("%+v does not reach from 0 to 1", s)
			}
			ticks := s.ticks(5)
			if len(ticks) == 0 || (!logarithmic && len(ticks) > 6) || ticks[0] != 0 || !slices.IsSorted(ticks) || ticks[len(ticks)-1] > length {
				t.Errorf("%+v has the ticks %v", s, ticks)
			}
			for n, last := int64(0), -1.0; n <= 10; n++ {
				at := s.at(length * n / 10)
				if at < last {
					t.Errorf("%+v goes back at %d", s, length*n/10)
				}
				last = at
			}
		}
	}
}

func TestWriterThatFails(t *testing.T) {
	d := New(worker(func(*v1alpha1.QueueWorkerSpec) {}), chainsource.Options{})
	if d.Text(full{}, terminal.Style{}) == nil || d.SVG(full{}) == nil {
		t.Error("a full disk is not reported")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, fmt.Errorf("disk full") }
