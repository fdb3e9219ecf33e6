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
		Short: "Run a job's script in a second container of the master's pod",
		Long: `The second container of a master's pod runs this command if the job has a command. It
runs the copy of the script that the master uses. The container has no access to the
master's API token or the job's key, and shares one directory with the master's
container.`,
		Example: "  elastic-trainer script --shared " + trainingjob.ScriptSharedDir,
		Args:    cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return framework.Host(cmd.Context(), shared, cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&shared, "shared", trainingjob.ScriptSharedDir, "`directory` shared with the master's container")
	cli.Exits(cmd, 0, "interrupted")
	return cmd
}
