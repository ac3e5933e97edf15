// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/queueworker/operator/hack/images/oci"
)

const root = "../../.."

// recipe makes an image of the smallest program; `make test SUITES=install` tries the whole one.
func recipe(from string) oci.Operator {
	return oci.Operator{
		Root: from, Programs: []string{"./cmd/agent"}, Version: "1.2.3", Created: epoch,
		Certificates: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("an authority")}),
	}
}

// archive returns the bytes of the archive and the image in it, read back from there.
func archive(t *testing.T, from oci.Operator) ([]byte, v1.ImageIndex) {
	t.Helper()
	made, err := from.Index(t.Context(), oci.Platforms...)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("queueworker/operator:1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := oci.WriteArchive(file, made, tag); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if out, err := exec.Command("tar", "-C", folder, "-xf", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the archive holds %+v (%v), want one image", manifest, err)
	}
	want := map[string]string{
		"org.opencontainers.image.ref.name": "1.2.3", "io.containerd.image.name": "docker.io/queueworker/operator:1.2.3",
	}
	if diff := cmp.Diff(want, manifest.Manifests[0].Annotations); diff != "" {
		t.Errorf("the image's names (want -, got +):\n%s", diff)
	}
	read, err := all.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return content, read
}

func digest(t *testing.T, of v1.ImageIndex) string {
	t.Helper()
	d, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// The image follows from its source alone: not from the folder, its times, git, the clock or the builder's settings.
func TestTheSameSourceMakesTheSameImage(t *testing.T) {
	first, image := archive(t, recipe(root))
	elsewhere := copied(t)
	t.Setenv("GOFLAGS", "-ldflags=-X=main.version=other")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("TZ", "Asia/Kolkata")
	second, again := archive(t, recipe(elsewhere))
	if digest(t, image) != digest(t, again) || !bytes.Equal(first, second) {
		t.Errorf("the same source made %s and %s, archives of %d and %d bytes", digest(t, image), digest(t, again), len(first), len(second))
	}
	for what, change := range map[string]func(*oci.Operator){
		"another version":     func(o *oci.Operator) { o.Version = "1.2.4" },
		"another time":        func(o *oci.Operator) { o.Created = epoch.Add(time.Second) },
		"another certificate": func(o *oci.Operator) { o.Certificates = append(o.Certificates, '\n') },
	} {
		changed := recipe(root)
		change(&changed)
		if _, other := archive(t, changed); digest(t, other) == digest(t, image) {
			t.Errorf("%s made the same image", what)
		}
	}
}

// copied is what of the repository the agent is built from, without git, in another folder.
func copied(t *testing.T) string {
	t.Helper()
	target := t.TempDir()
	for _, part := range []string{"go.mod", "go.sum", "cmd/agent", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(at string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, at)
			if err != nil {
				return err
			}
			to := filepath.Join(target, relative)
			if entry.IsDir() {
				return os.MkdirAll(to, 0o700)
			}
			content, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			return os.WriteFile(to, content, 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return target
}

func TestTheImageIsWhatIsPromised(t *testing.T) {
	from := recipe(root)
	_, index := archive(t, from)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, one := range manifest.Manifests {
		platforms = append(platforms, one.Platform.String())
		if one.ArtifactType != "" {
			t.Errorf("it is an artifact %s: skopeo would give it another digest", one.ArtifactType)
		}
		image, err := index.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(one.Platform.Architecture, func(t *testing.T) { promised(t, image, *one.Platform, from) })
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) || manifest.MediaType != types.OCIImageIndex {
		t.Errorf("a %s for %v, want %v", manifest.MediaType, platforms, want)
	}
}

func promised(t *testing.T, image v1.Image, platform v1.Platform, from oci.Operator) {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if file.Architecture != platform.Architecture || file.OS != "linux" || !file.Created.Equal(epoch) {
		t.Errorf("%s/%s of %s", file.OS, file.Architecture, file.Created)
	}
	config := file.Config
	if config.User != "65532:65532" || !slices.Equal(config.Entrypoint, []string{"/agent"}) || config.Cmd != nil ||
		config.Labels["org.opencontainers.image.version"] != from.Version {
		t.Errorf("config %+v", config)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	layer, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	at := epoch.Unix()
	want := []header{
		{"agent", 0o755, 0, at}, {"etc/", 0o755, 0, at}, {"etc/ssl/", 0o755, 0, at}, {"etc/ssl/certs/", 0o755, 0, at},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, at},
	}
	if diff := cmp.Diff(want, headers(t, bytes.NewReader(layer))); diff != "" {
		t.Errorf("(want -, got +):\n%s", diff)
	}
	if !bytes.Equal(member(t, layer, "etc/ssl/certs/ca-certificates.crt"), from.Certificates) {
		t.Error("the authorities are others")
	}
	runs(t, member(t, layer, "agent"), platform, from.Version)
}

// runs looks at a program, and asks it for its version where this machine can.
func runs(t *testing.T, program []byte, platform v1.Platform, version string) {
	t.Helper()
	binary, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[platform.Architecture]
	libraries, err := binary.ImportedLibraries()
	if binary.Machine != machine || len(libraries) > 0 || err != nil {
		t.Errorf("built for %s, with %v (%v)", binary.Machine, libraries, err)
	}
	if platform.Architecture != oci.Host.Architecture {
		return
	}
	path := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "version").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != version {
		t.Errorf("its version is %s (%v), want %s", out, err, version)
	}
}

func member(t *testing.T, layer []byte, wanted string) []byte {
	t.Helper()
	for reader := tar.NewReader(bytes.NewReader(layer)); ; {
		h, err := reader.Next()
		if err != nil {
			t.Fatalf("%s: %v", wanted, err)
		}
		if h.Name == wanted {
			content, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			return content
		}
	}
}
