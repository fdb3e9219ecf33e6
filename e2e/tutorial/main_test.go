// Package tutorial_test runs the commands of ElasticDL's tutorial on elastic scheduling, exactly as printed there, with
// `elastic-trainer submit` and with the provider's function elasticdl_args, on an embedded cluster of the tutorial's
// size.
package tutorial_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

// cluster has three nodes of 4 CPU and 15 GB, of which less is available to pods, as on GKE.
var cluster *simcluster.Cluster

// trainer is the program, also that of the trainer's image.
var trainer string

// records are few enough for a test of seconds, and enough that the second job comes before the first has ended.
const records = 16000

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if err := providertest.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return program.WithTrainer(func(path string) int {
		trainer = path
		return simcluster.Main(prepared{m}, &cluster, simcluster.Allocatable("3.92"), simcluster.Image(trainingjob.ImageRepository, trainer),
			simcluster.PodSecurity("baseline"))
	})
}

// prepared runs the tests when the cluster has what the tutorial's has.
type prepared struct{ m *testing.M }

func (p prepared) Run() int {
	client, err := cluster.Client()
	if err == nil {
		err = prepare(context.Background(), client, "default", trainer, filepath.Join(cluster.Dir, "records"), records)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return p.m.Run()
}
