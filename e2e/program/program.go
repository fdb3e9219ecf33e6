// Package program builds the programs of the root module for tests of other modules, or finds them in the environment,
// which `make test` sets.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/elastic-training/terraform-provider-elastic"

// Provider is the path of terraform-provider-elastic; one that has to be built is built in dir.
func Provider(ctx context.Context, dir string) (string, error) {
	return program(ctx, "TERRAFORM_PROVIDER_BIN", filepath.Join(dir, "terraform-provider-elastic"), ".")
}

// Trainer is the path of elastic-trainer, as Provider is.
func Trainer(ctx context.Context, dir string) (string, error) {
	return program(ctx, "ELASTIC_TRAINER_BIN", filepath.Join(dir, "elastic-trainer"), "./cmd/elastic-trainer")
}

// WithTrainer is for TestMain: it runs tests with the path of elastic-trainer, and returns their exit code.
func WithTrainer(run func(trainer string) int) (code int) {
	dir, err := os.MkdirTemp("", "elastic-trainer-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	trainer, err := Trainer(context.Background(), dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run(trainer)
}

// Simulator is the path of elastic-sim, built in dir.
func Simulator(ctx context.Context, dir string) (string, error) {
	return program(ctx, "", filepath.Join(dir, "elastic-sim"), "./cmd/elastic-sim")
}

func program(ctx context.Context, variable, file, main string) (string, error) {
	if built := os.Getenv(variable); built != "" {
		if _, err := os.Stat(built); err != nil {
			return "", fmt.Errorf("%s: %w", variable, err)
		}
		return filepath.Abs(built)
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("look for module %s: %w", module, err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=grpcnotrace", "-buildvcs=false", "-o", file, main)
	build.Dir, build.Env = strings.TrimSpace(string(root)), append(os.Environ(), "CGO_ENABLED=0")
	if printed, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", file, err, printed)
	}
	return file, nil
}
