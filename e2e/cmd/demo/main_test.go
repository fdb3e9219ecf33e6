package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
)

func TestManners(t *testing.T) {
	clitest.Manners(t, func() *cobra.Command { return newRoot(func(scenario.Scenario) error { return nil }) })
}

func TestDemoRunsTheNamedScenario(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"none named":              {nil, "elastic-scheduling", 0},
		"one of them":             {[]string{"chaos"}, "chaos", 0},
		"one that there is not":   {[]string{"peace"}, "", cli.Usage},
		"two":                     {[]string{"chaos", "chaos"}, "", cli.Usage},
		"a flag that there isn't": {[]string{"--scenario=chaos"}, "", cli.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			ran := ""
			root := newRoot(func(s scenario.Scenario) error {
				ran = s.Name
				return nil
			})
			root.SetOut(io.Discard)
			root.SetArgs(append([]string{}, c.args...))
			if err := root.ExecuteContext(t.Context()); cli.Code(err) != c.code || ran != c.want {
				t.Errorf("ran %q: %v", ran, err)
			}
		})
	}
}

func TestEndingHasTheResultAndFurtherReading(t *testing.T) {
	scenarios := scenario.Scenarios(scenario.ForDemo)
	for name, c := range map[string]struct {
		violations []scenario.Violation
		want       string
	}{
		"all hold":  {nil, scenarios[0].Summary},
		"one fails": {[]scenario.Violation{{Assertion: scenarios[0].Assertions[0].Text}}, fmt.Sprintf("1 of %d assertions FAILED", len(scenarios[0].Assertions))},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			(&terminal{w: &out}).ending(scenarios[0], scenario.Outcome{Page: "out/timeline.html", Violations: c.violations}, scenarios)
			for _, want := range []string{c.want, "out/timeline.html", "examples/tutorials/elastic-scheduling", "docs/guides/elastic-scheduling.md", "SCENARIO=chaos"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), "SCENARIO=elastic-scheduling") {
				t.Errorf("the scenario that ran is listed among the others:\n%s", &out)
			}
		})
	}
}

func TestColumnsFitTheLongestNameSeen(t *testing.T) {
	var out bytes.Buffer
	terminal := &terminal{w: &out, jobs: map[string]string{}, jobWidth: usualJobWidth, whoWidth: usualWhoWidth}
	for _, line := range []scenario.Line{
		{Job: "elastic-min-a7a56fa8", Object: "min 0 8cmr2", Text: "HERE"},
		{At: time.Minute, Job: "elastic", Object: "master", Text: "HERE"},
		{At: time.Hour, Text: "HERE"},
	} {
		terminal.line(line)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines {
		if strings.Index(line, "HERE") != strings.Index(lines[0], "HERE") {
			t.Errorf("the columns differ:\n%s", &out)
		}
	}
}
