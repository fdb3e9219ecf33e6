package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// Container is one made from the image as strictly as a training job's pods run it: read-only root, no capabilities, no
// new privileges, and here no network either. It has a volume at Output.
type Container struct {
	engine Engine
	id     string
}

// Create makes a container that will run the trainer with arguments. The image must be in the engine (Load): nothing is
// pulled. The caller removes the container.
func (e Engine) Create(ctx context.Context, tag name.Tag, arguments ...string) (Container, error) {
	options := []string{
		"create", "--pull=never", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--network=none",
		"--volume=" + Output, tag.Name(),
	}
	id, err := e.output(ctx, append(options, arguments...)...)
	if err != nil {
		return Container{}, fmt.Errorf("create a container of %s: %w", tag, err)
	}
	return Container{engine: e, id: strings.TrimSpace(string(id))}, nil
}

// Put writes a file into Output, before or while the container runs, and whichever machine the engine is on.
func (c Container) Put(ctx context.Context, file string, data []byte) error {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o644, Size: int64(len(data)), Uid: userID, Gid: userID}); err != nil {
		return fmt.Errorf("put %s into a container: %w", file, err)
	}
	_, err := w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("put %s into a container: %w", file, err)
	}
	command := c.engine.command(ctx, "cp", "-", c.id+":"+Output)
	command.Stdin = &archive
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("put %s into a container: %w: %s", path.Join(Output, file), err, bytes.TrimSpace(output))
	}
	return nil
}

// Start is the command that starts the container and ends with it, with the trainer's outputs and exit code.
func (c Container) Start(ctx context.Context) *exec.Cmd {
	return c.engine.command(ctx, "start", "--attach", c.id)
}

// StartedAt is when the engine had started the container's process, by the engine's clock.
func (c Container) StartedAt(ctx context.Context) (time.Time, error) {
	out, err := c.engine.output(ctx, "inspect", "--type=container", "--format={{json .State.StartedAt}}", c.id)
	if err != nil {
		return time.Time{}, fmt.Errorf("when a container started: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, strings.Trim(strings.TrimSpace(string(out)), `"`))
	if err != nil {
		return time.Time{}, fmt.Errorf("when a container started: %w", err)
	}
	return at, nil
}

// Remove ends the container and deletes it with its volume.
func (c Container) Remove(ctx context.Context) error {
	if _, err := c.engine.output(ctx, "rm", "--force", "--volumes", c.id); err != nil {
		return fmt.Errorf("remove a container: %w", err)
	}
	return nil
}

// Untag takes a name, and an image without another one, out of the engine.
func (e Engine) Untag(ctx context.Context, tag name.Tag) error {
	if _, err := e.output(ctx, "rmi", tag.Name()); err != nil {
		return fmt.Errorf("remove %s from %s: %w", tag, e.Client, err)
	}
	return nil
}

func (e Engine) command(ctx context.Context, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, e.Client, arguments...)
}

// output is what a command of the client prints; its error has what it complained of.
func (e Engine) output(ctx context.Context, arguments ...string) ([]byte, error) {
	c := e.command(ctx, arguments...)
	var output bytes.Buffer
	c.Stderr = &output
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", e.Client, arguments[0], err, strings.TrimSpace(output.String()))
	}
	return out, nil
}
