// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func builder(t *testing.T) *Builder {
	return &Builder{root: t.TempDir(), cache: t.TempDir(), scratch: t.TempDir(), log: t.Output()}
}

// tree makes a small folder to put into layers.
func tree(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"artisan": 0o755, "config/queue.php": 0o600} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func layerOf(t *testing.T, folder string) *layer {
	t.Helper()
	f := newFiles(nonRoot)
	if err := f.addTree("/app", folder); err != nil {
		t.Fatal(err)
	}
	l, err := f.in(t.TempDir(), "layer")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// entries maps each name in a layer to its mode and owner.
func entries(t *testing.T, l v1.Layer) map[string]tar.Header {
	t.Helper()
	content, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	found := map[string]tar.Header{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = *header
	}
}

func TestTreeBecomesALayer(t *testing.T) {
	found := entries(t, layerOf(t, tree(t)))
	names := slices.Sorted(maps.Keys(found))
	if want := []string{"app/", "app/artisan", "app/config/", "app/config/queue.php"}; !slices.Equal(names, want) {
		t.Fatalf("wanted %v, got %v", want, names)
	}
	for name, mode := range map[string]int64{"app/artisan": 0o755, "app/config/queue.php": 0o644, "app/config/": 0o755} {
		if h := found[name]; h.Mode != mode || h.Uid != nonRoot || h.Gid != nonRoot {
			t.Errorf("%s: mode %o, owner %d:%d", name, h.Mode, h.Uid, h.Gid)
		}
	}
}

func TestSameFilesMakeTheSameLayer(t *testing.T) {
	folder := tree(t)
	before := layerOf(t, folder).digest
	artisan := filepath.Join(folder, "artisan")
	if err := os.Chtimes(artisan, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if again := layerOf(t, folder).digest; again != before {
		t.Error("another time of a file makes another layer")
	}
	if err := os.WriteFile(artisan, []byte("changed"), 0o755); err != nil {
		t.Fatal(err)
	}
	if changed := layerOf(t, folder).digest; changed == before {
		t.Error("another content makes the same layer")
	}
}

func TestLinksAreRefused(t *testing.T) {
	folder := tree(t)
	if err := os.Symlink("artisan", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := newFiles(0).addTree("/app", folder); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("wanted an error that names the link, got %v", err)
	}
}

// The archive is read back by the library's own reader, which checks digests.
func TestArchiveHoldsEachImage(t *testing.T) {
	b := builder(t)
	base := layerOf(t, tree(t))
	var images []Image
	for _, name := range []string{"one", "two"} {
		top := newFiles(nonRoot)
		if err := errors.Join(top.write("/which", []byte(name), 0o644), top.remove("/usr/bin/sh")); err != nil {
			t.Fatal(err)
		}
		img, err := b.image(name, v1.Config{StopSignal: "SIGQUIT"}, base, top)
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, img)
	}
	var archive bytes.Buffer
	if err := Write(&archive, images...); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(archive.Bytes(), []byte("app/config/queue.php")); n != 1 {
		t.Errorf("the shared layer is in the archive %d times", n)
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	manifest, err := tarball.LoadManifest(opener)
	if err != nil || len(manifest) != len(images) {
		t.Fatalf("manifest %+v, %v", manifest, err)
	}
	for _, entry := range manifest {
		if len(entry.RepoTags) != 1 || !strings.HasPrefix(entry.RepoTags[0], prefix) || len(entry.Layers) != 2 {
			t.Errorf("entry %+v", entry)
		}
	}
	config, err := images[0].ConfigFile()
	if err != nil || config.Config.User != "65532:65532" || config.Config.StopSignal != "SIGQUIT" || len(config.RootFS.DiffIDs) != 2 {
		t.Errorf("config %+v, %v", config, err)
	}
	layers, err := images[0].Layers()
	if err != nil {
		t.Fatal(err)
	}
	if _, hidden := entries(t, layers[1])["usr/bin/.wh.sh"]; !hidden {
		t.Error("the removed file is not hidden")
	}
}
