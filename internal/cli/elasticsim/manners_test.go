package elasticsim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clitest"
)

func newTestRoot() *cobra.Command { return NewRoot("test") }

func TestManners(t *testing.T) { clitest.Manners(t, newTestRoot) }

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
	clitest.Completes(t, newTestRoot, map[string]clitest.Completion{
		"commands":                          clitest.Offered([]string{"co"}, []string{"compare", "completion", "conformance"}, noFiles),
		"a scenario":                        clitest.Offered([]string{"run", ""}, yaml, files),
		"no second scenario to run":         clitest.Offered([]string{"run", "a.yaml", ""}, nil, noFiles),
		"a page":                            clitest.Offered([]string{"run", "a.yaml", "-o", ""}, []string{"html"}, files),
		"a log":                             clitest.Offered([]string{"run", "a.yaml", "--log", ""}, []string{"jsonl"}, files),
		"no file for a seed":                clitest.Offered([]string{"run", "a.yaml", "--seed", ""}, nil, noFiles),
		"scenarios side by side":            clitest.Offered([]string{"compare", "a.yaml", "b.yaml", ""}, yaml, files),
		"a log to audit":                    clitest.Offered([]string{"audit", ""}, []string{"jsonl"}, files),
		"recordings":                        clitest.Offered([]string{"conformance", ""}, []string{"json", "jsonl", "gz"}, files),
		"jobs":                              clitest.Offered([]string{"forecast", "-f", ""}, []string{"yaml", "yml", "json"}, files),
		"a snapshot":                        clitest.Offered([]string{"forecast", "--snapshot", ""}, []string{"json", "gz", "yaml", "yml"}, files),
		"a snapshot to write":               clitest.Offered([]string{"snapshot", "-o", ""}, []string{"json", "gz"}, files),
		"contexts":                          clitest.Offered([]string{"forecast", "--context", ""}, []string{"production", "staging"}, noFiles),
		"contexts of another file":          clitest.Offered([]string{"forecast", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "--context", ""}, nil, noFiles),
		"a kubeconfig":                      clitest.Offered([]string{"forecast", "--kubeconfig", ""}, nil, anyFile),
		"what a forecast cannot do without": clitest.Offered([]string{"forecast", "--fi"}, []string{"--filename"}, noFiles),
	})
}
