package main

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
)

func TestManners(t *testing.T) {
	clitest.Manners(t, func() *cobra.Command { return newRoot(func(options) error { return nil }) })
}

func TestFlagsBehindTheCommandAreTheCommands(t *testing.T) {
	var got options
	root := newRoot(func(o options) error {
		got = o
		return nil
	})
	root.SetArgs([]string{"--workers", "1", "-o", "there", "sh", "-c", "true", "--workers", "2", "--help"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"sh", "-c", "true", "--workers", "2", "--help"}; got.workers != 1 || got.out != "there" || !slices.Equal(got.command, want) {
		t.Errorf("%+v", got)
	}
}

func TestACommandIsWanted(t *testing.T) {
	root := newRoot(func(options) error { return nil })
	root.SetArgs([]string{"--workers", "1"})
	if err := root.ExecuteContext(t.Context()); cli.Code(err) != cli.Usage {
		t.Error(err)
	}
}
