// Package kueue_test tests this project's types and rules for Kueue's API with the real Kueue: it compares the objects that its
// CRDs and webhooks accept and reject with package validation, and uses the typed client with the functions of package
// cluster.
package kueue_test

import (
	"os"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

// cluster is the embedded cluster of most tests.
var cluster *simcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(simcluster.Main(m, &cluster, simcluster.Nodes(1, "4", "8Gi"), simcluster.Kueue()))
}
