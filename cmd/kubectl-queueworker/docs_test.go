// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const manual = "../../docs/cli.md"

var (
	fileBlock    = regexp.MustCompile("(?ms)^<!-- file: (\\S+) -->\n```yaml\n(.*?)^```$")
	consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")
)

// TestManual runs the consoles of the manual with the files that it shows. With
// -update it writes their outputs anew.
func TestManual(t *testing.T) {
	data, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	text, dir := string(data), t.TempDir()
	for _, m := range fileBlock.FindAllStringSubmatch(text, -1) {
		if err := os.WriteFile(filepath.Join(dir, m[1]), []byte(m[2]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	consoles := 0
	renewed := consoleBlock.ReplaceAllStringFunc(text, func(block string) string {
		consoles++
		shown := consoleBlock.FindStringSubmatch(block)[1]
		real := replay(t, dir, commands(shown))
		if shown != real && !*update {
			t.Errorf("%s shows\n%s\nbut the program prints\n%s\n(run the test with -update and read the difference)", manual, shown, real)
		}
		return "```console\n" + real + "```"
	})
	if consoles < 5 {
		t.Errorf("only %d consoles found", consoles)
	}
	if *update {
		if err := os.WriteFile(manual, []byte(renewed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func commands(console string) []string {
	var lines []string
	for _, line := range strings.Split(console, "\n") {
		if command, found := strings.CutPrefix(line, "$ "); found {
			lines = append(lines, command)
		}
	}
	return lines
}

// replay types the commands into one shell and returns what a terminal would
// show, in which kubectl finds this plugin.
func replay(t *testing.T, dir string, lines []string) string {
	t.Helper()
	var script strings.Builder
	script.WriteString("kubectl() { shift; \"$PLUGIN\" \"$@\"; }\ncode=0\n")
	for _, line := range lines {
		script.WriteString("echo '$ " + strings.ReplaceAll(line, "'", `'\''`) + "'\n(exit $code)\n" + line + "\ncode=$?\n")
	}
	shell := exec.Command("sh", "-c", script.String())
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PLUGIN="+binary)
	out, err := shell.CombinedOutput()
	if err != nil && shell.ProcessState == nil {
		t.Fatal(err)
	}
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	return string(out)
}
