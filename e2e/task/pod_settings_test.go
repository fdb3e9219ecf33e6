package task_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
)

func TestInitContainersRunBeforeATask(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	const fetched = `
		volumes         = [{ name = "in", mount_path = "/fetched", empty_dir = {} }]
		init_containers = [
		  { name = "first", command = ["sh", "-c"], args = ["echo one > /into/words"], volume_mounts = [{ name = "in", mount_path = "/into" }] },
		  {
		    name          = "second"
		    command       = ["sh", "-c", "echo \"two by $WHO\" >> /into/words"]
		    env           = { WHO = "you" }
		    volume_mounts = [{ name = "in", mount_path = "/into" }]
		    resources     = { requests = { cpu = "100m" } }
		  },
		]
		security_context = {
		  run_as_user                = 1000
		  run_as_group               = 1000
		  run_as_non_root            = true
		  fs_group                   = 1000
		  supplemental_groups        = [2000, 3000]
		  seccomp_profile            = { type = "RuntimeDefault" }
		  read_only_root_filesystem  = true
		  allow_privilege_escalation = false
		  capabilities               = { drop = ["ALL"] }
		}
		run      = "cat /fetched/words"
		wait_for = "succeeded"`
	steps(t,
		resource.TestStep{
			Config:            block(ns, "fetched", fetched),
			ConfigPlanChecks:  planned(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Succeeded"))},
			Check: func(*terraform.State) error {
				found := pods(t.Context(), t, ns, "fetched")
				if len(found) != 1 {
					t.Fatalf("%d pods", len(found))
				}
				if printed := logOf(t, &found[0]); !strings.Contains(printed, "one\ntwo by you\n") {
					t.Errorf("it printed %q", printed)
				}
				spec := found[0].Spec
				if s := spec.SecurityContext; *s.RunAsUser != 1000 || *s.FSGroup != 1000 || !slices.Equal(s.SupplementalGroups, []int64{2000, 3000}) || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
					t.Errorf("the pod's security context is %v", s)
				}
				for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
					if s := c.SecurityContext; s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
						t.Errorf("the security context of container %s is %v", c.Name, s)
					}
				}
				return nil
			},
		},
		resource.TestStep{
			ResourceName: address, ImportState: true, ImportStateId: ns + "/fetched", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			ImportStateVerifyIgnore: []string{"timeouts", "wait_for"},
		},
		resource.TestStep{ // another order of what has none, and what means nothing, is no other task
			Config: block(ns, "fetched", strings.NewReplacer("[2000, 3000]", "[3000, 2000]", `cpu = "100m"`, `cpu = "0.1"`,
				`args = ["echo one > /into/words"],`, `args = ["echo one > /into/words"], env = {},`).Replace(fetched)),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, plancheck.ResourceActionNoop)}},
		},
	)
}

func TestAnInitContainerThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r := providertest.NewTerminal(t)
	config := block(ns, "fails", `
		init_containers = [{ name = "fetch", command = ["sh", "-c", "echo no such bucket; exit 7"] }]
		wait_for = "succeeded"`)
	t.Cleanup(func() { r.Run(t, config, "destroy", "-auto-approve") })
	printed, code := r.Run(t, config, "apply", "-auto-approve")
	if code != 0 {
		t.Errorf("apply exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, "Task "+ns+"/fails has failed", "container fetch exited with code 7", "no such bucket")
}

// patchJob changes a task's Job as another client does.
func patchJob(t *testing.T, ns, name, patch string) {
	t.Helper()
	if _, err := client(t).BatchV1().Jobs(ns).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
}

func TestATaskThatTakesTooLongFails(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	var uid string
	steps(t,
		resource.TestStep{
			Config:            block(ns, "slow", "active_deadline_seconds = 3600\n wait_for = \"running\""),
			ConfigPlanChecks:  planned(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{state("active_deadline_seconds", knownvalue.Int64Exact(3600)), state("phase", text("Running"))},
			Check:             func(*terraform.State) error { uid = string(job(t, ns, "slow").UID); return nil },
		},
		resource.TestStep{ // another client deletes it: it is planned again
			PreConfig: func() { patchJob(t, ns, "slow", `{"spec":{"activeDeadlineSeconds":null}}`) },
			Config:    block(ns, "slow", "active_deadline_seconds = 3600\n wait_for = \"running\""), ConfigPlanChecks: planned(plancheck.ResourceActionUpdate),
		},
		resource.TestStep{ // in place, and at once where it has passed
			Config:            block(ns, "slow", "active_deadline_seconds = 1\n wait_for = \"succeeded\"\n recovery = { max_restarts_on_errors = 3 }"),
			ConfigPlanChecks:  planned(plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Failed")), state("reason", knownvalue.StringRegexp(regexp.MustCompile("DeadlineExceeded")))},
			Check: func(*terraform.State) error {
				if live := job(t, ns, "slow"); string(live.UID) != uid {
					t.Errorf("the task was replaced")
				}
				return nil
			},
		},
	)
}

func TestATaskThatCannotStartIsAWarning(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	r := providertest.NewTerminal(t)
	config := block(ns, "nowhere", `node_selector = { nowhere = "nobody" }`)
	t.Cleanup(func() { r.Run(t, config, "destroy", "-auto-approve") })
	for _, command := range [][]string{{"apply", "-auto-approve"}, {"plan"}} {
		printed, code := r.Run(t, config, command...)
		if code != 0 {
			t.Errorf("%v exited with %d:\n%s", command, code, printed)
		}
		providertest.ExpectText(t, printed, "Task "+ns+"/nowhere cannot start", "cannot be scheduled", "didn't match Pod's node affinity/selector")
	}
}
