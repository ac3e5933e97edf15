// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// pins are the versions that hack/controlplane/modules asks for.
type pins struct {
	versions map[string]string // by program
	digest   string            // of every go.mod and go.sum, and of the way programs are linked
}

// key names the cache folder: readable first, exact second.
func (p pins) key() string {
	return p.versions[APIServer] + "-" + p.digest[:12]
}

func modulesFolder(root string) string {
	return filepath.Join(root, "hack", "controlplane", "modules")
}

func readPins(root string) (pins, error) {
	result := pins{versions: map[string]string{}}
	hash := sha256.New()
	for _, p := range programs {
		folder := filepath.Join(modulesFolder(root), p.folder)
		mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err != nil {
			return pins{}, err
		}
		sum, err := os.ReadFile(filepath.Join(folder, "go.sum"))
		if err != nil {
			return pins{}, err
		}
		version, err := requiredVersion(string(mod), p.module)
		if err != nil {
			return pins{}, fmt.Errorf("%s: %w", filepath.Join(folder, "go.mod"), err)
		}
		result.versions[p.name] = version
		hash.Write(mod)
		hash.Write(sum)
		hash.Write([]byte(p.linkerFlags(version)))
	}
	result.digest = hex.EncodeToString(hash.Sum(nil))
	return result, nil
}

func requiredVersion(mod, module string) (string, error) {
	line := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(module) + ` (v\S+)`)
	if match := line.FindStringSubmatch(mod); match != nil {
		return match[1], nil
	}
	return "", fmt.Errorf("requires no %s", strings.TrimSpace(module))
}
