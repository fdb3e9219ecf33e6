package elasticsim

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clusterflags"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
)

// clusterFlags say which cluster a command reads, and for how long.
type clusterFlags struct {
	clusterflags.Flags
	timeout time.Duration
}

func (f *clusterFlags) add(c *cobra.Command) {
	f.Register(c)
	c.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "time limit for reading the cluster and for computing")
	cli.NotNegative(c, "timeout")
}

// connect makes the client, without a request.
func (f *clusterFlags) connect() (*cluster.Client, error) { return f.Connect("elastic-sim") }

// explained is an error of reading the cluster in words.
func explained(err error) error {
	var forbidden *snapshot.ForbiddenError
	if errors.As(err, &forbidden) {
		return forbidden
	}
	return clusterflags.Explained(err)
}
