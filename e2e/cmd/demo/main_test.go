package main

import (
	"bytes"
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
	clitest.Manners(t, func() *cobra.Command { return newRoot(func(scenario.Story) error { return nil }) })
}

func TestTheStoryIsTheOneThatIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
		code int
	}{
		"none named":              {nil, "elastic-scheduling", 0},
		"one of them":             {[]string{"chaos"}, "chaos", 0},
		"one that there is not":   {[]string{"peace"}, "", cli.Usage},
		"two":                     {[]string{"chaos", "chaos"}, "", cli.Usage},
		"a flag that there isn't": {[]string{"--story=chaos"}, "", cli.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			told := ""
			root := newRoot(func(s scenario.Story) error {
				told = s.Name
				return nil
			})
			root.SetOut(io.Discard)
			root.SetArgs(append([]string{}, c.args...))
			if err := root.ExecuteContext(t.Context()); cli.Code(err) != c.code || told != c.want {
				t.Errorf("told %q: %v", told, err)
			}
		})
	}
}

func TestTheEndingSaysTheResultAndWhereToGoOn(t *testing.T) {
	stories := scenario.Stories(scenario.ToWatch)
	for name, c := range map[string]struct {
		violations []scenario.Violation
		want       string
	}{
		"kept":   {nil, stories[0].Moral},
		"broken": {[]scenario.Violation{{Rule: stories[0].Promises[0].Text}}, "some were not kept"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			(&terminal{w: &out}).ending(stories[0], scenario.Outcome{Page: "out/timeline.html", Violations: c.violations}, stories)
			for _, want := range []string{c.want, "out/timeline.html", "examples/tutorials/elastic-scheduling", "docs/guides/elastic-scheduling.md", "STORY=chaos"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in:\n%s", want, &out)
				}
			}
			if strings.Contains(out.String(), "STORY=elastic-scheduling") {
				t.Errorf("the story that was told is offered once more:\n%s", &out)
			}
		})
	}
}

func TestColumnsFitTheLongestNameSeen(t *testing.T) {
	var out bytes.Buffer
	terminal := &terminal{w: &out, jobs: map[string]string{}, jobWidth: usualJobWidth, whoWidth: usualWhoWidth}
	for _, line := range []scenario.Line{
		{Job: "elastic-floor-a7a56fa8", Who: "floor 0 8cmr2", Text: "HERE"},
		{At: time.Minute, Job: "elastic", Who: "master", Text: "HERE"},
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
