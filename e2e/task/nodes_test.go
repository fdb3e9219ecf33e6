package task_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
)

func TestATaskOfTwoNodesStartsAndRestartsTogether(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	enforce(t, ns, "privileged") // host_path
	// The host's directory outlives the pods of the task.
	dir := t.TempDir()
	steps(t, resource.TestStep{
		Config: block(ns, "pair", fmt.Sprintf(`
			num_nodes = 2
			run = <<-EOT
			  echo "rank $SKYPILOT_NODE_RANK of $SKYPILOT_NUM_NODES sees $(echo "$SKYPILOT_NODE_IPS" | wc -l) nodes" | tee -a %[1]s/said
			  if test "$SKYPILOT_NODE_RANK" = 1 && ! test -e %[1]s/failed; then touch %[1]s/failed; exit 1; fi
			  test -e %[1]s/failed || sleep 600
			EOT
			recovery = { max_restarts_on_errors = 1 }
			volumes  = [{ name = "said", mount_path = %[1]q, host_path = %[1]q }]
			wait_for = "succeeded"`, dir)),
		ConfigPlanChecks: planned(plancheck.ResourceActionCreate),
		ConfigStateChecks: []statecheck.StateCheck{
			state("phase", text("Succeeded")), state("restarts", knownvalue.Int64Exact(1)),
			state("logs", text("kubectl logs -n "+ns+" -l "+task.LabelTask+"=pair -c task --tail=-1 --prefix")),
		},
		Check: func(*terraform.State) error {
			var printed []string
			for _, pod := range pods(t.Context(), t, ns, "pair") {
				printed = append(printed, strings.Split(strings.TrimSpace(logOf(t, &pod)), "\n")...)
			}
			for _, want := range []string{"rank 0 of 2 sees 2 nodes", "rank 1 of 2 sees 2 nodes"} {
				if !slices.Contains(printed, want) {
					t.Errorf("%q is missing: %q", want, printed)
				}
			}
			if _, err := client(t).RbacV1().Roles(ns).Get(t.Context(), task.ServiceAccountName("pair"), metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			return nil
		},
	})
}
