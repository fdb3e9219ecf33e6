package elasticsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/timeline"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
)

func newCompare() *cobra.Command {
	var seed uint64
	var asJSON bool
	c := &cobra.Command{
		Use:   "compare SCENARIO SCENARIO...",
		Short: "Run several scenarios and compare their metrics",
		Long: `Run scenarios one after the other and print a column of metrics for each. Use it to see
what a queue policy, preemption, more nodes, or elastic jobs instead of gang-scheduled
jobs would change. Compare scenarios that differ in one property only. With --seed, all
of them use the same random numbers.`,
		Example: `  elastic-sim compare examples/scenarios/research-in-gangs.yaml \
      examples/scenarios/research-in-elastic-jobs.yaml
  elastic-sim compare --seed 3 never.yaml lower-priority.yaml`,
		Args:              cli.NeedsArguments("SCENARIO", "SCENARIO..."),
		ValidArgsFunction: scenarios,
		RunE: func(cmd *cobra.Command, paths []string) error {
			var options simulator.Options
			if cmd.Flags().Changed("seed") {
				options.Seed = &seed
			}
			summaries := make([]*simulator.Summary, len(paths))
			for i, path := range paths {
				s, err := load(cmd, path)
				if err != nil {
					return err
				}
				if summaries[i], err = simulate(cmd, s, options); err != nil {
					return err
				}
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(summaries)
			}
			return printTable(cmd.OutOrStdout(), sideBySide(paths, summaries))
		},
	}
	c.Flags().Uint64Var(&seed, "seed", 0, "seed for every scenario; overrides the scenario's seed")
	cli.Seed(c, "seed")
	c.Flags().BoolVar(&asJSON, "json", false, "print the summaries as a JSON list")
	return c
}

// sideBySide has a column for each scenario and a line for each number.
func sideBySide(paths []string, summaries []*simulator.Summary) timeline.Table {
	t := timeline.Table{Title: "Side by side", Columns: []string{""}}
	lines := map[string][]string{}
	var order []string
	put := func(column int, name, value string) {
		if lines[name] == nil {
			lines[name] = slices.Repeat([]string{"–"}, len(summaries))
			order = append(order, name)
		}
		lines[name][column] = value
	}
	priorities := map[int32]bool{}
	for i, s := range summaries {
		t.Columns = append(t.Columns, filepath.Base(paths[i]))
		for _, fact := range facts(s) {
			put(i, fact[0], fact[1])
		}
		for _, w := range s.Waits {
			priorities[w.Priority] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(priorities))
	slices.Reverse(sorted)
	for _, priority := range sorted {
		for i, s := range summaries {
			at := slices.IndexFunc(s.Waits, func(w simulator.Waits) bool { return w.Priority == priority })
			if at < 0 {
				continue
			}
			w := s.Waits[at]
			name := func(what string) string { return fmt.Sprintf("priority %d, %s", priority, what) }
			put(i, name("jobs completed"), endedOf(w))
			put(i, name("waiting p50"), span(w.Waiting.P50))
			put(i, name("waiting p99"), span(w.Waiting.P99))
			put(i, name("turnaround p50"), span(w.Taking.P50))
			put(i, name("turnaround p99"), span(w.Taking.P99))
		}
	}
	for _, name := range order {
		t.Rows = append(t.Rows, append([]string{name}, lines[name]...))
	}
	return t
}
