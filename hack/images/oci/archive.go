// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// WriteArchive writes the image as a tar file of an OCI layout, under the name by which pods ask for it.
func WriteArchive(target string, index v1.ImageIndex, tag name.Tag) (err error) {
	folder, err := os.MkdirTemp("", "queueworker-layout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	annotations := map[string]string{
		"org.opencontainers.image.ref.name": tag.TagStr(),        // skopeo
		"io.containerd.image.name":          containerdName(tag), // ctr
	}
	if err := at.AppendIndex(index, layout.WithAnnotations(annotations)); err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	files := NewFiles(0, time.Unix(0, 0))
	if err := files.AddTree("", folder); err != nil {
		return err
	}
	content, err := files.Tar()
	if err != nil {
		return err
	}
	return os.WriteFile(target, content, 0o644)
}

// containerdName is what the kubelet makes of a name without a registry.
func containerdName(tag name.Tag) string {
	return strings.Replace(tag.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}
