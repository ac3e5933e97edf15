// SPDX-License-Identifier: Apache-2.0

// Package entry brings our PHP into the worker: it carries the files, installs
// them, and turns the application's own command into one that runs them.
package entry

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/queueworker/operator/internal/agent/artisan"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/timeoutchain"
)

//go:embed php/*.php
var embedded embed.FS

// The environment by which the PHP files are told where they are.
const (
	dirEnv     = "QUEUEWORKER_DIR"     // where the worker writes its state
	artisanEnv = "QUEUEWORKER_ARTISAN" // the application's own artisan
	scanEnv    = "PHP_INI_SCAN_DIR"    // where PHP looks for more ini files
)

// Files are the PHP files.
func Files() fs.FS {
	files, err := fs.Sub(embedded, "php")
	if err != nil { // the path is a constant
		panic(err)
	}
	return files
}

// Install writes the PHP files to their place.
func Install(dir workdir.Dir, files fs.FS) error {
	if err := workdir.InstallPHP(dir.PHP(), files); err != nil {
		return err
	}
	if err := os.MkdirAll(iniDir(dir), 0o755); err != nil {
		return fmt.Errorf("make the entry's directory: %w", err)
	}
	ini := fmt.Sprintf("auto_prepend_file=%q\n", filepath.Join(dir.PHP(), "prepend.php"))
	if err := workdir.Keep(filepath.Join(iniDir(dir), "queueworker.ini"), []byte(ini), 0o444); err != nil {
		return fmt.Errorf("install the entry: %w", err)
	}
	return nil
}

// Wrap returns the command and the additions to its environment that let our
// PHP run in it.
func Wrap(dir workdir.Dir, runtime timeoutchain.Runtime, command []string, getenv func(string) string) (words, env []string, err error) {
	env = []string{dirEnv + "=" + dir.Run()}
	if runtime == timeoutchain.Horizon {
		// A list with an empty part keeps the image's own directory.
		return command, append(env, scanEnv+"="+getenv(scanEnv)+":"+iniDir(dir)), nil
	}
	parts, err := artisan.Read(runtime, command)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: give them as words of their own, or supervise with SignalsOnly", err)
	}
	words = slices.Concat(parts.PHP, []string{filepath.Join(dir.PHP(), "entry.php")}, parts.Options)
	return words, append(env, artisanEnv+"="+parts.Artisan), nil
}

func iniDir(dir workdir.Dir) string { return filepath.Join(dir.PHP(), "ini") }
