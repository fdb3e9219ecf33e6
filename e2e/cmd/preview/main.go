// Command preview simulates a scenario file and draws it in the terminal and on an HTML page. `make demo` shows it before
// the first build of the control plane, so it must itself compile in less than a minute: it imports the simulator, and
// no client of a cluster.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/timeline"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

func main() { os.Exit(cli.Code(cli.Run(newRoot(), os.Args[1:]))) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "preview SCENARIO PAGE",
		Short: "Simulate a scenario file and draw it, in the terminal and on an HTML page",
		Long: `Simulate a scenario file and draw it: in the terminal a row for each pod, and on an HTML
page a timeline. make demo shows this before its first build.`,
		Example: `  bin/preview examples/scenarios/queue-priorities.yaml page.html`,
		Args:    cli.NeedsArguments("SCENARIO", "PAGE"),
		RunE:    func(c *cobra.Command, args []string) error { return preview(c, args[0], args[1]) },
	}
	cli.Exits(root, 0, "done")
	cli.Exits(root, cli.Failed, "failed")
	cli.Configure(root)
	return root
}

func preview(c *cobra.Command, file, page string) error {
	s, err := scenariofile.ReadFile(file)
	if err != nil {
		return err
	}
	var builder eventlog.Builder
	log := func(event eventlog.Event) error {
		builder.Add(event)
		return nil
	}
	if _, err := simulator.Run(c.Context(), s, simulator.Options{Log: log}); err != nil {
		return err
	}
	history := builder.History()
	if err := writePage(page, s, history); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "%s, simulated. %s\n\n%s\nTimeline, for a browser: %s\n", s.Name, s.Description, draw(history), page)
	return nil
}

func writePage(path string, s *scenariofile.Scenario, history *eventlog.History) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	f, err := os.Create(filepath.Clean(path))
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	shown := timeline.Page{Title: s.Name, Text: s.Description, Simulated: true}
	if err := errors.Join(shown.Render(f, history), f.Close()); err != nil {
		return fmt.Errorf("write the page %s: %w", path, err)
	}
	return nil
}
