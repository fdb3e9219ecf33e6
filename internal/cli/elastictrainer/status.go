//go:build !podsonly

package elastictrainer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/clusterflags"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// seenJob is what status shows of a job.
type seenJob struct {
	Namespace string             `json:"namespace"`
	Name      string             `json:"name"`
	Phase     trainingjob.Phase  `json:"phase"`
	Status    trainingjob.Status `json:"status"` // as the master has reported it
	Pods      []seenPod          `json:"pods"`
}

// seenPod is one of its pods.
type seenPod struct {
	Name   string          `json:"name"`
	Phase  corev1.PodPhase `json:"phase"`
	Node   string          `json:"node,omitempty"`
	Reason string          `json:"reason,omitempty"` // why it does not run
}

func newStatus() *cobra.Command {
	var f clusterFlags
	var asJSON, follow bool
	c := &cobra.Command{
		Use:   "status NAME",
		Short: "Show the progress of a training job, its pods, and why they wait",
		Long: `Show the last report of a training job's master, and the job's pods. For a pod that does
not run, the reason is shown. With --follow the command prints a line whenever phase,
workers or preemptions change, until the job ends.`,
		Example: `  elastic-trainer status low-prio-job
  elastic-trainer status --follow -n team-a low-prio-job`,
		Args: cli.NeedsArguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := f.connect()
			if err != nil {
				return err
			}
			job, err := f.find(cmd.Context(), client, args[0])
			if err != nil {
				return err
			}
			if follow {
				return followStatus(cmd.Context(), client, job, cmd.OutOrStdout())
			}
			seen, err := look(cmd.Context(), client, job)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(seen)
			}
			return seen.print(cmd.OutOrStdout())
		},
	}
	f.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as one line of JSON")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print a line at every change until the job has ended")
	c.MarkFlagsMutuallyExclusive("json", "follow")
	cli.Exits(c, 0, "done; with --follow the job has succeeded")
	cli.Exits(c, coordinator.ExitJobFailed, "with --follow: the job has failed")
	return c
}

// look reads a job's report and its pods.
func look(ctx context.Context, client *cluster.Client, job *batchv1.Job) (seenJob, error) {
	ref := refOf(job)
	seen := seenJob{Namespace: ref.Namespace, Name: ref.Name, Pods: []seenPod{}}
	report, err := cluster.Get(ctx, client, client.Kubernetes().CoreV1().ConfigMaps(ref.Namespace), trainingjob.StatusName(ref.Name))
	if err != nil && !apierrors.IsNotFound(err) {
		return seen, clusterflags.Explained(err)
	}
	seen.Status.Phase = trainingjob.PhasePending
	if err == nil {
		if seen.Status, err = trainingjob.DecodeStatus(report); err != nil {
			return seen, err
		}
	}
	seen.Phase = trainingjob.PhaseOf(seen.Status, job)
	if d := seen.Status.Disruptions; d != nil {
		d.Newest = jobparts.Disruptions(ctx, client, ref.Namespace, seen.Status)
	}
	pods, err := jobparts.Pods(ctx, client, trainingjob.LabelJobName, ref)
	if err != nil {
		return seen, clusterflags.Explained(err)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return strings.Compare(a.Labels[trainingjob.LabelRole]+a.Name, b.Labels[trainingjob.LabelRole]+b.Name)
	})
	events := eventsOf(ctx, client, ref.Namespace, pods)
	for i := range pods {
		seen.Pods = append(seen.Pods, seenPod{
			Name: pods[i].Name, Phase: pods[i].Status.Phase, Node: pods[i].Spec.NodeName, Reason: trainingjob.PodReason(&pods[i], events),
		})
	}
	return seen, nil
}

// eventsOf are the events about the pods; none if they may not be read.
func eventsOf(ctx context.Context, client *cluster.Client, namespace string, pods []corev1.Pod) []corev1.Event {
	list, err := client.Kubernetes().CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	about := map[types.UID]bool{}
	for i := range pods {
		about[pods[i].UID] = true
	}
	return trainingjob.EventsAbout(list.Items, about)
}

