package main

import (
	"context"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
)

func TestManners(t *testing.T) {
	clitest.Manners(t, func() *cobra.Command {
		return newRoot(func(context.Context, options, []measurement, string) error { return nil })
	})
}

func TestOnlyNamesMeasurements(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
		code int
	}{
		"all":                     {nil, namesOf(measurements()), 0},
		"two of them":             {[]string{"--only", "speed,start"}, []string{"speed", "start"}, 0},
		"one that there is not":   {[]string{"--only", "speed,taste"}, nil, cli.Usage},
		"an argument, not a flag": {[]string{"speed"}, nil, cli.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			root := newRoot(func(_ context.Context, _ options, todo []measurement, _ string) error {
				got = namesOf(todo)
				return nil
			})
			root.SetArgs(append([]string{}, c.args...))
			if err := root.ExecuteContext(t.Context()); cli.Code(err) != c.code || !slices.Equal(got, c.want) {
				t.Errorf("%q: %v", got, err)
			}
		})
	}
}
