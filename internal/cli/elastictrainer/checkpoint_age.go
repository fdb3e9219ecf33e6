//go:build !podsonly || checkpointage

package elastictrainer

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	rule "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/checkpointage"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/kube"
)

// checkpointAge is the controller of boosts.
func checkpointAge() []*cobra.Command { return []*cobra.Command{newCheckpointAge()} }

func newCheckpointAge() *cobra.Command {
	var c computeFlags
	var dryRun string
	config := checkpointage.Config{Rule: rule.Default}
	cmd := &cobra.Command{
		Use:   "checkpoint-age",
		Short: "Make Kueue evict first the workloads that lose the least work",
		Long: `Set the annotation kueue.x-k8s.io/priority-boost of Workloads by the age of their last
checkpoints. Among Workloads of a priority class, Kueue then evicts first the one with
the most recent checkpoint. Requires Kueue's feature gate PriorityBoost (v0.17, alpha).

A job takes part if its Job, its pods or its Workload have the annotation
elastic-training.github.io/last-checkpoint-time, with the time of the last checkpoint
(RFC 3339). Before the first checkpoint the value is empty, and the age is the time
since the admission. An elastic_training_job sets the annotation; for other jobs, set it
yourself:

  kubectl annotate --overwrite job/NAME \
    elastic-training.github.io/last-checkpoint-time=$(date -u +%FT%TZ)

For a Workload with quota, the boost is the time since its last checkpoint divided by
--step, and at most --max. --max must be less than the smallest difference between two
priorities, so that a boost never lets one class preempt another. A Workload without
quota has no boost, so its position in the queue does not change. The command does not
change boosts that another client has set.

Run one replica in a pod: examples/rbac/checkpoint-age.yaml contains a Deployment and
the required permissions. While the command does not run, boosts do not change.`,
		Example: `  elastic-trainer checkpoint-age --dry-run
  elastic-trainer checkpoint-age --step 2m --max 60`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := config.Rule.Check(nil); err != nil {
				return cli.UsageError("--step, --max or --hold: %v", err)
			}
			if config.Every < time.Second {
				return cli.UsageError("--interval=%s: use at least 1s", config.Every)
			}
			if config.DryRun = dryRun == "client"; dryRun != "none" && !config.DryRun {
				return cli.UsageError("--dry-run=%s: use client or none", dryRun)
			}
			if config.Log, err = c.logger(cmd.ErrOrStderr()); err != nil {
				return err
			}
			if config.REST, err = kube.PodConfig(os.Getenv("ELASTIC_ROOT")); err != nil {
				return err
			}
			return checkpointage.Run(cmd.Context(), config)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&config.Rule.Step, "step", config.Rule.Step, "unsaved time that adds 1 to the boost")
	f.Int32Var(&config.Rule.Max, "max", config.Rule.Max, "maximum boost; must be less than the smallest difference between two priorities")
	f.DurationVar(&config.Rule.Hold, "hold", config.Rule.Hold, "minimum time between two changes of a running Workload's boost")
	f.DurationVar(&config.Every, "interval", rule.DefaultEvery, "time between two updates of all boosts; the command reacts to evictions immediately")
	f.StringVar(&dryRun, "dry-run", "none", "client: only log the boosts; none: set them")
	f.Lookup("dry-run").NoOptDefVal = "client"
	cli.CompleteFrom(cmd, "dry-run", "client", "none")
	c.registerLevel(cmd)
	return cmd
}
