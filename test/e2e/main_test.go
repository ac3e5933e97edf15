// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/queueworker/operator/hack/node/image"
	"github.com/queueworker/operator/hack/node/node"
	"github.com/queueworker/operator/hack/node/onnode"
)

// suite is what every test uses: one node with the servers that the application needs.
var suite struct {
	node   *node.Node
	client kubernetes.Interface
	pods   *podWatch
	seed   uint64
}

func TestMain(m *testing.M) { onnode.Main(m, setUp, func() error { return suite.node.Stop() }) }

// seed is of all that a test picks at random; QW_E2E_SEED repeats a run.
func seed() (uint64, error) {
	text := os.Getenv("QW_E2E_SEED")
	if text == "" {
		return rand.Uint64N(1_000_000), nil
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("QW_E2E_SEED=%s: not a whole number", text)
	}
	return number, nil
}

func setUp(ctx context.Context) error {
	start := time.Now()
	if err := node.Requirements(image.Missing()...); err != nil {
		return err
	}
	var err error
	if suite.seed, err = seed(); err != nil {
		return err
	}
	builder, err := image.NewBuilder(os.Stderr)
	if err != nil {
		return err
	}
	defer func() { _ = builder.Close() }()
	images, err := builder.All(ctx)
	if err != nil {
		return err
	}
	made := time.Now()
	if suite.node, err = node.Start(ctx, node.Options{}); err != nil {
		return err
	}
	up := time.Now()
	if err := suite.node.Load(ctx, images...); err != nil {
		return err
	}
	loaded := time.Now()
	if suite.client, err = kubernetes.NewForConfig(suite.node.RESTConfig()); err != nil {
		return err
	}
	if suite.pods, err = watchPods(ctx); err != nil {
		return err
	}
	if err := startServices(ctx); err != nil {
		return err
	}
	seconds := func(from, to time.Time) float64 { return to.Sub(from).Seconds() }
	fmt.Printf("seed %d; images made in %.1f s, node Ready after %.1f s, images loaded in %.1f s, services up after %.1f s\n",
		suite.seed, seconds(start, made), seconds(made, up), seconds(up, loaded), seconds(loaded, time.Now()))
	return nil
}

// full tells whether the long profile was asked for.
func full() bool { return os.Getenv("QW_E2E") == "full" }

// patience is how long anything may take that has no limit of its own: the machine may be shared.
const patience = 4 * time.Minute

// eventually waits for a fact, and says what was waited for when it never comes.
func eventually(t *testing.T, within time.Duration, what string, fact func() bool) {
	t.Helper()
	if err := await(t.Context(), within, what, func() error {
		if fact() {
			return nil
		}
		return errors.New("not yet")
	}); err != nil {
		t.Fatal(err)
	}
}

func await(ctx context.Context, within time.Duration, what string, try func() error) error {
	for end := time.Now().Add(within); ; {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s still not: %s: %w", within, what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// beside lets a test run together with others. Not in the long profile: there it measures.
func beside(t *testing.T) {
	t.Helper()
	if !full() {
		t.Parallel()
	}
}
