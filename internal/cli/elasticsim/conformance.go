package elasticsim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

func newConformance() *cobra.Command {
	var outcomes, quiet bool
	c := &cobra.Command{
		Use:   "conformance PATH...",
		Short: "Compare the engine with recorded decisions of Kueue",
		Long: `Replay recorded scenarios in the engine and compare its decisions with recorded
decisions of Kueue. A PATH is a .json file (one recording), a .jsonl file (one recording
per line), either of them gzip-compressed (.gz), or a directory of such files.

The command prints one line for each scenario that differs, with the first difference,
and then the number of scenarios that match. It compares only what does not depend on
timing (the "checks" of a recording). For each step: the set of events. For each
workload: state, queue, count, flavors, pod sets, priority and evictions. For each
queue: reserved and borrowed quota.

With --outcomes the command does not compare, but writes the decisions of the engine:
one line {"name": ..., "outcomes": [...]} for each scenario, in the format of
recordings.`,
		Example: `  elastic-sim conformance recordings/ more.jsonl.gz
  elastic-sim conformance --outcomes one.json | jq .outcomes[3].events`,
		Args:              cli.NeedsArguments("PATH..."),
		ValidArgsFunction: cli.Files("json", "jsonl", "gz"),
		RunE: func(cmd *cobra.Command, paths []string) error {
			if outcomes {
				return writeOutcomes(cmd.OutOrStdout(), paths)
			}
			return compare(cmd.OutOrStdout(), paths, quiet)
		},
	}
	c.Flags().BoolVar(&outcomes, "outcomes", false, "write the decisions of the engine instead of comparing")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the count only")
	cli.Exits(c, 0, "all scenarios match")
	cli.Exits(c, cli.Failed, "at least one scenario differs or cannot be read")
	return c
}

// compare prints each scenario that differs, and how many do not.
func compare(out io.Writer, paths []string, quiet bool) error {
	equal, all := 0, 0
	for s, err := range conformance.Read(paths...) {
		if err != nil {
			return err
		}
		all++
		difference := conformance.Difference(s)
		switch {
		case difference == "":
			equal++
		case !quiet:
			fmt.Fprintf(out, "%s: %s\n", s.Name, difference)
		}
	}
	fmt.Fprintf(out, "%d of %d scenarios match\n", equal, all)
	if equal < all {
		return fmt.Errorf("%d of %d scenarios differ", all-equal, all)
	}
	return nil
}

// answer is what the engine decided in a scenario. A scenario that it could not follow to the end has fewer outcomes
// than steps, and an error.
type answer struct {
	Name     string                `json:"name"`
	Outcomes []conformance.Outcome `json:"outcomes"`
	Error    string                `json:"error,omitempty"`
}

func writeOutcomes(out io.Writer, paths []string) error {
	lines := bufio.NewWriter(out)
	encoder := json.NewEncoder(lines)
	encoder.SetEscapeHTML(false)
	for s, err := range conformance.Read(paths...) {
		if err != nil {
			return fmt.Errorf("%w (flushing: %w)", err, lines.Flush())
		}
		a := answer{Name: s.Name}
		var failure error
		if a.Outcomes, failure = conformance.Replay(s); failure != nil {
			a.Error = failure.Error()
		}
		if err := encoder.Encode(a); err != nil {
			return fmt.Errorf("writing the outcomes of %s: %w", s.Name, err)
		}
	}
	return lines.Flush()
}
