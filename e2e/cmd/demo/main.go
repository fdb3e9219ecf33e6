// Command demo tells one of the tutorials' stories on an embedded cluster as it happens, ends with a summary and a
// timeline picture, and leaves no process behind. `make demo` and `make demo-queues` build what it needs and run it in
// the repository's root.
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
	errBroken      = errors.New("the story did not keep all of its promises")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	terminal := newTerminal(os.Stdout)
	said := context.AfterFunc(ctx, func() {
		stop() // a second ^C ends this process at once, and the cluster with it
		terminal.say("\nInterrupted: terraform destroy, then the cluster stops. This takes some seconds.")
	})
	err := cli.RunContext(ctx, newRoot(func(story scenario.Story) error { return demo(ctx, terminal, story) }), os.Args[1:])
	said()
	stop()
	os.Exit(cli.Code(err))
}

// newRoot is the command that tells a story.
func newRoot(tell func(scenario.Story) error) *cobra.Command {
	stories := scenario.Stories(scenario.ToWatch)
	var names, lines []string
	for _, story := range stories {
		names = append(names, story.Name)
		lines = append(lines, fmt.Sprintf("  %-19s %s", story.Name, story.Title))
	}
	root := &cobra.Command{
		Use:   "demo [STORY]",
		Short: "Tell a story on an embedded cluster as it happens",
		Long: `Tell a story on an embedded cluster as it happens, and end with a summary and the path
of a page with a timeline. No process is left behind. The first story is told where none
is named:

` + strings.Join(lines, "\n") + `

make demo builds what this needs and says where it is, in $SIMCLUSTER_BIN,
$ELASTIC_TRAINER_BIN and $TERRAFORM_PROVIDER_BIN. With $MNIST_DIR, a directory with
MNIST's IDX files, the jobs train on those instead of synthetic digits. NO_COLOR=1 does
without colours.`,
		Example: `  make demo
  STORY=chaos make demo
  bin/demo chaos`,
		Args: cli.Wants("[STORY]"),
		ValidArgsFunction: cli.FirstArgument(func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return cli.Beginning(typed, names)
		}),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return tell(stories[0])
			}
			at := slices.Index(names, args[0])
			if at < 0 {
				return cli.UsageError("there is no story %q; there are %s", args[0], strings.Join(names, ", "))
			}
			return tell(stories[at])
		},
	}
	cli.Exits(root, 0, "the story kept all of its promises")
	cli.Exits(root, cli.Failed, "it did not, or could not be told")
	cli.Configure(root)
	return root
}

func demo(ctx context.Context, terminal *terminal, story scenario.Story) error {
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
	terminal.say("%s\n\n%s\n", story.Title, story.About)
	var narrator scenario.Narrator
	outcome, err := scenario.Tell(ctx, story, backend, scenario.Options{
		Tools:    tools,
		Root:     root,
		Out:      scenario.OutDir(root, story.Name),
		MNISTDir: os.Getenv("MNIST_DIR"),
		Say:      terminal.say,
		Observe: func(event eventlog.Event) {
			for _, line := range narrator.Tell(event) {
				terminal.line(line)
			}
		},
	})
	switch {
	case ctx.Err() != nil:
		if outcome.Page != "" {
			terminal.say("What was seen until then, as a picture: %s", outcome.Page)
		}
		return errInterrupted
	case err != nil:
		return err
	}
	terminal.summary(outcome.Events, story.Promises, outcome.Violations)
	terminal.ending(story, outcome, scenario.Stories(scenario.ToWatch))
	if len(outcome.Violations) > 0 {
		return errBroken
	}
	return nil
}
