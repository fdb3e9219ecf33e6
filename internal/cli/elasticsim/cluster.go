package elasticsim

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
)

// clusterFlags say which cluster a command reads.
type clusterFlags struct {
	kubeconfig, context string
	timeout             time.Duration
}

// clusterFlagNames are the names of those that a snapshot file excludes.
var clusterFlagNames = []string{"kubeconfig", "context"}

func (f *clusterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default $KUBECONFIG, then ~/.kube/config)")
	c.Flags().StringVar(&f.context, "context", "", "context of the kubeconfig (default the current one)")
	c.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "time limit for reading the cluster and for computing")
	cli.NotNegative(c, "timeout")
	cli.CompleteFiles(c, "kubeconfig")
	cli.CompleteFlag(c, "context", f.contexts)
}

// contexts completes by those of the kubeconfig.
func (f *clusterFlags) contexts(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, err := cluster.ContextNames(f.kubeconfig)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cli.Beginning(typed, names)
}

// connect makes the client, without a request.
func (f *clusterFlags) connect() (*cluster.Client, error) {
	kubeconfigs, err := cluster.KubectlConfigs(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := cluster.New(cluster.Config{Kubeconfigs: kubeconfigs, Context: f.context, UserAgent: "elastic-sim"})
	if err != nil {
		return nil, explained(err)
	}
	return client, nil
}

// explained is an error of the cluster in words.
func explained(err error) error {
	var forbidden *snapshot.ForbiddenError
	if errors.As(err, &forbidden) {
		return forbidden
	}
	summary, detail := cluster.Explain(err)
	return fmt.Errorf("%s: %s", summary, detail)
}
