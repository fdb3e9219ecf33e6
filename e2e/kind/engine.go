package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"
)

// providerVariable names the engine, for kind and for us.
const providerVariable = "KIND_EXPERIMENTAL_PROVIDER"

// ErrNoEngine is that of FindEngine on a machine without a container engine that answers.
var ErrNoEngine = errors.New("no container engine answers")

// Engine is a container engine in which kind can make clusters.
type Engine struct {
	command string // its command line client
}

// FindEngine finds the engine that kind would take: the one of KIND_EXPERIMENTAL_PROVIDER, or the first of docker
// (DOCKER_HOST is its own variable), nerdctl and podman. Unlike kind it asks whether the engine answers, so that a
// client without a daemon is no engine.
func FindEngine(ctx context.Context) (Engine, error) {
	candidates := []string{"docker", "nerdctl", "podman"}
	if named := os.Getenv(providerVariable); named != "" {
		candidates = []string{named}
	}
	var tried []string
	for _, command := range candidates {
		if _, err := exec.LookPath(command); err != nil {
			tried = append(tried, command+" is not installed")
			continue
		}
		engine := Engine{command: command}
		if _, err := engine.run(ctx, answerLimit, "info"); err != nil {
			if ctx.Err() != nil {
				return Engine{}, context.Cause(ctx)
			}
			tried = append(tried, command+" has no daemon that answers")
			continue
		}
		return engine, nil
	}
	return Engine{}, fmt.Errorf("%w: %s", ErrNoEngine, strings.Join(tried, ", "))
}

// Limits of the requests to an engine.
const (
	answerLimit = 20 * time.Second
	nodeLimit   = time.Minute
)

// String is the engine's name.
func (e Engine) String() string { return e.command }

// provider is the engine for kind.
func (e Engine) provider() cluster.ProviderOption {
	switch e.command {
	case "docker":
		return cluster.ProviderWithDocker()
	case "podman":
		return cluster.ProviderWithPodman()
	default: // finch and nerdctl.lima are other names of nerdctl
		return cluster.ProviderWithNerdctl(e.command)
	}
}

// run runs a command of the engine's client and returns what it printed.
func (e Engine) run(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var output, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, e.command, args...)
	cmd.Stdout, cmd.Stderr = &output, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %s", limit)
		}
		return "", fmt.Errorf("%s %s: %w: %s", e.command, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return output.String(), nil
}
