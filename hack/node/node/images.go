// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/queueworker/operator/hack/node/image"
)

// Load gives the node images, which pods then use by name.
func (n *Node) Load(ctx context.Context, images ...image.Image) error {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(image.Write(writer, images...)) }()
	cmd := n.Command(ctx, "ctr", "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", "-")
	var output bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = reader, &output, &output
	err := cmd.Run()
	_ = reader.Close() // ends the writer, should ctr have ended early
	if err != nil {
		return fmt.Errorf("loading images: %w\n%s", err, output.String())
	}
	return nil
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
