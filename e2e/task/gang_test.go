package task_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/gang"
)

// Each rank notes its pod and its addresses. In the first run rank 1 fails after all ranks have noted that the next run
// is their second, and the others never end; in the second all end successfully, rank 0 last.
const ranks = `
echo "$SKYPILOT_NODE_RANK $MY_POD_NAME $SKYPILOT_NUM_NODES $(echo $SKYPILOT_NODE_IPS | wc -w) $(echo "$SKYPILOT_NODE_IPS" | grep -cx "$MY_POD_IP")" >> /shared/log
if mkdir /shared/first-$SKYPILOT_NODE_RANK 2>/dev/null; then
  [ $SKYPILOT_NODE_RANK = 1 ] || exec sleep 600
  while [ ! -d /shared/first-0 ] || [ ! -d /shared/first-2 ]; do sleep 0.1; done
  exit 7
fi
touch /shared/done-$SKYPILOT_NODE_RANK
[ $SKYPILOT_NODE_RANK = 0 ] || exit 0
while [ ! -e /shared/finish ]; do sleep 0.1; done
`

func TestAGangStartsFailsAndRestartsTogether(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	enforce(t, ns, "privileged") // host_path
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	config := block(ns, "gang", fmt.Sprintf(`
  num_nodes     = 3
  supervisor_image = "elastic-trainer"
  recovery      = { max_restarts_on_errors = 1 }
  volumes       = [{ name = "shared", mount_path = "/shared", host_path = %q }]
  setup         = "echo setup >> /shared/log"
  run           = %q
`, shared, ranks))
	notes := func() (setups, runs []string) {
		text, err := os.ReadFile(filepath.Join(shared, "log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			if line == "setup" {
				setups = append(setups, line)
			} else if line != "" {
				runs = append(runs, line)
			}
		}
		return setups, runs
	}
	steps(t,
		resource.TestStep{Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
		resource.TestStep{
			PreConfig: func() {
				await(t, "the end of two of the second run's ranks", func(context.Context) (string, bool) {
					_, runs := notes()
					ended := 0
					for rank := 1; rank < 3; rank++ {
						if _, err := os.Stat(filepath.Join(shared, fmt.Sprintf("done-%d", rank))); err == nil {
							ended++
						}
					}
					return strings.Join(runs, "\n"), ended == 2 && len(runs) == 6
				})
				setups, runs := notes()
				if len(setups) != 4 {
					t.Errorf("setup ran %d times; once in each pod and once in the new one is 4", len(setups))
				}
				pods := map[string]map[string]int{}
				for _, line := range runs {
					f := strings.Fields(line)
					if len(f) != 5 || f[2] != "3" || f[3] != "3" || f[4] != "1" {
						t.Errorf("rank, pod, nodes, addresses, own address: %q", line)
						continue
					}
					if pods[f[0]] == nil {
						pods[f[0]] = map[string]int{}
					}
					pods[f[0]][f[1]]++
				}
				if len(pods["0"]) != 1 || len(pods["1"]) != 2 || len(pods["2"]) != 1 {
					t.Errorf("only the rank that failed gets a new pod: %v", pods)
				}
				if live := job(t, ns, "gang"); live.Status.Failed != 1 || live.Status.Succeeded != 0 {
					t.Errorf("%d failures are counted, and %d ranks complete before the last has ended", live.Status.Failed, live.Status.Succeeded)
				}
				board, err := client(t).CoreV1().ConfigMaps(ns).Get(t.Context(), gang.BoardName("gang"), metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if b, err := gang.Decode(board.Data, 3); err != nil || b.Run.Number != 2 {
					t.Errorf("run %d, %v", b.Run.Number, err)
				}
				if err := os.WriteFile(filepath.Join(shared, "finish"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				await(t, "the end", func(context.Context) (string, bool) {
					live := job(t, ns, "gang")
					return fmt.Sprintf("%+v", live.Status), live.Status.Succeeded == 3
				})
			},
			Config:            config,
			ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Succeeded")), state("restarts", knownvalue.Int64Exact(1))},
		},
	)
}

// The first command of rank 1 fails when all run, and that of rank 2 runs until its pod is deleted. Rank 0 runs only
// once, and ends when both have rejoined it.
const rejoining = `
echo "$SKYPILOT_NODE_RANK $MY_POD_NAME" >> /shared/log
if mkdir /shared/first-$SKYPILOT_NODE_RANK 2>/dev/null; then
  while [ ! -d /shared/first-0 ] || [ ! -d /shared/first-1 ] || [ ! -d /shared/first-2 ]; do sleep 0.1; done
  [ $SKYPILOT_NODE_RANK != 1 ] || exit 7
  [ $SKYPILOT_NODE_RANK != 2 ] || exec sleep 600
else
  touch /shared/again-$SKYPILOT_NODE_RANK
fi
while [ ! -e /shared/again-1 ] || [ ! -e /shared/again-2 ]; do sleep 0.1; done
`

func TestOnlyTheRanksOfAGangThatFailOrAreLostRunAgainWhereTheCommandCanRejoin(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	enforce(t, ns, "privileged") // host_path
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	config := block(ns, "gang", fmt.Sprintf(`
  num_nodes        = 3
  rejoin           = true
  supervisor_image = "elastic-trainer"
  recovery         = { max_restarts_on_errors = 1 }
  volumes          = [{ name = "shared", mount_path = "/shared", host_path = %q }]
  run              = %q
`, shared, rejoining))
	runs := func() map[string][]string {
		text, err := os.ReadFile(filepath.Join(shared, "log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		found := map[string][]string{}
		for line := range strings.Lines(string(text)) {
			if rank, pod, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				found[rank] = append(found[rank], pod)
			}
		}
		return found
	}
	steps(t,
		resource.TestStep{Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
		resource.TestStep{
			PreConfig: func() {
				await(t, "the commands, and rank 1 in its second pod", func(context.Context) (string, bool) {
					found := runs()
					return fmt.Sprint(found), len(found) == 3 && len(found["1"]) == 2
				})
				if err := client(t).CoreV1().Pods(ns).Delete(t.Context(), runs()["2"][0], metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				await(t, "the end", func(context.Context) (string, bool) {
					live := job(t, ns, "gang")
					return fmt.Sprintf("%+v, %v", live.Status, runs()), live.Status.Succeeded == 3
				})
				if found := runs(); len(found["0"]) != 1 || len(found["1"]) != 2 || len(found["2"]) != 2 {
					t.Errorf("the ranks ran in the pods %v", found)
				}
				board, err := client(t).CoreV1().ConfigMaps(ns).Get(t.Context(), gang.BoardName("gang"), metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if b, err := gang.Decode(board.Data, 3); err != nil || b.Run.Number != 1 {
					t.Errorf("run %d, %v", b.Run.Number, err)
				}
			},
			Config:            config,
			ConfigPlanChecks:  resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
			ConfigStateChecks: []statecheck.StateCheck{state("phase", text("Succeeded")), state("restarts", knownvalue.Int64Exact(1))},
		},
	)
}

func TestAGangThatIsSuspendedRunsAgainWhenItIsAdmitted(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	config := block(ns, "gang", `
  num_nodes     = 2
  supervisor_image = "elastic-trainer"
  run           = "exec sleep 600"
`)
	suspend := func(value bool) {
		patch := fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, value)
		if _, err := client(t).BatchV1().Jobs(ns).Patch(t.Context(), "gang", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitRun := func(number int) {
		await(t, fmt.Sprintf("run %d", number), func(ctx context.Context) (string, bool) {
			board, err := client(t).CoreV1().ConfigMaps(ns).Get(ctx, gang.BoardName("gang"), metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			b, err := gang.Decode(board.Data, 2)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%+v", b), b.Run.Number >= number && b.Run.Failure == nil
		})
	}
	steps(t,
		resource.TestStep{Config: config, ConfigPlanChecks: planned(plancheck.ResourceActionCreate)},
		resource.TestStep{
			PreConfig: func() {
				awaitRun(1)
				suspend(true)
				await(t, "the end of all pods", func(ctx context.Context) (string, bool) {
					left := pods(ctx, t, ns, "gang")
					return fmt.Sprintf("%d pods", len(left)), len(left) == 0
				})
				suspend(false)
				awaitRun(2)
				if live := job(t, ns, "gang"); live.Status.Failed != 0 {
					t.Errorf("%d failures are counted for a suspension", live.Status.Failed)
				}
			},
			Config:           config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
	)
}
