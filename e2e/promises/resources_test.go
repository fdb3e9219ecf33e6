package promises_test

import (
	"os"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

// TestEveryResourceIsAppliedPlansNothingMoreAndLeavesNothing applies one configuration with all of the resources.
func TestEveryResourceIsAppliedPlansNothingMoreAndLeavesNothing(t *testing.T) {
	every := config(t, "every-resource.tf")
	documented, err := os.ReadDir(root + "/examples/resources")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range documented {
		if !strings.Contains(every, "\nresource \""+kind.Name()+"\" ") {
			t.Errorf("testdata/every-resource.tf has no %s", kind.Name())
		}
	}
	admin, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	r, _ := terminal(t)
	before := providertest.ListObjects(t, admin)
	destroyAtTheEnd(t, r, every)
	succeeds(t, r, every, "apply", "-auto-approve")
	r.ExpectNoChanges(t, every)
	succeeds(t, r, every, "destroy", "-auto-approve")
	before.ExpectNoOthers(t, admin)
}
