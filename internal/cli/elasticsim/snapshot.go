//go:build !offline

package elasticsim

import (
	"compress/gzip"
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
)

// snapshotFlags are those of elastic-sim snapshot.
type snapshotFlags struct {
	clusterFlags
	output    string
	anonymize bool
}

func newSnapshot() *cobra.Command {
	var f snapshotFlags
	c := &cobra.Command{
		Use:   "snapshot -o FILE",
		Short: "Write what forecasts read of a cluster to a file",
		Long: `Read a cluster and write what forecasts need to know of it to a file, from which
"elastic-sim forecast --snapshot FILE" and the data source elastic_forecast make
forecasts without the cluster: in CI, later, or in a bug report. From a file no dry run
is made, and TrainingRuntimes are not in it: put them into the job file. It needs the
permissions of a forecast (ClusterRole elastic-forecaster), and changes nothing.

The file is a list of Kubernetes objects in JSON, one a line, compressed if its name
ends in .gz. It has no Secrets, and of ConfigMaps only Kueue's configuration and the
progress of training jobs. Environments, commands, probes, parameters of volume
drivers, and annotations that no forecast reads are left out.

With --anonymize names, images and the values of labels are replaced as well, equal
words by equal ones, and long numbers by others in the same order. What remains are
amounts, times, priorities, names of resources, labels' keys of public projects, and
numbers of up to three digits. A job file for such a snapshot uses the replaced names of
classes, queues and labels.`,
		Example: `  elastic-sim snapshot -o cluster.json.gz
  elastic-sim snapshot -o - --anonymize --context production | less
  elastic-sim forecast --snapshot cluster.json.gz -f job.yaml`,
		Args: cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	c.Flags().StringVarP(&f.output, "output", "o", "", "`file` to write; - for standard output (required)")
	c.Flags().BoolVar(&f.anonymize, "anonymize", false, "replace names, images and values of labels")
	f.add(c)
	cli.Require(c, "output")
	cli.CompleteFiles(c, "output", "json", "gz")
	cli.Exits(c, cli.Failed, "the cluster could not be read, or the file not written")
	return c
}

func (f snapshotFlags) run(ctx context.Context, stdout io.Writer) error {
	client, err := f.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	s, err := readCluster(ctx, client)
	if err != nil {
		return err
	}
	if s.Jobs, err = readJobs(ctx, client, s.TrainingJobs()); err != nil {
		return err
	}
	write := snapshot.Write
	if f.anonymize {
		write = snapshot.WriteAnonymized
	}
	if f.output == "-" {
		return write(stdout, s)
	}
	return writeFile(f.output, func(out io.Writer) error { return write(out, s) })
}

// writeFile writes a file, compressed if its name says so. Only its owner may read it: it shows a whole cluster.
func writeFile(name string, write func(io.Writer) error) error {
	return cli.WriteFile(name, 0o600, func(out io.Writer) error {
		if !strings.HasSuffix(name, ".gz") {
			return write(out)
		}
		zipped := gzip.NewWriter(out)
		return firstOf(write(zipped), zipped.Close())
	})
}
