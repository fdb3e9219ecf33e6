package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Architectures are those that the trainer is published for.
func Architectures() []string { return []string{"amd64", "arm64"} }

// Compile builds the static trainer for linux on an architecture from the repository in root, whose go.mod is the
// provider's, and returns the binary. It needs Go; the flags are those of all builds here, so that the build cache is
// shared.
func Compile(ctx context.Context, root string, source Source, architecture string) (binary []byte, err error) {
	dir, err := os.MkdirTemp("", "elastic-trainer-")
	if err != nil {
		return nil, fmt.Errorf("build elastic-trainer for linux/%s: %w", architecture, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out := filepath.Join(dir, "elastic-trainer")
	tags := "grpcnotrace,podsonly" // in pods nobody submits jobs, and the commands for that would make the image larger than 25 MB
	if source.Tags != "" {
		tags += "," + source.Tags
	}
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags="+tags, "-buildvcs=false",
		"-ldflags=-s -w -X main.version="+source.Version, "-o", out, "./cmd/elastic-trainer")
	c.Dir = root
	// What the environment says of processors must not reach the binary.
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("build elastic-trainer for linux/%s in %s: %w: %s", architecture, root, err, strings.TrimSpace(output.String()))
	}
	binary, err = os.ReadFile(out)
	if err != nil {
		return nil, fmt.Errorf("build elastic-trainer for linux/%s: %w", architecture, err)
	}
	return binary, nil
}
