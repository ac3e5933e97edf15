// SPDX-License-Identifier: Apache-2.0

package image

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/queueworker/operator/hack/images/oci"
)

// layer is an uncompressed tar file. Compressing would cost more time than anything else here, and nothing travels.
type layer struct {
	path   string
	digest v1.Hash
	size   int64
}

// openLayer reads the file once for its digest.
func openLayer(path string) (*layer, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	if err != nil {
		return nil, err
	}
	return &layer{path: path, size: size, digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}}, nil
}

func (l *layer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *layer) Compressed() (io.ReadCloser, error)   { return os.Open(l.path) }
func (l *layer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
func (l *layer) Size() (int64, error)                 { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }

// newFiles are a small layer in the making.
func newFiles() *oci.Files { return oci.NewFiles(oci.User, time.Unix(0, 0)) }

// layerIn writes files into a folder as a layer.
func layerIn(folder, name string, files *oci.Files) (*layer, error) {
	content, err := files.Tar()
	if err != nil {
		return nil, err
	}
	target := filepath.Join(folder, name+".tar")
	if err := os.WriteFile(target, content, 0o600); err != nil {
		return nil, err
	}
	return openLayer(target)
}