func (s seenJob) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "job\t%s/%s\n", s.Namespace, s.Name)
	fmt.Fprintf(table, "phase\t%s\n", s.Phase)
	if s.Status.Message != "" {
		fmt.Fprintf(table, "message\t%s\n", wording.Printable(s.Status.Message))
	}
	if s.Status.StepsTotal > 0 {
		fmt.Fprintf(table, "step\t%s of %s\n", wording.Count(s.Status.StepsDone), wording.Count(s.Status.StepsTotal))
	}
	if s.Status.Starts > 0 {
		fmt.Fprintf(table, "starts\t%s\n", wording.Count(s.Status.Starts))
	}
	if s.Status.Loss != nil {
		fmt.Fprintf(table, "loss\t%s\n", wording.Loss(*s.Status.Loss))
	}
	each := ""
	if n := s.Status.Processes; n > 1 {
		each = fmt.Sprintf(", of %d processes each", n)
	}
	fmt.Fprintf(table, "workers\t%d running, %d pending%s\n", s.Status.WorkersRunning, s.Status.WorkersPending, each)
	fmt.Fprintf(table, "preemptions\t%d\n", s.Status.Preemptions)
	if s.Status.ModelSHA256 != "" {
		fmt.Fprintf(table, "model sha256\t%s\n", s.Status.ModelSHA256)
	}
	for _, file := range s.Status.OutputFiles {
		fmt.Fprintf(table, "output\t%s\n", wording.Printable(file))
	}
	if d := s.Status.Disruptions; d != nil {
		fmt.Fprintf(table, "disruptions\t%d, %s and %.1f s lost\n", d.Count, wording.Number(int(d.LostSteps), "step"), d.LostSeconds)
	}
	if split := goodputOf(s.Status); split != "" {
		fmt.Fprintf(table, "goodput\t%s\n", split)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if d := s.Status.Disruptions; d != nil {
		fmt.Fprintln(table, "\nDISRUPTED\tPOD\tKIND\tREASON\tPREEMPTOR\tLOST STEPS\tLOST (S)\tRECOVERED AFTER (S)\tALL WORKERS AFTER (S)")
		for _, one := range d.Newest[max(0, len(d.Newest)-shownDisruptions):] {
			fmt.Fprintln(table, strings.TrimRight(wording.Printable(strings.Join([]string{
				one.At.UTC().Format(time.RFC3339), one.Pod, string(one.Kind), one.Reason, one.Preemptor(),
				strconv.FormatInt(one.LostSteps, 10), fmt.Sprintf("%.1f", one.LostSeconds), secondsOf(one.Recovered, s.Phase), secondsOf(one.FullSize, s.Phase),
			}, "\t")), "\t"))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if len(s.Pods) == 0 {
		return nil
	}
	fmt.Fprintln(table, "\nPOD\tPHASE\tNODE\tREASON")
	for _, pod := range s.Pods {
		fmt.Fprintln(table, strings.TrimRight(fmt.Sprintf("%s\t%s\t%s\t%s", pod.Name, pod.Phase, pod.Node, wording.Printable(pod.Reason)), "\t"))
	}
	return table.Flush()
}

// goodputOf is a job's goodput, and how its life was split into phases; "" before anything is known.
func goodputOf(s trainingjob.Status) string {
	var parts []string
	if s.Goodput != nil {
		parts = append(parts, wording.Percent(*s.Goodput))
	}
	if split := s.GoodputSplit; split != nil {
		for _, phase := range trainingjob.GoodputPhases() {
			if seconds := split.Seconds[phase]; seconds > 0 {
				parts = append(parts, fmt.Sprintf("%s %.1f s", strings.ReplaceAll(string(phase), "_", " "), seconds))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// shownDisruptions are the newest ones that status prints; --json has more.
const shownDisruptions = 5

// secondsOf is a time that may not have come yet.
func secondsOf(seconds *float64, phase trainingjob.Phase) string {
	switch {
	case seconds != nil:
		return fmt.Sprintf("%.1f", *seconds)
	case phase.Finished():
		return "never"
	default:
		return "not yet"
	}
}

// line is what --follow shows of a status; equal lines are printed once.
func line(phase trainingjob.Phase, s trainingjob.Status) string {
	text := fmt.Sprintf("%s, %d running, %d pending, %s", phase, s.WorkersRunning, s.WorkersPending, wording.Number(s.Preemptions, "preemption"))
	if s.Message != "" {
		text += ": " + wording.Printable(s.Message)
	}
	return text
}

// followStatus prints a line at every change, until the job has ended.
func followStatus(ctx context.Context, client *cluster.Client, job *batchv1.Job, out io.Writer) error {
	// A job that fails by its own rules, or is deleted, is not reported by its master.
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		//nolint:errcheck // the master's report is followed without it
		_ = cluster.WaitFor(following, client, client.Kubernetes().BatchV1().Jobs(job.Namespace), cluster.Named(job.Name), func(found []*batchv1.Job) (bool, error) {
			switch {
			case len(found) == 0 || found[0].UID != job.UID:
				stop(fmt.Errorf("training job %s/%s has been deleted", job.Namespace, job.Name))
			case trainingjob.JobCondition(found[0], batchv1.JobFailed) != nil:
				condition := trainingjob.JobCondition(found[0], batchv1.JobFailed)
				stop(&cli.ExitError{Code: coordinator.ExitJobFailed, Err: fmt.Errorf("%w: %s: %s", errNotTrained, condition.Reason, condition.Message)})
			default:
				return false, nil
			}
			return true, nil
		})
	}()
	last := ""
	err := cluster.WaitFor(following, client, client.Kubernetes().CoreV1().ConfigMaps(job.Namespace), cluster.Named(trainingjob.StatusName(job.Name)), func(found []*corev1.ConfigMap) (bool, error) {
		if len(found) == 0 {
			return false, nil
		}
		status, err := trainingjob.DecodeStatus(found[0])
		if err != nil {
			return false, err
		}
		if now := line(status.Phase, status); now != last {
			last = now
			at := ""
			if status.StepsTotal > 0 {
				at = fmt.Sprintf("step %s of %s: ", wording.Count(status.StepsDone), wording.Count(status.StepsTotal))
			}
			fmt.Fprintf(out, "%s%s\n", at, now)
		}
		if status.Phase == trainingjob.PhaseFailed {
			return true, &cli.ExitError{Code: coordinator.ExitJobFailed, Err: errNotTrained}
		}
		return status.Phase.Finished(), nil
	})
	reason := context.Cause(following)
	stop(nil)
	<-ended
	var exit *cli.ExitError
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case ctx.Err() == nil && reason != nil:
		return reason
	}
	return clusterflags.Explained(err)
}
