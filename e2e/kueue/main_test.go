// Package kueue_test tests this project's types and CRDs of Kueue's API on a real API server: it compares the objects
// that the CRDs accept and reject with package validation, and uses the typed client with the functions of package
// cluster.
package kueue_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/crd"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/crds"
)

// crdsVariable names a folder with Kueue's own CRDs, which are then installed instead of ours: the same has to hold.
const crdsVariable = "KUEUE_CRDS"

// cluster is the embedded cluster of all tests, with the CRDs and without Kueue.
var cluster *simcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(simcluster.Main(withCRDs{m}, &cluster, simcluster.Nodes(1, "4", "8Gi")))
}

// withCRDs installs the CRDs before the tests run.
type withCRDs struct{ *testing.M }

func (m withCRDs) Run() int {
	ctx, cancel := context.WithTimeout(context.Background(), patience.Medium)
	defer cancel()
	if err := install(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "installing the CRDs:", err)
		return 1
	}
	return m.M.Run()
}

func install(ctx context.Context) error {
	definitions, err := crd.Objects()
	if folder := os.Getenv(crdsVariable); folder != "" {
		definitions, err = crd.Read(os.DirFS(folder))
	}
	if err != nil {
		return err
	}
	config, err := cluster.Config()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		if crd.Version(definition, kueue.SchemeGroupVersion.Version) == nil {
			return fmt.Errorf("%s has no version %s", definition.GetName(), kueue.SchemeGroupVersion.Version)
		}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := crds.Apply(ctx, client, definitions); err != nil {
		return err
	}
	return crds.AwaitServed(ctx, client, definitions)
}
