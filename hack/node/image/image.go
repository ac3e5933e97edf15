// SPDX-License-Identifier: Apache-2.0

// Package image makes the container images of the node and of the tests from this repository and from Debian's packages:
// without Docker, and without a registry. A [Builder] keeps what is slow to make in the cache, by what it is made from.
package image

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/queueworker/operator/hack/controlplane/binaries"
	"github.com/queueworker/operator/hack/images/oci"
)

// prefix of every image's name. Nothing answers there, so a pod that names one that was not loaded fails and pulls nothing.
const prefix = "queueworker.invalid/"

// version is what the programs say of themselves.
const version = "dev"

// Image is an image and the name by which pods ask for it.
type Image struct {
	Name string
	v1.Image
}

// Builder makes images.
type Builder struct {
	root    string // of the repository
	cache   string
	scratch string // small layers, until Close
	log     io.Writer
}

// NewBuilder returns a Builder for the repository around the working directory. Progress of what is slow goes to log.
func NewBuilder(log io.Writer) (*Builder, error) {
	finder, err := binaries.FromEnv(log)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "queueworker-images-")
	if err != nil {
		return nil, err
	}
	return &Builder{root: finder.Root, cache: filepath.Join(finder.Cache, "node"), scratch: scratch, log: log}, nil
}

// Close removes the files of all images that were made.
func (b *Builder) Close() error { return os.RemoveAll(b.scratch) }

// Programs is an image of nothing but static programs of this repository: packages by path, such as ./cmd/agent, each at
// /NAME. The first is the one that runs.
func (b *Builder) Programs(ctx context.Context, imageName string, packages ...string) (Image, error) {
	layer := newFiles()
	for _, pkg := range packages {
		program := filepath.Join(b.scratch, filepath.Base(pkg))
		if err := (oci.Program{Root: b.root, Package: pkg, Version: version, Platform: oci.Host}).Build(ctx, program); err != nil {
			return Image{}, err
		}
		if err := layer.Add("/"+filepath.Base(pkg), program, 0o755); err != nil {
			return Image{}, err
		}
	}
	return b.image(imageName, v1.Config{Entrypoint: []string{"/" + filepath.Base(packages[0])}}, nil, layer)
}

// Pause is the image of every pod's first container.
func (b *Builder) Pause(ctx context.Context) (Image, error) {
	return b.Programs(ctx, "pause", "./hack/node/image/pause")
}

// Operator is the operator's image as `make image` makes it, for this machine.
func (b *Builder) Operator(ctx context.Context) (Image, error) {
	certificates, _, err := oci.Certificates(oci.CertificatesFile)
	if err != nil {
		return Image{}, err
	}
	recipe := oci.Operator{
		Root: b.root, Programs: oci.OperatorPrograms, Version: version, Certificates: certificates, Created: time.Unix(0, 0),
	}
	img, err := recipe.Image(ctx, oci.Host)
	return Image{Name: Name("operator"), Image: img}, err
}

// All are the images of the operator and of the tests.
func (b *Builder) All(ctx context.Context) ([]Image, error) {
	operator, err := b.Operator(ctx)
	if err != nil {
		return nil, err
	}
	provider, err := b.Programs(ctx, "provider", "./test/e2e/provider")
	if err != nil {
		return nil, err
	}
	proxy, err := b.Programs(ctx, "proxy", "./test/e2e/proxy")
	if err != nil {
		return nil, err
	}
	next, err := later(operator)
	if err != nil {
		return nil, err
	}
	services, err := b.Services(ctx)
	if err != nil {
		return nil, err
	}
	apps, err := b.Apps(ctx)
	return append(apps, operator, next, provider, proxy, services), err
}

// later is the operator's next image: the same programs under another name and with another digest.
func later(operator Image) (Image, error) {
	file, err := operator.ConfigFile()
	if err != nil {
		return Image{}, err
	}
	config := file.Config
	config.Labels = map[string]string{"release": "next"}
	img, err := mutate.Config(operator.Image, config)
	return Image{Name: Name("operator-next"), Image: img}, err
}

// image puts layers on each other: base, if there is one, then the files.
func (b *Builder) image(imageName string, config v1.Config, base v1.Layer, layers ...*oci.Files) (Image, error) {
	var all []v1.Layer
	if base != nil {
		all = append(all, base)
	}
	for i, f := range layers {
		l, err := layerIn(b.scratch, fmt.Sprintf("%s-%d", imageName, i), f)
		if err != nil {
			return Image{}, err
		}
		all = append(all, l)
	}
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.DockerManifestSchema2), all...)
	if err != nil {
		return Image{}, err
	}
	config.User = fmt.Sprintf("%d:%d", oci.User, oci.User)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", Config: config, RootFS: rootFS(all),
	})
	return Image{Name: Name(imageName), Image: img}, err
}

func rootFS(layers []v1.Layer) v1.RootFS {
	fs := v1.RootFS{Type: "layers"}
	for _, l := range layers {
		id, _ := l.DiffID() // known for all of ours
		fs.DiffIDs = append(fs.DiffIDs, id)
	}
	return fs
}

// Name is how pods ask for one of these images.
func Name(image string) string { return prefix + image + ":dev" }

// Write writes images as one archive that `ctr images import` and `docker load` read. A layer that several share is in it once.
func Write(to io.Writer, images ...Image) error {
	byName := map[name.Reference]v1.Image{}
	for _, img := range images {
		tag, err := name.NewTag(img.Name)
		if err != nil {
			return err
		}
		byName[tag] = img.Image
	}
	if err := tarball.MultiRefWrite(byName, to); err != nil {
		return fmt.Errorf("writing images: %w", err)
	}
	return nil
}

// Missing names the Debian packages that this machine lacks to make images.
func Missing() []string {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return []string{"debootstrap"}
	}
	return nil
}

func say(log io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(log, strings.TrimSuffix(format, "\n")+"\n", args...)
}
