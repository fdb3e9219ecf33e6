package elastictrainer

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/python"
)

func newPythonModule() *cobra.Command {
	return &cobra.Command{
		Use:   "python-module DIR",
		Short: "Write the Python module that training scripts import",
		Long: `Write the Python module ` + python.Module + ` in DIR, for editors, type checkers and
tests of scripts. Scripts that a worker runs do not need this: the worker provides the
module.`,
		Example:           "  elastic-trainer python-module src",
		Args:              cli.NeedsArguments("DIR"),
		ValidArgsFunction: cli.FirstArgument(cli.Directories),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := python.Install(args[0]); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(args[0], python.Module))
			return nil
		},
	}
}
