// Package training_test is the trainer on a cluster: jobs as internal/api/trainingjob renders them, on the API server,
// scheduler and controllers of an embedded cluster, with the real master and workers as pods. Whatever happens to
// workers, nodes, queues and API server, a job ends with the model that the same job gives on one machine.
package training_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// cluster is shared by all tests, each of which has a namespace of its own.
var cluster *simcluster.Cluster

// trainer is the program of the trainer's image.
var trainer string

// The nodes: jobs run on the stable ones, and one test has the volatile ones for itself.
const (
	image    = "elastic-trainer"
	idler    = "idler" // what others run in the queues
	stable   = "stable"
	volatile = "volatile"
	nodeKind = "kind"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	group := func(kind string, count int) simcluster.Option {
		return simcluster.NodeGroup(controlplane.NodeGroup{Name: kind, Count: count, CPU: "16", Memory: "64Gi", Labels: map[string]string{nodeKind: kind}})
	}
	queues := simcluster.Kueue()
	if os.Getenv(soakVariable) != "" { // its tests run alone, and one of them needs boosts that Kueue reads
		queues = simcluster.KueueFeatureGates("PriorityBoost=true")
	}
	return program.WithTrainer(func(path string) int {
		trainer = path
		return simcluster.Main(m, &cluster, group(stable, 2), group(volatile, 2),
			simcluster.Image(image, trainer), simcluster.Image(idler, sleep), queues, simcluster.PodSecurity("baseline"))
	})
}
