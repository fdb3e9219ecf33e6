package image_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/e2e/image"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

const root = "../.."

// compiled is the trainer for an architecture, from this work tree.
func compiled(t *testing.T, root, architecture string) []byte {
	t.Helper()
	binary, err := image.Compile(t.Context(), root, source, architecture)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func anEngine(t *testing.T) image.Engine {
	t.Helper()
	engine, err := image.FindEngine(t.Context())
	if errors.Is(err, image.ErrNoEngine) {
		t.Skipf("the image is not run: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func TestACommitBuiltInAnotherFolderGivesTheSameSmallBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the trainer again")
	}
	elsewhere := filepath.Join(t.TempDir(), "a clone of another name")
	for _, part := range []string{"cmd/elastic-trainer", "internal", "python"} {
		if err := os.CopyFS(filepath.Join(elsewhere, part), os.DirFS(filepath.Join(root, part))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err := errors.Join(err, os.WriteFile(filepath.Join(elsewhere, file), data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, architecture := range image.Architectures() {
		here := compiled(t, root, architecture)
		t.Setenv("GOAMD64", "v3") // another machine's settings must not reach what is published
		t.Setenv("GOARM64", "v8.1")
		there := compiled(t, elsewhere, architecture)
		if !bytes.Equal(here, there) {
			t.Errorf("linux/%s: the binaries differ", architecture)
		}
		built, err := image.Trainer(source, architecture, there)
		if err != nil {
			t.Fatal(err)
		}
		size, err := image.SizeOf(built)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("linux/%s: %d bytes to download, %d unpacked", architecture, size.Compressed, size.Unpacked)
		if size.Compressed >= 12e6 || size.Unpacked >= 25e6 {
			t.Errorf("linux/%s: %d bytes to download, %d unpacked; 12 MB and 25 MB are the limits", architecture, size.Compressed, size.Unpacked)
		}
	}
}

var modelHash = regexp.MustCompile(`(?m)^sha256 +([0-9a-f]{64})$`)

func TestEnginesAreFoundByWhatTheirClientsAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		docker, podman string // shell programs, or "" where the client is not installed
		want           image.Engine
		answers        []string // where no engine is found
	}{
		"docker": {docker: "echo 29.1.0 linux/arm64", podman: "echo 5.0.0 linux/amd64", want: image.Engine{Client: "docker", Version: "29.1.0", Architecture: "arm64"}},
		"podman where docker's server is away": {
			docker: "echo Cannot connect to the Docker daemon >&2; exit 1", podman: "echo 5.0.0 linux/arm64/v8",
			want: image.Engine{Client: "podman", Version: "5.0.0", Architecture: "arm64"},
		},
		"no client":         {answers: []string{"docker: not installed", "podman: not installed"}},
		"no server":         {docker: "echo Cannot connect >&2; exit 1", answers: []string{"docker: exit status 1: Cannot connect"}},
		"another system":    {docker: "echo 29.1.0 windows/amd64", answers: []string{"windows/amd64, not for Linux"}},
		"an unknown answer": {docker: "echo hello", answers: []string{`answered "hello"`}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			for client, program := range map[string]string{"docker": test.docker, "podman": test.podman} {
				if program == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, client), []byte("#!/bin/sh\n"+program+"\n"), 0o700); err != nil { //nolint:gosec // a program
					t.Fatal(err)
				}
			}
			engine, err := image.FindEngine(t.Context())
			if engine != test.want || errors.Is(err, image.ErrNoEngine) != (test.answers != nil) {
				t.Fatalf("%v, %v", engine, err)
			}
			for _, answer := range test.answers {
				if !strings.Contains(err.Error(), answer) {
					t.Errorf("%v does not say %q", err, answer)
				}
			}
		})
	}
}

func TestAnEngineThatRefusesAnArchiveIsNamedWithTheImage(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	err := image.Engine{Client: "false"}.Load(t.Context(), tag, trainer(t, source, "amd64"))
	if err == nil || !strings.Contains(err.Error(), tag.Name()) || !strings.Contains(err.Error(), "into false") {
		t.Errorf("error %v", err)
	}
}

func TestTheImageTrainsWithAReadOnlyRootAndNoPrivilegesToTheModelOfTheBinaryAlone(t *testing.T) {
	engine := anEngine(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx := t.Context()
	binary := compiled(t, root, engine.Architecture)
	built, err := image.Trainer(source, engine.Architecture, binary)
	if err != nil {
		t.Fatal(err)
	}
	test := load(t, engine, built)

	version := run(t, engine, test, nil, "--version")
	if !strings.Contains(version, source.Version) {
		t.Errorf("--version says %q", version)
	}
	if help := run(t, engine, test, nil); !strings.Contains(help, "elastic-trainer [command]") {
		t.Errorf("without arguments it says %q", help)
	}

	model, err := os.ReadFile(filepath.Join(root, "examples", "models", "mnist_functional_api.py"))
	if err != nil {
		t.Fatal(err)
	}
	training := func(folder string) []string {
		return []string{
			"train", "--model-file", filepath.Join(folder, "model.py"), "--train-data-dir", "synthetic://digits?records=100&seed=1",
			"--output", filepath.Join(folder, "model"), "--num-worker", "2", "--grads-to-wait", "2",
		}
	}
	inContainer := modelHash.FindStringSubmatch(run(t, engine, test, model, training(image.Output)...))
	if inContainer == nil {
		t.Fatal("the training in the container named no model")
	}

	if engine.Architecture != runtime.GOARCH {
		t.Skipf("the model is not compared: %s is of another architecture than this process", engine)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "elastic-trainer")
	if err := errors.Join(os.WriteFile(program, binary, 0o700), os.WriteFile(filepath.Join(dir, "model.py"), model, 0o600)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, program, training(dir)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	if alone := modelHash.FindStringSubmatch(string(out)); alone == nil || alone[1] != inContainer[1] {
		t.Errorf("the container's model is %s; beside it: %s", inContainer[1], out)
	}
}

// load puts an image into the engine for one test, under a name of its own.
func load(t *testing.T, engine image.Engine, built v1.Image) (test name.Tag) {
	t.Helper()
	test = mustTag(fmt.Sprintf("elastic.test/%s:%d", strings.ToLower(t.Name()), os.Getpid()))
	if err := engine.Load(t.Context(), test, built); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience.Short)
		defer cancel()
		if err := engine.Untag(ctx, test); err != nil {
			t.Error(err)
		}
	})
	return test
}

// run runs the image to its end, with a model file if it is not nil, and returns what it printed.
func run(t *testing.T, engine image.Engine, test name.Tag, model []byte, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Long)
	defer cancel()
	container, err := engine.Create(ctx, test, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := container.Remove(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	if model != nil {
		if err := container.Put(ctx, "model.py", model); err != nil {
			t.Fatal(err)
		}
	}
	out, err := container.Start(ctx).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", arguments, err, out)
	}
	return string(out)
}
