// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/queueworker/operator/hack/node/image"
)

// Load gives the node images, which pods then use by name.
func (n *Node) Load(ctx context.Context, images ...image.Image) error {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(image.Write(writer, images...)) }()
	err := n.Import(ctx, reader)
	_ = reader.Close() // ends the writer, should ctr have ended early
	return err
}

// Import gives the node the images of an archive, as `docker save` or `make image` writes it. Of an image for several platforms
// it takes its own.
func (n *Node) Import(ctx context.Context, archive io.Reader) error {
	cmd := n.ctr(ctx, "images", "import", "-")
	var output bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = archive, &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("loading images: %w\n%s", err, output.String())
	}
	return nil
}

// Kill ends a container as a crash does, by the ID that its pod's status gives. No signal from inside reaches its first process.
func (n *Node) Kill(ctx context.Context, containerID string) error {
	id := strings.TrimPrefix(containerID, "containerd://")
	if output, err := n.ctr(ctx, "tasks", "kill", "--signal", "SIGKILL", id).CombinedOutput(); err != nil {
		return fmt.Errorf("killing container %s: %w\n%s", id, err, output)
	}
	return nil
}

func (n *Node) ctr(ctx context.Context, words ...string) *exec.Cmd {
	return n.Command(ctx, "ctr", append([]string{"--address", containerdSocket, "--namespace", "k8s.io"}, words...)...)
}

// loadPause gives the node the image that every pod has beside its own.
func (n *Node) loadPause(ctx context.Context, log io.Writer) (err error) {
	builder, err := image.NewBuilder(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, builder.Close()) }()
	pause, err := builder.Pause(ctx)
	if err != nil {
		return err
	}
	return n.Load(ctx, pause)
}
