package onkind

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kind"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
)

// versionVariable is the trainer's version, and its image's tag; `make` sets it.
const versionVariable = "TRAINER_VERSION"

// outFolder is where the stories leave their files, below e2e/out.
const outFolder = "kind"

// TestTheStoriesAreTrueOnKind tells every story of the catalogue on one kind cluster, each as a feature of it. `make
// e2e-kind` runs it.
func TestTheStoriesAreTrueOnKind(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cluster, err := kind.Attach(ctx, t.Logf)
	if errors.Is(err, kind.ErrNoCluster) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	client, err := klient.NewWithKubeConfigFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	backend, err := New(cluster, client, root, os.Getenv(versionVariable), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if err := backend.Load(ctx, scenario.OutDir(root, outFolder)); err != nil {
		t.Fatal(err)
	}

	environment, err := env.NewWithContext(ctx, envconf.New().WithClient(client).WithNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	for _, story := range scenario.Stories(scenario.Brief) {
		feature := features.New(story.Name).Assess("its promises are kept", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			if ctx.Err() != nil {
				t.Fatalf("it was not told: %v", context.Cause(ctx)) // skipped, an interrupted run would have passed
			}
			scenario.TellInTest(t, story, backend, root, filepath.Join(outFolder, story.Name))
			return ctx
		})
		environment.Test(t, feature.Feature())
	}
}
