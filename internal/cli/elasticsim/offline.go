//go:build offline

package elasticsim

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/audit"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// errOffline is what a program answers that was built without the clients of clusters and the provider, in half of the
// time: `make try` builds one.
var errOffline = errors.New("this elastic-sim, which `make try` has built, reads neither clusters nor resources of the provider elastic in plans: `make elastic-sim` makes one that does")

// clusterFlags has no flags that say which cluster: no cluster is read.
type clusterFlags struct{ timeout time.Duration }

func (f *clusterFlags) add(c *cobra.Command) {
	c.Flags().DurationVar(&f.timeout, "timeout", 30*time.Second, "time limit for computing")
}

func onlineCommands() []*cobra.Command { return nil }

func (forecastFlags) stateOfCluster(context.Context) (state, error) { return state{}, errOffline }

func (auditFlags) ofCluster(context.Context) (audit.Report, error) { return audit.Report{}, errOffline }

func readPlanned(context.Context, string, []byte, func(namespace, queue string) []map[string]string) (*forecast.Job, runtime.Object, error) {
	return nil, nil, errOffline
}
