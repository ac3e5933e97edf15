// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
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

// files is a small layer in the making. Everything in it belongs to one user and has no time, so that the same files always
// make the same layer.
type files struct {
	buffer bytes.Buffer
	tar    *tar.Writer
	owner  int
}

func newFiles(owner int) *files {
	f := &files{owner: owner}
	f.tar = tar.NewWriter(&f.buffer)
	return f
}

// add puts a file from this machine into the layer.
func (f *files) add(name, from string, mode fs.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return f.write(name, content, mode)
}

func (f *files) write(name string, content []byte, mode fs.FileMode) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"), Mode: int64(mode.Perm()), Size: int64(len(content)),
		Uid: f.owner, Gid: f.owner,
	}
	if err := f.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := f.tar.Write(content)
	return err
}

// addTree puts a folder with all that is in it below name.
func (f *files) addTree(name, from string) error {
	return filepath.WalkDir(from, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		target := path.Join(name, filepath.ToSlash(relative))
		switch {
		case entry.IsDir():
			return f.tar.WriteHeader(&tar.Header{
				Typeflag: tar.TypeDir, Name: strings.TrimPrefix(target, "/") + "/", Mode: 0o755, Uid: f.owner, Gid: f.owner,
			})
		case entry.Type().IsRegular():
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return f.add(target, at, 0o644|info.Mode().Perm()&0o111)
		default:
			return fmt.Errorf("%s is neither a file nor a folder: an image of the tests holds nothing else", at)
		}
	})
}

// remove hides a file of a lower layer.
func (f *files) remove(name string) error {
	return f.write(path.Join(path.Dir(name), ".wh."+path.Base(name)), nil, 0o644)
}

// in writes the layer into a folder.
func (f *files) in(folder, name string) (*layer, error) {
	target := filepath.Join(folder, name+".tar")
	if err := errors.Join(f.tar.Close(), os.WriteFile(target, f.buffer.Bytes(), 0o600)); err != nil {
		return nil, err
	}
	return openLayer(target)
}
