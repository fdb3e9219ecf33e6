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

// outFolder is the folder of the runs below e2e/out.
const outFolder = "kind"

// TestScenariosOnKind runs every scenario of the catalogue on one kind cluster, each as a feature. `make e2e-kind` runs
// it.
func TestScenariosOnKind(t *testing.T) {
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
	for _, sc := range scenario.Scenarios(scenario.ForTests) {
		feature := features.New(sc.Name).Assess("its assertions hold", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			if ctx.Err() != nil {
				t.Fatalf("it did not run: %v", context.Cause(ctx)) // skipped, an interrupted run would have passed
			}
			scenario.RunInTest(t, sc, backend, root, filepath.Join(outFolder, sc.Name))
			return ctx
		})
		environment.Test(t, feature.Feature())
	}
}
