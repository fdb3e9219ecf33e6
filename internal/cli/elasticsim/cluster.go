//go:build !offline

package elasticsim

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clusterflags"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
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

// onlineCommands are those that only read clusters.
func onlineCommands() []*cobra.Command { return []*cobra.Command{newSnapshot()} }

// readPlanned reads a planned resource of this project's provider.
func readPlanned(ctx context.Context, resourceType string, attributes []byte, flavors func(namespace, queue string) []map[string]string) (*forecast.Job, runtime.Object, error) {
	read, err := provider.ReadPlanned(ctx, "", resourceType, attributes, flavors)
	return read.Job, read.Object, err
}

func (f forecastFlags) stateOfCluster(ctx context.Context) (state, error) {
	client, err := f.connect()
	if err != nil {
		return state{}, err
	}
	s, err := readCluster(ctx, client)
	if err != nil {
		return state{}, err
	}
	of := state{
		Snapshot: s,
		runtime: func(kind, namespace, name string) (*unstructured.Unstructured, error) {
			return snapshot.ReadRuntime(ctx, client, kind, namespace, name)
		},
		details: func(names []types.NamespacedName) (map[types.NamespacedName]forecast.TrainingJob, error) {
			return readJobs(ctx, client, names)
		},
	}
	if !f.noDryRun {
		of.asks = server{client}
	}
	return of, nil
}

// readCluster reads what forecasts need, and Kueue's objects if it is installed.
func readCluster(ctx context.Context, client *cluster.Client) (*forecast.Snapshot, error) {
	s, err := snapshot.Read(ctx, client)
	if err != nil {
		return nil, explained(err)
	}
	if s.Queues, err = snapshot.ReadQueues(ctx, client); err != nil && !errors.Is(err, snapshot.ErrNoKueue) {
		return nil, explained(err)
	}
	return s, nil
}

// readJobs reads the ConfigMaps of training jobs, as far as that is allowed.
func readJobs(ctx context.Context, client *cluster.Client, names []types.NamespacedName) (map[types.NamespacedName]forecast.TrainingJob, error) {
	known, err := snapshot.ReadJobs(ctx, client, names)
	return known, explained(err)
}

// server is an API server that is asked by dry runs.
type server struct{ *cluster.Client }

func (s server) dryRun(ctx context.Context, jobs []forecast.Job) []forecast.Job {
	return snapshot.DryRun(ctx, s.Client, jobs)
}

func (s server) replacements(ctx context.Context, on *forecast.Snapshot, answers []forecast.Answer, again func(*forecast.Snapshot) []forecast.Answer) []forecast.Answer {
	return snapshot.DryRunReplacements(ctx, s.Client, on, answers, again)
}
