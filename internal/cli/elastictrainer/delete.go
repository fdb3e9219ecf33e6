//go:build !podsonly

package elastictrainer

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clusterflags"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// deleteTimeout is how long the pods of a job may take to end: their grace period, and some time for their nodes.
const deleteTimeout = 2 * time.Minute

func newDelete() *cobra.Command {
	var f clusterFlags
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete training jobs, their pods and all their other objects",
		Long: `Delete training jobs: stop their pods, wait until none is left, and delete the other
objects, including the model in ConfigMap NAME-model. Files in volumes are kept. For a
job that Terraform manages, use "terraform destroy" instead.`,
		Example: "  elastic-trainer delete low-prio-job high-prio-job",
		Args:    cli.NeedsArguments("NAME..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			for _, name := range args {
				job, err := f.find(cmd.Context(), client, name)
				if err != nil {
					return err
				}
				ref := refOf(job)
				ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("the job was not completely deleted after %s; --timeout sets how long to wait", timeout))
				defer cancel()
				if err := jobparts.DeleteJob(ctx, client, trainingjob.LabelJobName, ref); err != nil {
					return clusterflags.Explained(err)
				}
				for _, part := range trainingjob.NamedParts(ref, true, trainingjob.GroupOf(job.Spec.Template.Labels) != "") {
					if err := jobparts.Delete(ctx, client, part, ref); err != nil {
						return clusterflags.Explained(err)
					}
				}
				fmt.Fprintf(cmd.OutOrStdout(), "training job %s/%s deleted\n", ref.Namespace, ref.Name)
			}
			return nil
		},
	}
	f.register(c)
	c.Flags().DurationVar(&timeout, "timeout", deleteTimeout, "how long to wait until the pods have ended")
	cli.NotNegative(c, "timeout")
	return c
}
