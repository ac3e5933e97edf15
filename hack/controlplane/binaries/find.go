// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rootModule marks the folder that all default paths start from.
const rootModule = "module github.com/queueworker/operator\n"

// Finder looks for programs in Assets, then in the cache, then builds them into the cache.
type Finder struct {
	Root   string    // the repository
	Cache  string    // cache folder; its part for this package is <Cache>/controlplane
	Assets string    // KUBEBUILDER_ASSETS: used when it holds every program asked for; empty means none
	Log    io.Writer // progress and notices
}

// FromEnv returns a Finder for the repository around the working directory,
// with KUBEBUILDER_ASSETS and QW_CACHE_DIR (default: .cache in the repository) taken from the environment.
func FromEnv(log io.Writer) (Finder, error) {
	root, err := repositoryRoot()
	if err != nil {
		return Finder{}, err
	}
	cache := os.Getenv("QW_CACHE_DIR")
	if cache == "" {
		cache = filepath.Join(root, ".cache")
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return Finder{}, fmt.Errorf("QW_CACHE_DIR: %w", err)
	}
	return Finder{Root: root, Cache: cache, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Log: log}, nil
}

// Ensure returns the path of each program by name, after building what is nowhere to be found.
func (f Finder) Ensure(ctx context.Context, names ...string) (map[string]string, error) {
	if f.Assets != "" {
		missing := absent(f.Assets, names)
		if len(missing) == 0 {
			return pathsIn(f.Assets, names), nil
		}
		// All or nothing: programs of different Kubernetes versions must not be mixed.
		f.say("KUBEBUILDER_ASSETS=%s has no %s: using the project's own builds instead", f.Assets, strings.Join(missing, ", "))
	}
	bin, err := f.binFolder()
	if err != nil {
		return nil, err
	}
	if len(absent(bin, names)) > 0 {
		if err := f.build(ctx, bin, names); err != nil {
			return nil, err
		}
	}
	return pathsIn(bin, names), nil
}

// binFolder is named after the content of the pins, so that a changed pin never meets an old program.
func (f Finder) binFolder() (string, error) {
	pins, err := readPins(f.Root)
	if err != nil {
		return "", err
	}
	return filepath.Join(f.Cache, "controlplane", pins.key(), "bin"), nil
}

func (f Finder) say(format string, args ...any) {
	_, _ = fmt.Fprintf(f.Log, format+"\n", args...)
}

func absent(folder string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		info, err := os.Stat(filepath.Join(folder, name))
		return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
	})
}

func pathsIn(folder string, names []string) map[string]string {
	paths := make(map[string]string, len(names))
	for _, name := range names {
		paths[name] = filepath.Join(folder, name)
	}
	return paths
}

func repositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), rootModule) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of queueworker-operator: run this from the repository", start)
		}
	}
}
