// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/queueworker/operator/hack/internal/filelock"
)

// packages are what the images of the tests hold of Debian: PHP with Laravel's framework, and the servers behind its queues.
// One layer for all of them is made and unpacked once.
var packages = []string{
	"ca-certificates",
	"php8.2-cli", "php8.2-sqlite3", "php8.2-mysql", "php8.2-redis", "php8.2-curl", "php-laravel-framework",
	"redis-server", "mariadb-server-core", "mariadb-client-core",
}

// release is the Debian that has these packages.
const release = "bookworm"

// recipe makes the tar file $3 of a Debian release $1 with the packages $2, from the mirror $4, by way of the folder $5. What
// debootstrap mounts is gone with the mount namespace, also when it is interrupted.
const recipe = `set -e
debootstrap --variant=minbase --include="$2" "$1" "$5" "$4"
cd "$5"
rm -rf var/cache/apt/* var/lib/apt/lists/* var/log/* run/* tmp/* usr/share/doc/* usr/share/man/* usr/share/locale/*
tar --sort=name --numeric-owner --mtime=@0 --one-file-system --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' -cf "$3" .
`

// debian returns the layer of Debian's packages, made by debootstrap on first use.
func (b *Builder) debian(ctx context.Context) (v1.Layer, error) {
	folder := filepath.Join(b.cache, "layers")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	key := sha256.Sum256([]byte(release + strings.Join(packages, ",") + recipe))
	target := filepath.Join(folder, "debian-"+hex.EncodeToString(key[:6])+".tar")
	unlock, err := filelock.Acquire(ctx, filepath.Join(folder, "lock"), func() {
		say(b.log, "Waiting: another run is making the layer of Debian's packages.")
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := os.Stat(target); errors.Is(err, os.ErrNotExist) {
		if err := b.bootstrap(ctx, target); err != nil {
			return nil, err
		}
	}
	return openLayer(target)
}

func (b *Builder) bootstrap(ctx context.Context, target string) error {
	if missing := Missing(); len(missing) > 0 {
		return fmt.Errorf("missing Debian packages: apt-get install -y --no-install-recommends %s", strings.Join(missing, " "))
	}
	mirror, err := mirror(ctx)
	if err != nil {
		return err
	}
	say(b.log, "Making a Debian root file system with PHP, Laravel, Redis and MariaDB once, by debootstrap: about 3 minutes and 1 GB of disk.")
	start := time.Now()
	work, temp := target+".work", target+".making"
	defer func() { _, _ = os.RemoveAll(work), os.Remove(temp) }()
	if err := os.RemoveAll(work); err != nil { // of a run that was killed
		return err
	}
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child",
		"/bin/sh", "-c", recipe, "debootstrap", release, strings.Join(packages, ","), temp, mirror, work)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("debootstrap: %w\n%s", err, lastLines(output.String(), 15))
	}
	say(b.log, "  made in %s", time.Since(start).Round(time.Second))
	return os.Rename(temp, target)
}

// mirror is where this machine's own apt gets the release from.
func mirror(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("asking apt for its sources: %w", err)
	}
	for line := range strings.Lines(string(output)) {
		if fields := strings.Fields(line); slices.Equal(fields[1:], []string{release, "main"}) {
			return fields[0], nil
		}
	}
	return "", fmt.Errorf("apt has no source for Debian %s main, which PHP 8.2 and Laravel 8 come from: add one and run apt-get update", release)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
