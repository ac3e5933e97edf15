// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/queueworker/operator/hack/controlplane/binaries"
)

// ErrForeign is returned for what must not be done to a cluster that this package did not start.
var ErrForeign = errors.New("this is the cluster of QW_TEST_KUBECONFIG: it is not ours to stop or restart")

// KillAPIServer kills the API server as a crash would and returns when it is gone. Everything else keeps running, and its port stays reserved.
func (c *Cluster) KillAPIServer() error { return c.kill(binaries.APIServer) }

// StartAPIServer starts a killed API server again, with the same address, keys and data, and returns when it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if c.foreign {
		return ErrForeign
	}
	return c.run(ctx, c.apiServer())
}

// RestartAPIServer kills the API server and starts it again.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	return errors.Join(c.KillAPIServer(), c.StartAPIServer(ctx))
}

// KillEtcd kills etcd as a crash would; the API server then answers with errors, or not at all.
func (c *Cluster) KillEtcd() error { return c.kill(binaries.Etcd) }

// StartEtcd starts a killed etcd again, with all that was written, and returns when it answers.
func (c *Cluster) StartEtcd(ctx context.Context) error {
	if c.foreign {
		return ErrForeign
	}
	return c.run(ctx, c.etcd())
}

func (c *Cluster) kill(name string) error {
	if c.foreign {
		return ErrForeign
	}
	c.mu.Lock()
	i := slices.IndexFunc(c.processes, func(p *process) bool { return p.name == name })
	if i < 0 {
		c.mu.Unlock()
		return fmt.Errorf("%s is not running", name)
	}
	p := c.processes[i]
	c.processes = slices.Delete(c.processes, i, i+1)
	c.mu.Unlock()
	p.kill()
	return nil
}
