// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is the one that images run as; a number, since runAsNonRoot needs one.
const User = 65532

// Operator is the recipe of the operator's image: its programs, each at /NAME, and the authorities that the fence trusts. Its
// files are root's, so that none of them can be changed by what runs.
type Operator struct {
	Root         string   // of the repository
	Programs     []string // packages; the first is what runs
	Version      string
	Certificates []byte
	Created      time.Time
}

// OperatorPrograms are the manager, and what it brings into other pods: the agent, the fence and the monitor.
var OperatorPrograms = []string{"./cmd/manager", "./cmd/agent", "./cmd/fence", "./cmd/monitor"}

// Index is the image for several platforms.
func (o Operator) Index(ctx context.Context, platforms ...v1.Platform) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range platforms {
		image, err := o.Image(ctx, platform)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: ordinary{image}, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return index, nil
}

// ordinary is an image and no other artifact. Else its index would name the kind of artifact, which registries' tools drop on the
// way, and with it the digest.
type ordinary struct{ v1.Image }

// ArtifactType is asked for by the index.
func (ordinary) ArtifactType() (string, error) { return "", nil }

// Image is the image for one platform.
func (o Operator) Image(ctx context.Context, platform v1.Platform) (v1.Image, error) {
	layer, err := o.layer(ctx, platform)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: o.Created.UTC()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "make image"},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = platform.OS, platform.Architecture, created
	file.Config = v1.Config{
		Entrypoint: []string{"/" + path.Base(o.Programs[0])},
		User:       fmt.Sprintf("%d:%d", User, User),
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "queueworker-operator",
			"org.opencontainers.image.source":   "https://github.com/queueworker/operator",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  o.Version,
		},
	}
	return mutate.ConfigFile(image, file)
}

func (o Operator) layer(ctx context.Context, platform v1.Platform) (layer v1.Layer, err error) {
	scratch, err := os.MkdirTemp("", "queueworker-programs-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	files := NewFiles(0, o.Created)
	for _, pkg := range o.Programs {
		target := filepath.Join(scratch, path.Base(pkg))
		if err := (Program{Root: o.Root, Package: pkg, Version: o.Version, Platform: platform}).Build(ctx, target); err != nil {
			return nil, err
		}
		if err := files.Add("/"+path.Base(pkg), target, 0o755); err != nil {
			return nil, err
		}
	}
	for _, folder := range []string{"/etc", "/etc/ssl", "/etc/ssl/certs"} {
		files.Folder(folder)
	}
	files.Write(CertificatesFile, o.Certificates, 0o644)
	content, err := files.Tar()
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}
