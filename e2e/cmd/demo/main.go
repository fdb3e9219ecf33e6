// Command demo runs one of the scenarios on an embedded cluster and prints what happens. It ends with a summary and a
// timeline, and leaves no process behind. `make demo` and `make demo-queues` build what it needs and run it in the
// repository's root.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario/embedded"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

var (
	errInterrupted = errors.New("interrupted; the cluster is stopped and everything is cleaned up")
	errViolated    = errors.New("not all assertions of the scenario hold")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	terminal := newTerminal(os.Stdout)
	stopNotice := context.AfterFunc(ctx, func() {
		stop() // a second ^C ends this process at once, and the cluster with it
		terminal.printf("\nInterrupted: running terraform destroy, then stopping the cluster. This takes some seconds.")
	})
	err := cli.RunContext(ctx, newRoot(func(sc scenario.Scenario) error { return demo(ctx, terminal, sc) }), os.Args[1:])
	stopNotice()
	stop()
	os.Exit(cli.Code(err))
}

// newRoot is the command that runs a scenario.
func newRoot(run func(scenario.Scenario) error) *cobra.Command {
	scenarios := scenario.Scenarios(scenario.ForDemo)
	var names, lines []string
	for _, sc := range scenarios {
		names = append(names, sc.Name)
		lines = append(lines, fmt.Sprintf("  %-19s %s", sc.Name, sc.Title))
	}
	root := &cobra.Command{
		Use:   "demo [SCENARIO]",
		Short: "Run a scenario on an embedded cluster",
		Long: `Run a scenario on an embedded cluster and print what happens. At the end there are a
summary and the path of a page with a timeline. No process is left behind. Without an
argument, the first scenario runs:

` + strings.Join(lines, "\n") + `

make demo builds the programs that this needs and sets their paths in $SIMCLUSTER_BIN,
$ELASTIC_TRAINER_BIN and $TERRAFORM_PROVIDER_BIN. With $MNIST_DIR, a directory with
MNIST's IDX files, the jobs train on those instead of synthetic digits. NO_COLOR=1
switches colours off.`,
		Example: `  make demo
  SCENARIO=chaos make demo
  bin/demo chaos`,
		Args: cli.NeedsArguments("[SCENARIO]"),
		ValidArgsFunction: cli.FirstArgument(func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return cli.Beginning(typed, names)
		}),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return run(scenarios[0])
			}
			at := slices.Index(names, args[0])
			if at < 0 {
				return cli.UsageError("there is no scenario %q; there are %s", args[0], strings.Join(names, ", "))
			}
			return run(scenarios[at])
		},
	}
	cli.Exits(root, 0, "all assertions of the scenario hold")
	cli.Exits(root, cli.Failed, "an assertion failed, or the scenario could not run")
	cli.Configure(root)
	return root
}

func demo(ctx context.Context, terminal *terminal, sc scenario.Scenario) error {
	backend, err := embedded.Find()
	if err != nil {
		return err
	}
	tools, err := scenario.FindTools()
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	terminal.printf("%s\n\n%s\n", sc.Title, sc.About)
	var reporter scenario.Reporter
	outcome, err := scenario.Run(ctx, sc, backend, scenario.Options{
		Tools:    tools,
		Root:     root,
		Out:      scenario.OutDir(root, sc.Name),
		MNISTDir: os.Getenv("MNIST_DIR"),
		Logf:     terminal.printf,
		Observe: func(event eventlog.Event) {
			for _, line := range reporter.Lines(event) {
				terminal.line(line)
			}
		},
	})
	switch {
	case ctx.Err() != nil:
		if outcome.Page != "" {
			terminal.printf("Timeline of the interrupted run: %s", outcome.Page)
		}
		return errInterrupted
	case err != nil:
		return err
	}
	terminal.summary(outcome.Events, sc.Assertions, outcome.Violations)
	terminal.ending(sc, outcome, scenario.Scenarios(scenario.ForDemo))
	if len(outcome.Violations) > 0 {
		return errViolated
	}
	return nil
}
