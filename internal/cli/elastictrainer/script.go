package elastictrainer

import (
	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/framework"
)

func newScript() *cobra.Command {
	var shared string
	cmd := &cobra.Command{
		Use:   "script",
		Short: "Run the master's copy of a job's script",
		Long: `What the second container of a master's pod runs when the job has a command: the
master's copy of the script. It has neither the master's token of the API server nor
the job's key, and shares one directory with the master's container.`,
		Example: "  elastic-trainer script --shared " + trainingjob.ScriptSharedDir,
		Args:    cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return framework.Host(cmd.Context(), shared, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&shared, "shared", trainingjob.ScriptSharedDir, "`directory` shared with the master's container")
	cli.Exits(cmd, 0, "asked to stop")
	return cmd
}
