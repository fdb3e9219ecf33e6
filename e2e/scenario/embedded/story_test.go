package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// TestTheStoriesKeepTheirPromises tells every story of the catalogue, on MNIST's images when MNIST_DIR names them. Event
// logs and timelines stay below e2e/out.
func TestTheStoriesKeepTheirPromises(t *testing.T) {
	for _, story := range scenario.Stories(scenario.Brief) {
		t.Run(story.Name, func(t *testing.T) { tell(t, story, controlplane.MountsAuto) })
	}
}

// TestTheTutorialsStoryKeepsItsPromisesWhereNoMountNamespaceCanBeEntered has the nodes give containers their volumes in
// the other way.
func TestTheTutorialsStoryKeepsItsPromisesWhereNoMountNamespaceCanBeEntered(t *testing.T) {
	tell(t, scenario.Stories(scenario.Brief)[0], controlplane.MountsRewrite)
}

func tell(t *testing.T, story scenario.Story, mounts string) {
	backend, err := Find()
	if err != nil {
		if os.Getenv(simcluster.BinaryVariable) == "" {
			t.Skipf("the story needs executables: %v", err)
		}
		t.Fatal(err)
	}
	backend.Mounts = mounts
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	scenario.TellInTest(t, story, backend, root, "test-"+story.Name+"-"+mounts)
}
