// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gitops

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// gitRepository is a folder with a work tree, branch main.
type gitRepository string

// newRepository makes one that holds the operator's chart.
func newRepository(path string) (gitRepository, error) {
	g := gitRepository(path)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", err
	}
	if err := g.run("init", "--quiet", "--initial-branch=main"); err != nil {
		return "", err
	}
	const chart = "charts/queueworker-operator"
	if err := os.CopyFS(filepath.Join(path, chart), os.DirFS(filepath.Join(repository, chart))); err != nil {
		return "", err
	}
	return g, g.commit("The operator's chart")
}

func (g gitRepository) url() string { return "file://" + string(g) }

func (g gitRepository) run(words ...string) error {
	_, err := g.output(words...)
	return err
}

func (g gitRepository) output(words ...string) (string, error) {
	command := exec.Command("git", append([]string{"-c", "user.name=shop", "-c", "user.email=shop@example.com"}, words...)...)
	command.Dir = string(g)
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git %s: %w\n%s", strings.Join(words, " "), err, output)
	}
	return string(output), err
}

func (g gitRepository) commit(message string) error {
	if err := g.run("add", "--all"); err != nil {
		return err
	}
	return g.run("commit", "--quiet", "--message", message)
}

// push writes a file, or removes it where the text is empty, and commits.
func push(t *testing.T, path, text string) {
	t.Helper()
	file := filepath.Join(string(suite.git), path)
	err := os.Remove(file)
	if text != "" {
		if err = os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
			err = os.WriteFile(file, []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := suite.git.commit("Change " + path); err != nil {
		t.Fatal(err)
	}
}
