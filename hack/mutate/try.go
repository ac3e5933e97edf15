// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// errSurvived says that the tests pass.
var errSurvived = errors.New("survived")

// lab tries mutants. The tree is never touched: what is changed is compiled
// through an overlay.
type lab struct {
	source *source
	folder string // removed at the end
	binary string // the tests of the package in which a mutant can be switched on
}

// newLab builds the tests once with a switch at each site, and shows that they
// pass while none is on.
func newLab(ctx context.Context, s *source) (*lab, error) {
	folder, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	l := &lab{source: s, folder: folder, binary: filepath.Join(folder, "switched.test")}
	changed := map[string]string{"switch_of_mutants.go": "package " + s.files[0].tree.Name.Name + "\n" + switches}
	for _, f := range s.files {
		changed[filepath.Base(f.name)] = f.switched()
	}
	if err = l.build(ctx, l.binary, changed); err == nil {
		err = l.run(ctx, l.binary, "")
	}
	if !errors.Is(err, errSurvived) {
		l.close()
		return nil, fmt.Errorf("the tests of %s fail without any mutant, so nothing can be concluded: %w", s.dir, err)
	}
	return l, nil
}

func (l *lab) close() { _ = os.RemoveAll(l.folder) }

// killed says whether the tests fail, or do not compile, with the mutant.
func (l *lab) killed(ctx context.Context, m mutant) bool {
	if m.site.switched {
		return !errors.Is(l.run(ctx, l.binary, fmt.Sprint(m.site.number, " ", m.new)), errSurvived)
	}
	folder, err := os.MkdirTemp(l.folder, "constant-")
	if err != nil {
		return false
	}
	binary := filepath.Join(folder, "constant.test")
	for _, f := range l.source.files {
		if f.name == m.site.file {
			text := f.text[:m.site.start] + m.new + f.text[m.site.end:]
			err = l.build(ctx, binary, map[string]string{filepath.Base(f.name): text})
		}
	}
	return err != nil || !errors.Is(l.run(ctx, binary, ""), errSurvived)
}

// build compiles the tests with other texts for some files of the package.
func (l *lab) build(ctx context.Context, binary string, texts map[string]string) error {
	replace := map[string]string{}
	folder, err := os.MkdirTemp(l.folder, "overlay-")
	if err != nil {
		return err
	}
	for name, text := range texts {
		original, err := filepath.Abs(filepath.Join(l.source.dir, name))
		if err != nil {
			return err
		}
		replace[original] = filepath.Join(folder, name)
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", file, "-o", binary, "./"+filepath.ToSlash(l.source.dir))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	return nil
}

// run runs built tests, with a mutant switched on if one is named, and returns
// errSurvived where they pass.
func (l *lab) run(ctx context.Context, binary, mutant string) error {
	command := exec.CommandContext(ctx, binary, "-test.failfast", "-test.timeout=60s", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	command.Dir, command.WaitDelay = l.source.dir, time.Second
	command.Env = append(os.Environ(), switchEnv+"="+mutant)
	output, err := command.CombinedOutput()
	if err == nil {
		return errSurvived
	}
	return fmt.Errorf("%w\n%s", err, output)
}
