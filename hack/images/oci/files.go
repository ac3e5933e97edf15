// SPDX-License-Identifier: Apache-2.0

// Package oci makes container images of programs of this repository: without Docker, without a registry, and the same bytes from
// the same source wherever and whenever it runs.
package oci

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Files are what a layer holds. The same files always make the same layer: they belong to one user, have one time and come in
// the order of their names.
type Files struct {
	owner   int
	time    time.Time
	entries map[string]entry
}

type entry struct {
	mode    fs.FileMode // a folder's where it says so
	content []byte
}

// NewFiles are none yet.
func NewFiles(owner int, modified time.Time) *Files {
	return &Files{owner: owner, time: modified, entries: map[string]entry{}}
}

// Folder adds one; those above it are not added.
func (f *Files) Folder(name string) { f.put(name+"/", entry{mode: fs.ModeDir | 0o755}) }

// Write adds a file.
func (f *Files) Write(name string, content []byte, mode fs.FileMode) {
	f.put(name, entry{mode: mode, content: content})
}

func (f *Files) put(name string, e entry) { f.entries[strings.TrimPrefix(name, "/")] = e }

// Add adds a file of this machine.
func (f *Files) Add(name, from string, mode fs.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f.Write(name, content, mode)
	return nil
}

// AddTree adds a folder of this machine, with all that is in it, below name.
func (f *Files) AddTree(name, from string) error {
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
		case target == ".":
			return nil // the layer's own root
		case entry.IsDir():
			f.Folder(target)
			return nil
		case entry.Type().IsRegular():
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return f.Add(target, at, readable(info.Mode()))
		default:
			return fmt.Errorf("%s is neither a file nor a folder: an image holds nothing else here", at)
		}
	})
}

// readable leaves of a mode what git keeps of it, so that nobody's umask counts.
func readable(mode fs.FileMode) fs.FileMode {
	if mode&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// Remove hides a file of a lower layer.
func (f *Files) Remove(name string) {
	f.Write(path.Join(path.Dir(name), ".wh."+path.Base(name)), nil, 0o644)
}

// Tar is the layer.
func (f *Files) Tar() ([]byte, error) {
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(f.entries)) {
		e := f.entries[name]
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Mode: int64(e.mode.Perm()), Size: int64(len(e.content)),
			Uid: f.owner, Gid: f.owner, ModTime: f.time,
		}
		if e.mode.IsDir() {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := writer.Close()
	return buffer.Bytes(), err
}
