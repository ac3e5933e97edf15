// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/queueworker/operator/hack/controlplane/cluster"
)

// order is what the inside does with its control plane when it is told to.
type order string

const (
	killEtcd       order = "kill etcd"
	startEtcd      order = "start etcd"
	killAPIServer  order = "kill the API server"
	startAPIServer order = "start the API server"
)

func (o order) obey(ctx context.Context, c *cluster.Cluster) error {
	switch o {
	case killEtcd:
		return c.KillEtcd()
	case startEtcd:
		return c.StartEtcd(ctx)
	case killAPIServer:
		return c.KillAPIServer()
	case startAPIServer:
		return c.StartAPIServer(ctx)
	}
	return errors.New("unknown order: " + string(o))
}

// KillEtcd kills etcd as a crash would.
func (n *Node) KillEtcd(ctx context.Context) error { return n.first.tell(ctx, killEtcd) }

// StartEtcd starts it again, with all that was written.
func (n *Node) StartEtcd(ctx context.Context) error { return n.first.tell(ctx, startEtcd) }

// RestartAPIServer kills the API server as a crash would and starts it again.
func (n *Node) RestartAPIServer(ctx context.Context) error {
	return errors.Join(n.first.tell(ctx, killAPIServer), n.first.tell(ctx, startAPIServer))
}

// obeyed starts the line that answers an order; what went wrong follows, quoted.
const obeyed = "obeyed "

// orders are those that come in from outside. The channel is never closed: the end of whoever gives them is ours.
func orders(end context.CancelFunc) <-chan order {
	given := make(chan order)
	go func() {
		for lines := bufio.NewScanner(os.NewFile(controlFD, "control")); lines.Scan(); {
			given <- order(lines.Text())
		}
		end()
	}()
	return given
}

func answer(err error) error {
	text := ""
	if err != nil {
		text = err.Error()
	}
	return report(obeyed + strconv.Quote(text))
}

// tell gives an order and returns when it is obeyed. One at a time.
func (f *firstProcess) tell(ctx context.Context, o order) error {
	f.telling.Lock()
	defer f.telling.Unlock()
	if _, err := f.control.Write([]byte(string(o) + "\n")); err != nil {
		return err
	}
	select {
	case line := <-f.answers:
		text, err := strconv.Unquote(strings.TrimSpace(line))
		if err == nil && text != "" {
			err = errors.New(string(o) + ": " + text)
		}
		return err
	case <-f.done:
		return errors.New(string(o) + ": the node has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}
