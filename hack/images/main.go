// SPDX-License-Identifier: Apache-2.0

// Command images writes the operator's image for all platforms as one archive, and prints its digest.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/hack/images/oci"
)

const (
	certificatesEnv = "CA_CERTIFICATES"
	epochEnv        = "SOURCE_DATE_EPOCH"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "hack/images:", err)
		os.Exit(1)
	}
}

// run works in the root of the repository.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	target := flags.String("out", filepath.Join("bin", "operator-image.tar"), "the archive")
	wanted := flags.String("name", "", "the image's `name`; default: the one that the chart asks for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chart, err := readChart()
	if err != nil {
		return err
	}
	tag, err := tagOf(*wanted, chart)
	if err != nil {
		return err
	}
	recipe := oci.Operator{Root: ".", Programs: oci.OperatorPrograms, Version: chart.AppVersion}
	if recipe.Created, err = created(os.Getenv(epochEnv)); err != nil {
		return err
	}
	authorities := cmp.Or(os.Getenv(certificatesEnv), oci.CertificatesFile)
	var count int
	if recipe.Certificates, count, err = oci.Certificates(authorities); err != nil {
		return err
	}
	digest, err := write(ctx, recipe, tag, *target)
	if err != nil {
		return err
	}
	written, err := os.Stat(*target)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %.1f MB, for %v, with %d authorities of %s\n%s@%s\n",
		*target, float64(written.Size())/1e6, oci.Platforms, count, authorities, tag, digest)
	return nil
}

func write(ctx context.Context, recipe oci.Operator, tag name.Tag, target string) (v1.Hash, error) {
	index, err := recipe.Index(ctx, oci.Platforms...)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return v1.Hash{}, err
	}
	if err := oci.WriteArchive(target, index, tag); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

type chart struct {
	AppVersion string `json:"appVersion"`
	Image      struct {
		Repository string `json:"repository"`
	} `json:"image"`
}

// readChart reads which image the chart asks for.
func readChart() (chart, error) {
	var read chart
	for _, file := range []string{"Chart.yaml", "values.yaml"} {
		text, err := os.ReadFile(filepath.Join("charts", "queueworker-operator", file))
		if err != nil {
			return read, err
		}
		if err := yaml.Unmarshal(text, &read); err != nil {
			return read, fmt.Errorf("%s: %w", file, err)
		}
	}
	return read, nil
}

// tagOf is the image's name, with the chart's version where it has no tag.
func tagOf(wanted string, chart chart) (name.Tag, error) {
	if wanted == "" {
		wanted = chart.Image.Repository
	}
	tag, err := name.NewTag(wanted, name.WithDefaultTag(chart.AppVersion))
	if err != nil {
		return tag, fmt.Errorf("-name %q: %w; give REGISTRY/REPOSITORY:TAG", wanted, err)
	}
	return name.NewTag(strings.TrimSuffix(wanted, ":"+tag.TagStr()) + ":" + tag.TagStr()) // which it also prints
}

// created is the time of all that is in the image.
func created(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("%s=%s is not a number of seconds since 1970", epochEnv, epoch)
	}
	return time.Unix(seconds, 0), nil
}
