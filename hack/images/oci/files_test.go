// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/queueworker/operator/hack/images/oci"
)

var epoch = time.Unix(1_700_000_000, 0)

// tree makes a small folder to put into layers.
func tree(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"artisan": 0o700, "config/queue.php": 0o600} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func tarOf(t *testing.T, files *oci.Files) []byte {
	t.Helper()
	content, err := files.Tar()
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func treeLayer(t *testing.T, folder string) []byte {
	t.Helper()
	files := oci.NewFiles(oci.User, epoch)
	if err := files.AddTree("/app", folder); err != nil {
		t.Fatal(err)
	}
	return tarOf(t, files)
}

type header struct {
	Name  string
	Mode  int64
	Owner int
	Time  int64
}

// headers are those of a layer, in its order.
func headers(t *testing.T, content io.Reader) []header {
	t.Helper()
	var found []header
	for reader := tar.NewReader(content); ; {
		h, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, header{h.Name, h.Mode, h.Uid, h.ModTime.Unix()})
	}
}

func TestTreeBecomesALayer(t *testing.T) {
	at := epoch.Unix()
	want := []header{
		{"app/", 0o755, oci.User, at}, {"app/artisan", 0o755, oci.User, at},
		{"app/config/", 0o755, oci.User, at}, {"app/config/queue.php", 0o644, oci.User, at},
	}
	if diff := cmp.Diff(want, headers(t, bytes.NewReader(treeLayer(t, tree(t))))); diff != "" {
		t.Errorf("(want -, got +):\n%s", diff)
	}
}

func TestLayerIsSortedHoweverItWasFilled(t *testing.T) {
	files := oci.NewFiles(0, epoch)
	files.Write("/manager", nil, 0o755)
	files.Remove("/bin/sh")
	files.Folder("/etc")
	want := []header{{"bin/.wh.sh", 0o644, 0, epoch.Unix()}, {"etc/", 0o755, 0, epoch.Unix()}, {"manager", 0o755, 0, epoch.Unix()}}
	if diff := cmp.Diff(want, headers(t, bytes.NewReader(tarOf(t, files)))); diff != "" {
		t.Errorf("(want -, got +):\n%s", diff)
	}
}

func TestSameFilesMakeTheSameLayer(t *testing.T) {
	folder := tree(t)
	before := treeLayer(t, folder)
	artisan := filepath.Join(folder, "artisan")
	if err := errors.Join(os.Chtimes(artisan, time.Unix(1, 0), time.Unix(1, 0)), os.Chmod(artisan, 0o755)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(treeLayer(t, folder), before) {
		t.Error("another time of a file, or another umask, makes another layer")
	}
	if err := os.WriteFile(artisan, []byte("changed"), 0o755); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(treeLayer(t, folder), before) {
		t.Error("another content makes the same layer")
	}
}

func TestLinksAreRefused(t *testing.T) {
	folder := tree(t)
	if err := os.Symlink("artisan", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := oci.NewFiles(0, epoch).AddTree("/app", folder); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("wanted an error that names the link, got %v", err)
	}
}

func TestCertificatesAreLookedAt(t *testing.T) {
	folder := t.TempDir()
	for name, c := range map[string]struct{ content, want string }{
		"missing":   {"", "there are no authorities at"},
		"empty.crt": {"\n", "holds no certificate"},
		"key.pem":   {"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "block 1 is a PRIVATE KEY"},
		"cut.crt":   {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "block 1 is no certificate"},
	} {
		file := filepath.Join(folder, name)
		if c.content != "" {
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := oci.Certificates(file)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "CA_CERTIFICATES=FILE") {
			t.Errorf("%s: got %v, want %q, the file and what to do", name, err, c.want)
		}
	}
}
