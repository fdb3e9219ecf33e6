package elasticsim

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// state is the state of a cluster, of an API server or of a file.
type state struct {
	*forecast.Snapshot
	runtime func(kind, namespace, name string) (*unstructured.Unstructured, error)
	// details reads what is to be known of training jobs besides, as far as it may be read. A file has it already.
	details func([]types.NamespacedName) (map[types.NamespacedName]forecast.TrainingJob, error)
	// asks is the API server that is asked by dry runs; nil if none is.
	asks asked
}

// asked is an API server that is asked by dry runs.
type asked interface {
	// dryRun asks it what it would make of jobs.
	dryRun(ctx context.Context, jobs []forecast.Job) []forecast.Job
	// replacements makes forecasts again if it rejects pods that controllers would create in the place of victims.
	replacements(ctx context.Context, on *forecast.Snapshot, answers []forecast.Answer, again func(*forecast.Snapshot) []forecast.Answer) []forecast.Answer
}

// checkSnapshot checks the flags that --snapshot needs or excludes.
func (f *forecastFlags) checkSnapshot(flags *pflag.FlagSet) error {
	if f.snapshot == "" {
		if f.asOf != "" {
			return cli.UsageError("--as-of is the time of a --snapshot, which is missing; a cluster is read as it is now")
		}
		return nil
	}
	for _, name := range []string{"kubeconfig", "context"} {
		if flags.Changed(name) {
			return cli.UsageError("--snapshot and --%s are mutually exclusive: with a snapshot no cluster is contacted", name)
		}
	}
	if flags.Changed("no-dry-run") && !f.noDryRun {
		return cli.UsageError("--snapshot and --no-dry-run=false are mutually exclusive: a dry run needs a cluster")
	}
	return nil
}

// state reads the cluster, or the snapshot file.
func (f forecastFlags) state(ctx context.Context, in io.Reader) (state, error) {
	if f.snapshot != "" {
		return f.stateOfFile(in)
	}
	return f.stateOfCluster(ctx)
}

func (f forecastFlags) stateOfFile(in io.Reader) (state, error) {
	var asOf time.Time
	var err error
	if f.asOf != "" {
		if asOf, err = time.Parse(time.RFC3339, f.asOf); err != nil {
			return state{}, cli.UsageError("--as-of=%q: use a time in RFC 3339, such as 2026-11-21T10:04:07Z", f.asOf)
		}
	}
	var file *snapshot.File
	if f.snapshot != "-" {
		file, err = snapshot.Open(f.snapshot, asOf)
	} else if file, err = snapshot.Parse(in, asOf); err != nil {
		err = fmt.Errorf("snapshot on standard input: %w", err)
	}
	if err != nil {
		return state{}, err
	}
	return state{
		Snapshot: file.Snapshot, runtime: file.Runtime,
		details: func([]types.NamespacedName) (map[types.NamespacedName]forecast.TrainingJob, error) { return nil, nil },
	}, nil
}
