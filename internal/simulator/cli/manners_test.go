package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/commandline/commandlinetest"
)

func newTestRoot() *cobra.Command { return NewRoot("test") }

func TestManners(t *testing.T) { commandlinetest.Manners(t, newTestRoot) }

func TestCompletion(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncontexts:\n- {name: staging, context: {cluster: a}}\n- {name: production, context: {cluster: b}}\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	const (
		noFiles = cobra.ShellCompDirectiveNoFileComp
		anyFile = cobra.ShellCompDirectiveDefault
		files   = cobra.ShellCompDirectiveFilterFileExt
	)
	yaml := []string{"yaml", "yml"}
	commandlinetest.Completes(t, newTestRoot, map[string]commandlinetest.Completion{
		"commands":                          commandlinetest.Offered([]string{"co"}, []string{"compare", "completion", "conform"}, noFiles),
		"a scenario":                        commandlinetest.Offered([]string{"run", ""}, yaml, files),
		"no second scenario to run":         commandlinetest.Offered([]string{"run", "a.yaml", ""}, nil, noFiles),
		"a page":                            commandlinetest.Offered([]string{"run", "a.yaml", "-o", ""}, []string{"html"}, files),
		"a log":                             commandlinetest.Offered([]string{"run", "a.yaml", "--log", ""}, []string{"jsonl"}, files),
		"no file for a seed":                commandlinetest.Offered([]string{"run", "a.yaml", "--seed", ""}, nil, noFiles),
		"scenarios side by side":            commandlinetest.Offered([]string{"compare", "a.yaml", "b.yaml", ""}, yaml, files),
		"recordings":                        commandlinetest.Offered([]string{"conform", ""}, []string{"json", "jsonl", "gz"}, files),
		"jobs":                              commandlinetest.Offered([]string{"forecast", "-f", ""}, []string{"yaml", "yml", "json"}, files),
		"contexts":                          commandlinetest.Offered([]string{"forecast", "--context", ""}, []string{"production", "staging"}, noFiles),
		"contexts of another file":          commandlinetest.Offered([]string{"forecast", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "--context", ""}, nil, noFiles),
		"a kubeconfig":                      commandlinetest.Offered([]string{"forecast", "--kubeconfig", ""}, nil, anyFile),
		"what a forecast cannot do without": commandlinetest.Offered([]string{"forecast", "--fi"}, []string{"--filename"}, noFiles),
	})
}
