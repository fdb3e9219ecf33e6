// Package underqueue_test is elastic_training_job under a queue: the real terraform, the provider in this process, and an
// embedded cluster whose queue controller is in Kueue's place. What terraform plans and says of a job that waits in its
// queue, and that nothing of it stays when it is destroyed, is checked from outside. How such a job trains is checked in
// package training, and the whole of it by the story in package scenario.
package underqueue_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertesting"
	"github.com/elastic-training/terraform-provider-elastic/e2e/simcluster"
)

// cluster is shared by all tests, each of which has a namespace and a queue of its own.
var cluster *simcluster.Cluster

// image is the trainer's, and trainer the program that stands for it.
const image = "elastic-trainer"

var trainer string

// trainerVariable names a trainer that is built already.
const trainerVariable = "ELASTIC_TRAINER_BIN"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	if err := providertesting.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	trainer = os.Getenv(trainerVariable)
	if trainer == "" {
		dir, err := os.MkdirTemp("", "underqueue-")
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
		trainer = filepath.Join(dir, "elastic-trainer")
		build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", trainer, "./cmd/elastic-trainer")
		build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
		if printed, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the trainer: %v\n%s", err, printed)
			return 1
		}
	}
	return simcluster.Main(m, &cluster, simcluster.Nodes(2, "8", "32Gi"), simcluster.Image(image, trainer), simcluster.Queueing())
}
