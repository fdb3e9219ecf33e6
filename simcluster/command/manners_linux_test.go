package command

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

func TestManners(t *testing.T) { clitest.Manners(t, NewRoot) }

// What a running cluster knows is requested in simcluster.
func TestCompletionWithoutACluster(t *testing.T) {
	t.Setenv(dirVariable, t.TempDir())
	const noFiles = cobra.ShellCompDirectiveNoFileComp
	clitest.Completes(t, NewRoot, map[string]clitest.Completion{
		"commands":               {Words: []string{""}, Want: []string{"completion", "down", "help", "logs", "node", "status", "up"}, Directive: noFiles},
		"ways to mount":          {Words: []string{"up", "--mounts", ""}, Want: []string{"auto", "namespace", "rewrite"}, Directive: noFiles},
		"an executable":          {Words: []string{"up", "--image", ""}, Directive: cobra.ShellCompDirectiveDefault},
		"a state directory":      {Words: []string{"status", "--dir", ""}, Directive: cobra.ShellCompDirectiveFilterDirs},
		"nodes of no cluster":    {Words: []string{"node", "stop", ""}, Directive: noFiles},
		"pods of no cluster":     {Words: []string{"logs", ""}, Directive: noFiles},
		"no file for a quantity": {Words: []string{"up", "--memory", ""}, Directive: noFiles},
	})
}

func TestWithoutAClusterCommandsSayHowToGetOne(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		env  string
		next string
	}{
		"in the usual directory":                   {args: []string{"status"}, env: dir, next: "`simcluster up`"},
		"in another one":                           {args: []string{"status", "--dir", dir}, next: "`simcluster up --dir " + dir + "`"},
		"in one whose name wants quotes":           {args: []string{"logs", "pod", "--dir", filepath.Join(dir, "it's")}, next: `up --dir '` + dir + `/it'\''s'`},
		"a node":                                   {args: []string{"node", "start", "node-1", "--dir", dir}, next: "simcluster up"},
		"a directory that the environment repeats": {args: []string{"status", "--dir", dir}, env: dir, next: "`simcluster up`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(dirVariable, c.env)
			root := NewRoot()
			root.SetOut(io.Discard)
			root.SetArgs(c.args)
			err := root.ExecuteContext(t.Context())
			if cli.Code(err) != exitNotRunning || !strings.Contains(err.Error(), c.next) {
				t.Errorf("%d: %v", cli.Code(err), err)
			}
		})
	}
}

func TestADeclarationThatCannotBeIsAUsageError(t *testing.T) {
	for name, args := range map[string][]string{
		"a node group with an unknown key": {"up", "--node-group", "colour=red"},
		"nodes said twice":                 {"up", "--nodes", "2", "--node-group", "name=a"},
		"an image that is no file":         {"up", "--image", "a=" + filepath.Join(t.TempDir(), "none")},
		"a way to mount that there is not": {"up", "--mounts", "magic"},
	} {
		t.Run(name, func(t *testing.T) {
			root := NewRoot()
			root.SetArgs(append(args, "--dir", t.TempDir()))
			if err := root.ExecuteContext(t.Context()); cli.Code(err) != cli.Usage {
				t.Error(err)
			}
		})
	}
}

func TestDownWithoutAClusterReportsItAndRemovesNothing(t *testing.T) {
	dir := t.TempDir()
	var output strings.Builder
	root := NewRoot()
	root.SetErr(&output)
	root.SetArgs([]string{"down", "--delete", "--dir", dir})
	if err := root.ExecuteContext(t.Context()); err != nil || !strings.Contains(output.String(), "simcluster up --dir") {
		t.Errorf("%v: %s", err, output.String())
	}
	l, err := controlplane.NewLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := controlplane.ReadStatus(l); !errors.Is(err, controlplane.ErrNoCluster) {
		t.Error(err)
	}
}
