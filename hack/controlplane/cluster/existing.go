// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
)

// TestKubeconfigEnv names the only way by which a test touches a cluster of the user's.
const TestKubeconfigEnv = "QW_TEST_KUBECONFIG"

// UseOrStart is what test suites call: it returns the cluster of QW_TEST_KUBECONFIG if that is set, whatever options say,
// and starts one of its own otherwise. Stop leaves the former alone.
func UseOrStart(ctx context.Context, options Options) (*Cluster, error) {
	path := os.Getenv(TestKubeconfigEnv)
	if path == "" {
		return Start(ctx, options)
	}
	config, err := restConfig(path)
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", TestKubeconfigEnv, path, err)
	}
	return &Cluster{foreign: true, foreignKubeconfig: path, config: config, failed: make(chan error)}, nil
}

// Foreign tells whether this is the user's own cluster: without simulated nodes, and not ours to restart.
func (c *Cluster) Foreign() bool { return c.foreign }
