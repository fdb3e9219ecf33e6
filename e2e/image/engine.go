package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// ErrNoEngine is a machine on which no container engine answers.
var ErrNoEngine = errors.New("no container engine")

// Engine is a container engine that answers, reached by its command-line client: its contexts, DOCKER_HOST and rootless
// sockets count as they do for the user's own commands.
type Engine struct {
	Client       string // "docker" or "podman"
	Version      string // of the server
	Architecture string // of the images it runs, in Go's words
}

func (e Engine) String() string {
	return fmt.Sprintf("%s %s, linux/%s", e.Client, e.Version, e.Architecture)
}

// FindEngine returns the first engine that answers and runs Linux images: docker's, then podman's. The error, which is
// ErrNoEngine, says what each of them answered.
func FindEngine(ctx context.Context) (Engine, error) {
	var answers []string
	for _, client := range []struct{ name, ask, format string }{
		{"docker", "version", "{{.Server.Version}} {{.Server.Os}}/{{.Server.Arch}}"},
		{"podman", "info", "{{.Version.Version}} {{.Version.OsArch}}"},
	} {
		version, platform, err := ask(ctx, client.name, client.ask, "--format", client.format)
		if err != nil {
			answers = append(answers, fmt.Sprintf("%s: %v", client.name, err))
			continue
		}
		architecture, linux := strings.CutPrefix(platform, "linux/")
		if !linux {
			answers = append(answers, fmt.Sprintf("%s: it runs images for %s, not for Linux", client.name, platform))
			continue
		}
		architecture, _, _ = strings.Cut(architecture, "/") // arm64/v8
		return Engine{Client: client.name, Version: version, Architecture: architecture}, nil
	}
	return Engine{}, fmt.Errorf("%w (%s)", ErrNoEngine, strings.Join(answers, "; "))
}

// ask runs a client's command that prints two words.
func ask(ctx context.Context, client string, arguments ...string) (first, second string, err error) {
	if _, err := exec.LookPath(client); err != nil {
		return "", "", errors.New("not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, patience.Short) // a socket-activated one begins now
	defer cancel()
	c := exec.CommandContext(ctx, client, arguments...)
	c.WaitDelay = time.Second
	var output bytes.Buffer
	c.Stderr = &output
	out, err := c.Output()
	if ctx.Err() != nil {
		return "", "", fmt.Errorf("no answer in %v", patience.Short)
	}
	if err != nil {
		return "", "", fmt.Errorf("%w: %s", err, strings.TrimSpace(output.String()))
	}
	words := strings.Fields(string(out))
	if len(words) != 2 {
		return "", "", fmt.Errorf("%q answered %q", c, strings.TrimSpace(string(out)))
	}
	return words[0], words[1], nil
}

// Load puts the image for the engine's architecture into the engine, under a name.
func (e Engine) Load(ctx context.Context, tag name.Tag, image v1.Image) error {
	c := e.command(ctx, "load")
	archive, pipe := io.Pipe()
	var output bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = archive, &output, &output
	written := make(chan error, 1)
	go func() {
		err := WriteDocker(pipe, tag, image)
		_ = pipe.CloseWithError(err)
		written <- err
	}()
	err := c.Run()
	_ = archive.CloseWithError(err) // an engine that stopped reading must not keep the writer
	writing := <-written
	if err != nil {
		return fmt.Errorf("load %s into %s: %w: %s", tag, e.Client, err, strings.TrimSpace(output.String()))
	}
	return writing
}
