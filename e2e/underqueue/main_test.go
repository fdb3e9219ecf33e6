// Package underqueue_test is elastic_training_job under a queue: the real terraform, the provider in this process, and
// an embedded cluster whose queue controller is in Kueue's place. What terraform plans and says of a job that waits in
// its queue, and that nothing of it stays when it is destroyed, is checked from outside. How such a job trains is
// checked in package training, and the whole of it by the scenario in package scenario.
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
		return simcluster.Main(m, &cluster, simcluster.Nodes(2, "8", "32Gi"), simcluster.Image(image, trainer), simcluster.Image("debian", controlplane.HostImage), simcluster.Queueing(), simcluster.PodSecurity("baseline"),
			simcluster.AuditPolicy(filepath.Join("testdata", "audit.yaml")))
	})
}
