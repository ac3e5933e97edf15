// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/queueworker/operator/hack/internal/filelock"
)

// versions must fit the module paths.
var versions = map[string]string{kubernetesModule: "v1.37.2", "go.etcd.io/etcd/server/v3": "v3.7.3", "sigs.k8s.io/kwok": "v0.8.0"}

// checkout makes a repository whose programs are tiny stand-ins under the real module names, so that real builds take no time.
func checkout(t *testing.T) Finder {
	t.Helper()
	root := t.TempDir()
	for _, p := range programs {
		folder := filepath.Join(modulesFolder(root), p.folder)
		write(t, filepath.Join(folder, "go.sum"), "")
		write(t, filepath.Join(folder, "go.mod"), fmt.Sprintf(
			"module pins\n\ngo 1.26.0\n\nrequire %s %s\n\nreplace %s => ./source\n", p.module, versions[p.module], p.module))
		write(t, filepath.Join(folder, "source", "go.mod"), "module "+p.module+"\n\ngo 1.26.0\n")
		write(t, filepath.Join(source(root, p), "main.go"), "package main\n\nfunc main() { println(\""+p.name+"\") }\n")
	}
	return Finder{Root: root, Cache: filepath.Join(root, "cache"), Log: &syncBuffer{}}
}

// source is the folder of a program's package.
func source(root string, p program) string {
	return filepath.Join(modulesFolder(root), p.folder, "source", strings.TrimPrefix(p.pkg, p.module))
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// syncBuffer is a log that several runs may write.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func log(f Finder) string { return f.Log.(*syncBuffer).String() }

func ensure(t *testing.T, f Finder, names ...string) map[string]string {
	t.Helper()
	paths, err := f.Ensure(t.Context(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestBuildsOnlyWhatIsAskedForAndOnce(t *testing.T) {
	f := checkout(t)
	paths := ensure(t, f, Etcd, Kubectl)
	for name, path := range paths {
		out, err := exec.Command(path).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != name {
			t.Errorf("%s prints %q, %v", path, out, err)
		}
	}
	if built := entries(filepath.Dir(paths[Etcd])); len(built) != 2 {
		t.Errorf("wanted two programs and nothing else, got %v", built)
	}
	for _, want := range []string{"about 8 minutes", "[1/2] etcd", "[2/2] kubectl", "v1.37.2 ... built in"} {
		if !strings.Contains(log(f), want) {
			t.Errorf("the log lacks %q:\n%s", want, log(f))
		}
	}
	before := log(f)
	ensure(t, f, Etcd, Kubectl)
	if after := log(f); after != before {
		t.Errorf("built again: %s", strings.TrimPrefix(after, before))
	}
}

func TestTwoRunsDoNotBuildTwice(t *testing.T) {
	f := checkout(t)
	var runs sync.WaitGroup
	for range 4 {
		runs.Go(func() {
			if _, err := f.Ensure(context.Background(), All()...); err != nil {
				t.Error(err)
			}
		})
	}
	runs.Wait()
	if n := strings.Count(log(f), "built in"); n != len(All()) {
		t.Errorf("%d builds of %d programs:\n%s", n, len(All()), log(f))
	}
}

func TestWaitingRunSaysSo(t *testing.T) {
	f := checkout(t)
	if err := os.MkdirAll(filepath.Join(f.Cache, "controlplane"), 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := filelock.Acquire(t.Context(), filepath.Join(f.Cache, "controlplane", "lock"), func() {})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for !strings.Contains(log(f), "Waiting: another run is building") {
			time.Sleep(time.Millisecond)
		}
		unlock()
	}()
	ensure(t, f, Etcd)
}

func TestChangedPinMeetsNoOldProgram(t *testing.T) {
	f := checkout(t)
	first := ensure(t, f, Kwok)[Kwok]
	mod := filepath.Join(modulesFolder(f.Root), "kwok", "go.mod")
	content, err := os.ReadFile(mod)
	if err != nil {
		t.Fatal(err)
	}
	write(t, mod, string(content)+"\n// changed\n")
	if second := ensure(t, f, Kwok)[Kwok]; second == first {
		t.Errorf("still %s", second)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	f := checkout(t)
	write(t, filepath.Join(source(f.Root, programs[0]), "main.go"), "package main\n\nfunc main() { undefined() }\n")
	_, err := f.Ensure(t.Context(), Etcd)
	if err == nil || !strings.Contains(err.Error(), "building etcd") || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("wanted the program and the compiler's words, got %v", err)
	}
	bin, err := f.binFolder()
	if err != nil {
		t.Fatal(err)
	}
	if left := entries(bin); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestInterruptedBuildLeavesNothing(t *testing.T) {
	f := checkout(t)
	slowGo := t.TempDir()
	write(t, filepath.Join(slowGo, "go"), `#!/bin/sh
if [ "$1" = env ]; then echo /; exit; fi
while [ "$1" != -o ]; do shift; done
echo half >"$2"
exec sleep 600
`)
	if err := os.Chmod(filepath.Join(slowGo, "go"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", slowGo+":"+os.Getenv("PATH"))
	bin, err := f.binFolder()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(entries(bin)) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	start := time.Now()
	_, err = f.Ensure(ctx, Etcd)
	if err == nil || err.Error() != "building etcd was interrupted" || time.Since(start) > time.Minute {
		t.Errorf("got %v after %s", err, time.Since(start))
	}
	if left := entries(bin); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func entries(folder string) []string {
	paths, _ := filepath.Glob(filepath.Join(folder, "*"))
	return paths
}

func TestAssets(t *testing.T) {
	f := checkout(t)
	f.Assets = t.TempDir()
	for _, name := range []string{Etcd, APIServer} {
		if err := os.WriteFile(filepath.Join(f.Assets, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	paths := ensure(t, f, Etcd, APIServer)
	if want := filepath.Join(f.Assets, Etcd); paths[Etcd] != want || log(f) != "" {
		t.Errorf("wanted %s silently, got %s and %q", want, paths[Etcd], log(f))
	}
	paths = ensure(t, f, Etcd, APIServer, Kwok)
	if !strings.Contains(log(f), "KUBEBUILDER_ASSETS="+f.Assets+" has no kwok") {
		t.Errorf("the log does not name what is missing: %s", log(f))
	}
	if strings.HasPrefix(paths[Etcd], f.Assets) {
		t.Error("programs of two origins are mixed")
	}
}

func TestNoGo(t *testing.T) {
	f := checkout(t)
	t.Setenv("PATH", t.TempDir())
	_, err := f.Ensure(t.Context(), Etcd)
	if err == nil || !strings.HasPrefix(err.Error(), "go is not in PATH: install") {
		t.Errorf("got %v", err)
	}
}

func TestNoSpace(t *testing.T) {
	err := explain(fmt.Errorf("go build: write /tmp/x: no space left on device"), "/cache")
	if want := "no space left while building into /cache: free some"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestLinkerFlags(t *testing.T) {
	const want = "-s -w -X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
	if got := programs[1].linkerFlags("v1.37.2"); got != want {
		t.Errorf("got %s", got)
	}
}

func TestPinsOfTheRepository(t *testing.T) {
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	pins, err := readPins(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range All() {
		if !strings.HasPrefix(pins.versions[name], "v") {
			t.Errorf("%s has version %q", name, pins.versions[name])
		}
	}
}

func TestOutsideTheRepository(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := FromEnv(&syncBuffer{}); err == nil || !strings.Contains(err.Error(), "not inside a checkout") {
		t.Errorf("got %v", err)
	}
}

func TestCacheFolder(t *testing.T) {
	t.Setenv("QW_CACHE_DIR", "")
	f, err := FromEnv(&syncBuffer{})
	if err != nil || f.Cache != filepath.Join(f.Root, ".cache") {
		t.Errorf("got %s, %v", f.Cache, err)
	}
	t.Setenv("QW_CACHE_DIR", "elsewhere")
	f, err = FromEnv(&syncBuffer{})
	if err != nil || !filepath.IsAbs(f.Cache) || filepath.Base(f.Cache) != "elsewhere" {
		t.Errorf("got %s, %v", f.Cache, err)
	}
}
