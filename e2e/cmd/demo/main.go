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
	"strings"
	"syscall"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario/embedded"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
)

var (
	errInterrupted = errors.New("interrupted; the cluster is stopped and everything is cleaned up")
	errBroken      = errors.New("the story did not keep all of its promises")
)

func main() {
	story, err := chosen(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	terminal := newTerminal(os.Stdout)
	said := context.AfterFunc(ctx, func() {
		stop() // a second ^C ends this process at once, and the cluster with it
		terminal.say("\nInterrupted: terraform destroy, then the cluster stops. This takes some seconds.")
	})
	err = demo(ctx, terminal, story)
	said()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// chosen is the story that the arguments name; the first one without arguments.
func chosen(args []string) (scenario.Story, error) {
	all := scenario.Stories(scenario.ToWatch)
	if len(args) == 0 {
		return all[0], nil
	}
	var names []string
	for _, story := range all {
		if len(args) == 1 && args[0] == story.Name {
			return story, nil
		}
		names = append(names, story.Name)
	}
	return scenario.Story{}, fmt.Errorf("there is no story %q; usage: demo [%s]", strings.Join(args, " "), strings.Join(names, " | "))
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
		return errInterrupted
	case err != nil:
		return err
	}
	terminal.summary(outcome.Events, story.Promises, outcome.Violations)
	terminal.say("\nThe picture: %s", outcome.Page)
	if len(outcome.Violations) > 0 {
		return errBroken
	}
	return nil
}
