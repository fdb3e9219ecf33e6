//go:build !podsonly

package elastictrainer

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clusterflags"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

func newLogs() *cobra.Command {
	var f clusterFlags
	var worker int
	var follow, previous bool
	c := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the log of a training job's master, or of one of its workers",
		Long: `Print the log of a training job's master, or with --worker that of a worker. If there
are several such pods, print the log of the newest. "elastic-trainer status" lists the
pods with the numbers of the workers.`,
		Example: `  elastic-trainer logs --follow low-prio-job
  elastic-trainer logs --worker 0 low-prio-job`,
		Args: cli.NeedsArguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			client, err := f.connect()
			if err != nil {
				return err
			}
			job, err := f.find(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			pods, err := jobparts.Pods(cmd.Context(), client, trainingjob.LabelJobName, refOf(job))
			if err != nil {
				return clusterflags.Explained(err)
			}
			pod := podOf(pods, worker)
			if pod == nil && worker < 0 {
				return fmt.Errorf("training job %s/%s has no master at the moment; `elastic-trainer status` shows its phase", job.Namespace, job.Name)
			}
			if pod == nil {
				return fmt.Errorf("training job %s/%s has no worker %d at the moment; `elastic-trainer status` lists its pods", job.Namespace, job.Name, worker)
			}
			container := trainingjob.RoleMaster
			if worker >= 0 {
				container = trainingjob.RoleWorker
			}
			stream, err := client.Kubernetes().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
				Container: container, Follow: follow, Previous: previous,
			}).Stream(cmd.Context())
			if err != nil {
				return fmt.Errorf("the log of pod %s cannot be read: %w", pod.Name, err)
			}
			defer func() { err = errors.Join(err, stream.Close()) }()
			_, err = io.Copy(cmd.OutOrStdout(), stream)
			return err
		},
	}
	f.register(c)
	c.Flags().IntVar(&worker, "worker", -1, "number of the worker whose log is printed; -1: the master")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "follow the log until the pod ends")
	c.Flags().BoolVarP(&previous, "previous", "p", false, "print the log of the container's previous run")
	cli.InRange(c, "worker", -1, trainingjob.MaxWorkers)
	return c
}

// podOf is the newest pod of the worker with that number, or of the master for -1; nil if there is none.
func podOf(pods []corev1.Pod, worker int) (found *corev1.Pod) {
	for i := range pods {
		labels := pods[i].Labels
		is := labels[trainingjob.LabelRole] == trainingjob.RoleMaster
		if worker >= 0 {
			is = labels[trainingjob.LabelWorkerID] == strconv.Itoa(worker)
		}
		if is && (found == nil || found.CreationTimestamp.Before(&pods[i].CreationTimestamp)) {
			found = &pods[i]
		}
	}
	return found
}
