package elasticsim

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

func newCheck() *cobra.Command {
	c := &cobra.Command{
		Use:   "check SCENARIO...",
		Short: "Check scenario files, and say where each can run",
		Long: `Read scenario files and report their mistakes. For each file without mistakes the
command prints whether it can only be simulated, or also be replayed on a cluster, and
which fields prevent a replay, with the reasons. The tests of this project replay the
files of examples/scenarios on embedded clusters.`,
		Example:           "  elastic-sim check examples/scenarios/*.yaml",
		Args:              cli.NeedsArguments("SCENARIO..."),
		ValidArgsFunction: scenarios,
		RunE: func(cmd *cobra.Command, paths []string) error {
			for _, path := range paths {
				s, err := scenariofile.ReadFile(path)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				only := (*scenariofile.NotReplayableError)(nil)
				if !errors.As(s.Replayable(), &only) {
					fmt.Fprintf(out, "%s: can be simulated, and replayed on a cluster\n", path)
					continue
				}
				fmt.Fprintf(out, "%s: can only be simulated\n", path)
				for _, f := range only.Features {
					fmt.Fprintf(out, "  %s: %s\n", f.Field, f.Why)
				}
			}
			return nil
		},
	}
	cli.Exits(c, 0, "no file has a mistake")
	return c
}
