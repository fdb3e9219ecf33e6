package simcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/kubeversion"
)

const (
	// BinaryVariable names the simcluster program, where it is not to be built.
	BinaryVariable = "SIMCLUSTER_BIN"

	module = "github.com/elastic-training/terraform-provider-elastic/simcluster"

	// buildPatience bounds a build: from nothing it takes about ten minutes on two cores.
	buildPatience = 30 * time.Minute
	// buildReport is the time between two signs of life of a build.
	buildReport = 30 * time.Second
)

// Binary returns the path of the simcluster program: $SIMCLUSTER_BIN, or bin/simcluster beside the simcluster module,
// which it brings up to date. From nothing that takes minutes, so progress hears of it every half a minute. It must be
// called with a working directory within the simcluster module, or one that requires it from a checkout, as e2e does.
func Binary(ctx context.Context, progress io.Writer) (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("$%s: %w", BinaryVariable, err)
		}
		if info.IsDir() || info.Mode()&0o111 == 0 {
			return "", fmt.Errorf("$%s: %q is not an executable file", BinaryVariable, path)
		}
		return filepath.Abs(path)
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding the module %s, to build simcluster: %w; run this within the simcluster or e2e folder of the repository, or set $%s", module, withStderr(err), BinaryVariable)
	}
	dir := strings.TrimSpace(string(root))
	bin := filepath.Join(filepath.Dir(dir), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("building simcluster: %w", err)
	}
	target := filepath.Join(bin, "simcluster")
	// Test binaries of several packages run at the same time.
	lock := flock.New(filepath.Join(bin, ".simcluster.lock"))
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return "", fmt.Errorf("waiting for another build of simcluster: %w", err)
	}
	return target, errors.Join(build(ctx, dir, target, progress), lock.Unlock())
}

// buildArguments are the flags with which simcluster is built everywhere; other flags would compile Kubernetes anew.
func buildArguments(target string) []string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(kubeversion.Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const version = "k8s.io/component-base/version"
	// Without its version the API server calls itself v0.0.0-master, which kubectl cannot parse.
	ldflags := fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s -X %[1]s.gitTreeState=clean",
		version, kubeversion.Version, major, minor)
	return []string{"build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", ldflags, "-o", target, "./cmd/simcluster"}
}

func build(ctx context.Context, dir, target string, progress io.Writer) error {
	command := exec.CommandContext(ctx, "go", buildArguments(target)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	begin := time.Now()
	if err := command.Start(); err != nil {
		return fmt.Errorf("building simcluster: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	ticker := time.NewTicker(buildReport)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("building simcluster: %w\n%s", err, output.Bytes())
			}
			return nil
		case <-ticker.C:
			// Only for people; a build does not fail because nobody listens.
			_, _ = fmt.Fprintf(progress, "building simcluster for %s; the first time takes about ten minutes, because it compiles Kubernetes\n", time.Since(begin).Round(time.Second))
		}
	}
}

func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}
