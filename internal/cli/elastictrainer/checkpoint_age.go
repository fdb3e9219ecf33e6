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
elastic-training.github.io/last-checkpoint-time: the time of the last checkpoint
(RFC 3339), or an empty value before the first one. The age then counts from the
admission. elastic_training_job sets it. Set it on other jobs yourself:

  kubectl annotate --overwrite job/NAME \
    elastic-training.github.io/last-checkpoint-time=$(date -u +%FT%TZ)

A Workload with quota gets 1 for each --step of unsaved time, up to --max. --max must be
less than the distance between any two priorities, so that a boost never changes which
class may preempt which. A Workload without quota has no boost, and keeps its place in
the queue. A priority-boost that another client has set is not changed.

Run one replica, in a pod: examples/rbac/checkpoint-age.yaml has a Deployment with the
permissions that it needs. While it does not run, boosts stay as they are.`,
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
				return cli.UsageError("--dry-run=%s: it is client or none", dryRun)
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
	f.Int32Var(&config.Rule.Max, "max", config.Rule.Max, "maximum boost, less than the distance between two priorities")
	f.DurationVar(&config.Rule.Hold, "hold", config.Rule.Hold, "minimum time between two changes of a running Workload's boost")
	f.DurationVar(&config.Every, "interval", rule.DefaultEvery, "how often ages are compared; evictions are noticed at once")
	f.StringVar(&dryRun, "dry-run", "none", "log the boosts instead of setting them: client or none")
	f.Lookup("dry-run").NoOptDefVal = "client"
	cli.CompleteFrom(cmd, "dry-run", "client", "none")
	c.registerLevel(cmd)
	return cmd
}
