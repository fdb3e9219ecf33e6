// Package clusterflags has the flags by which a command is told its cluster, as kubectl has them.
//
// It is apart from package cli for elastic-trainer in pods, which has no client of a cluster.
package clusterflags

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// Names of the flags.
const (
	Kubeconfig = "kubeconfig"
	Context    = "context"
)

// Flags say which cluster a command uses. Without values they mean the cluster that kubectl would use.
type Flags struct{ kubeconfig, context string }

// Register adds the flags to a command, with their completions.
func (f *Flags) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.kubeconfig, Kubeconfig, "", "kubeconfig `file` (default $KUBECONFIG, then ~/.kube/config)")
	c.Flags().StringVar(&f.context, Context, "", "context of the kubeconfig (default the current one)")
	cli.CompleteFiles(c, Kubeconfig)
	cli.CompleteFlag(c, Context, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		names, err := cluster.ContextNames(f.kubeconfig)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return cli.Beginning(typed, names)
	})
}

// Connect makes the client of a program, without a request.
func (f *Flags) Connect(program string) (*cluster.Client, error) {
	kubeconfigs, err := cluster.KubectlConfigs(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := cluster.New(cluster.Config{Kubeconfigs: kubeconfigs, Context: f.context, UserAgent: program})
	return client, Explained(err)
}

// Explained is an error of the cluster in words; nil stays nil.
func Explained(err error) error {
	if err == nil {
		return nil
	}
	var config *cluster.ConfigError
	if errors.As(err, &config) && errors.Is(err, fs.ErrNotExist) { // which the provider explains by its own attributes
		return fmt.Errorf("Cannot connect as configured: %w; check --%s and $KUBECONFIG", config, Kubeconfig) //nolint:staticcheck // begins as the summaries of package cluster do
	}
	summary, detail := cluster.Explain(err)
	return fmt.Errorf("%s: %s", summary, detail)
}
