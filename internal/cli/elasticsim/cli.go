// Package elasticsim is the command line of elastic-sim: the scheduling engine and the simulator. Commands read flags,
// call the packages that do the work, and print.
package elasticsim

import (
	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
)

// Main runs a command line and returns the exit code.
func Main(version string, args []string) int {
	return cli.Code(cli.Run(NewRoot(version), args))
}

// NewRoot returns the root command with all of its commands.
func NewRoot(version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "elastic-sim",
		Short: "Run the scheduling engine without a cluster",
		Long: `elastic-sim predicts what Kueue and kube-scheduler will do: which workloads are
admitted, queued or evicted. It uses the engine behind the forecasts of terraform plan.
"run" and "compare" simulate days of a cluster in seconds and need no cluster;
"forecast", "snapshot" and "audit" read one. No command changes a cluster.`,
		Example: `  elastic-sim run examples/scenarios/elastic-scheduling.yaml -o report.html
  elastic-sim forecast -f job.yaml`,
		Version: version,
	}
	root.AddCommand(newRun(), newCompare(), newCheck(), newConformance(), newForecast(), newAudit())
	root.AddCommand(onlineCommands()...)
	cli.Configure(root)
	return root
}
