// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// appFolder is where an image holds the application.
const appFolder = "/app"

// Services is the image of the servers behind the queues: redis-server and mariadbd.
func (b *Builder) Services(ctx context.Context) (Image, error) {
	base, err := b.debian(ctx)
	if err != nil {
		return Image{}, err
	}
	return b.image("services", v1.Config{Cmd: []string{"redis-server"}}, base)
}

// Apps are images of the Laravel application of the tests (test/e2e/app): the plain one, two whose stop signal is that of php-fpm
// and of apache images, and one without a shell.
func (b *Builder) Apps(ctx context.Context) ([]Image, error) {
	base, err := b.debian(ctx)
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, variant := range []struct {
		name, stopSignal string
		shell            bool
	}{
		{"app", "", true}, {"app-sigquit", "SIGQUIT", true}, {"app-sigwinch", "SIGWINCH", true}, {"app-shell-less", "", false},
	} {
		app := newFiles()
		if err := app.AddTree(appFolder, filepath.Join(b.root, "test", "e2e", "app")); err != nil {
			return nil, err
		}
		if !variant.shell {
			for _, shell := range []string{"/usr/bin/sh", "/usr/bin/dash", "/usr/bin/bash"} {
				app.Remove(shell)
			}
		}
		config := v1.Config{WorkingDir: appFolder, StopSignal: variant.stopSignal, Cmd: []string{"php", "artisan", "queue:work"}}
		img, err := b.image(variant.name, config, base, app)
		if err != nil {
			return nil, err
		}
		images = append(images, img)
	}
	return images, nil
}
