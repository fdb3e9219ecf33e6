// Package underqueue_test tests elastic_training_job with a queue: the real terraform, the provider in this process,
// and an embedded cluster with the simulated queue controller. It checks the plans and messages for a job that waits in
// its queue, and that a destroy leaves nothing. Package training tests how such a job trains, and a scenario of package
// scenario tests both together.
package underqueue_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// cluster is shared by all tests, each of which has a namespace and a queue of its own.
var cluster *simcluster.Cluster

// image is the trainer's, and trainer the program that stands for it.
const image = "elastic-trainer"

// hostImage is one whose command runs on this machine.
const hostImage = "docker.io/library/debian:stable-slim"

var trainer string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := providertest.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return program.WithTrainer(func(path string) int {
		trainer = path
		return simcluster.Main(m, &cluster, simcluster.Nodes(2, "8", "32Gi"), simcluster.Image(image, trainer), simcluster.Image("debian", controlplane.HostImage), simcluster.Kueue(), simcluster.PodSecurity("baseline"),
			simcluster.AuditPolicy(filepath.Join("testdata", "audit.yaml")))
	})
}
