// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func builder(t *testing.T) *Builder {
	return &Builder{root: t.TempDir(), cache: t.TempDir(), scratch: t.TempDir(), log: t.Output()}
}

// names are what is in a layer.
func names(t *testing.T, l v1.Layer) string {
	t.Helper()
	content, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var found []string
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return strings.Join(found, " ")
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, header.Name)
	}
}

// The archive is read back by the library's own reader, which checks digests.
func TestArchiveHoldsEachImage(t *testing.T) {
	b := builder(t)
	below := newFiles()
	below.Write("/app/config/queue.php", []byte("shared"), 0o644)
	base, err := layerIn(t.TempDir(), "base", below)
	if err != nil {
		t.Fatal(err)
	}
	var images []Image
	for _, name := range []string{"one", "two"} {
		top := newFiles()
		top.Write("/which", []byte(name), 0o644)
		top.Remove("/usr/bin/sh")
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
	if in := names(t, layers[1]); in != "usr/bin/.wh.sh which" {
		t.Errorf("the upper layer holds %q", in)
	}
}
