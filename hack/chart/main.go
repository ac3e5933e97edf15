// SPDX-License-Identifier: Apache-2.0

// Command chart writes what is derived from the chart: the copy of the CRD in
// it, its README.md, and config/install.yaml.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/queueworker/operator/hack/chart/render"
)

func main() {
	if err := write(filepath.Join("..", "..")); err != nil {
		fmt.Fprintln(os.Stderr, "hack/chart:", err)
		os.Exit(1)
	}
}

// write takes the root of the repository.
func write(root string) error {
	crd, err := os.ReadFile(filepath.Join(root, "config/crd/queueworker.dev_queueworkers.yaml"))
	if err != nil {
		return err
	}
	// Helm reads no file outside of the chart.
	if err := os.WriteFile(filepath.Join(root, render.Folder, "files", "crd.yaml"), crd, 0o644); err != nil {
		return err
	}
	chart, err := render.Load(root)
	if err != nil {
		return err
	}
	install, err := manifest(chart)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "config/install.yaml"), []byte(install), 0o644); err != nil {
		return err
	}
	values, err := os.ReadFile(filepath.Join(root, render.Folder, "values.yaml"))
	if err != nil {
		return err
	}
	text, err := readme(values)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, render.Folder, "README.md"), []byte(text), 0o644)
}
