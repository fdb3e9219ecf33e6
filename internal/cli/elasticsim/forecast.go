package elasticsim

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/jobfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/report"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/terraformplan"
)

// Exit codes of forecast, by the outcome of the job that fares worst.
var forecastCodes = map[forecast.Outcome]int{forecast.Fits: 0, forecast.Preempts: 10, forecast.Pends: 11, forecast.Never: 12}

// approximateCode is the exit code where the outcome or the evictions of a forecast are uncertain for a reason that is
// not accepted.
const approximateCode = 13

// forecastFlags are those of elastic-sim forecast.
type forecastFlags struct {
	clusterFlags
	file, plan, snapshot, asOf, namespace string
	format                                string
	asJSON, noDryRun                      bool
	accepted                              []string
}

func newForecast() *cobra.Command {
	var f forecastFlags
	c := &cobra.Command{
		Use:   "forecast {-f FILE | --plan FILE}",
		Short: "Predict whether jobs fit on a cluster and which pods they would evict",
		Long: `Read a cluster and predict what would happen to the jobs in a file if they were created
now, one after the other: whether their queues admit them, where and when their pods
start, and which pods they evict. This is the forecast of terraform plan. It changes
nothing and reserves nothing.

The file contains Kubernetes objects. Supported are the workloads of Kubernetes (Pod,
Job, CronJob, Deployment, ReplicaSet, StatefulSet, DaemonSet), JobSet, Kubeflow
(TrainJob with its runtime, MPIJob, PyTorchJob and similar kinds), Ray (RayJob,
RayCluster, RayService), LeaderWorkerSet, AppWrapper and Kueue's pod groups. For other
kinds with pod templates the forecast is approximate. Classes, queues, quotas, limits
and Services in the same file are treated as if they were already applied.

The file may instead contain a SkyPilot task, or job descriptions:

  name: high-prio-job
  pods:
    - {name: master, requests: {cpu: "1"}, priority_class_name: high-priority}
    - {name: worker, count: 4, min: 1, requests: {cpu: "3"},
       starts_after_previous: true}

A job may also have queue: {name: ..., workload_priority_class: ...} for Kueue; a pod
may also have labels, node_selector and tolerations.

With --snapshot a file takes the place of the cluster, which is not contacted: what
"elastic-sim snapshot" has written, or any list of Kubernetes objects in YAML or JSON,
as kubectl get -o yaml prints it. A forecast that may depend on a kind of objects that
the file does not have is approximate.

With --plan the file is a Terraform plan in JSON. The forecast includes everything that
the plan creates, changes, replaces or destroys with the providers elastic, kubernetes,
kubectl and helm, in dependency order. Sensitive values of a plan are never printed.

The exit code reports the outcome; for several jobs, the worst outcome.`,
		Example: `  elastic-sim forecast -f job.yaml
  elastic-sim forecast -f low.yaml -n team-a --context production
  kubectl create job x --image=busybox --dry-run=client -o yaml |
      elastic-sim forecast -f -
  elastic-sim forecast --snapshot cluster.json.gz -f job.yaml
  terraform show -json plan.out | elastic-sim forecast --plan - --format markdown`,
		Args: cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.checkSnapshot(cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	c.Flags().StringVarP(&f.file, "filename", "f", "", "`file` with the jobs; - for standard input")
	c.Flags().StringVar(&f.plan, "plan", "", "`file` with the output of terraform show -json; - for standard input")
	c.Flags().StringVar(&f.snapshot, "snapshot", "", "`file` with the objects of a cluster, which is read instead of a cluster; - for standard input")
	c.Flags().StringVar(&f.asOf, "as-of", "", "`time` of the snapshot in RFC 3339 (default that of the file, or the latest timestamp of its objects)")
	f.add(c)
	c.Flags().StringVarP(&f.namespace, "namespace", "n", corev1.NamespaceDefault, "namespace of jobs that do not name one")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one line of JSON per job; same as --format json")
	c.Flags().StringVar(&f.format, "format", "text", "output format: text, json or markdown")
	cli.CompleteFrom(c, "format", "text", "json", "markdown")
	cli.CompleteFiles(c, "plan", "json")
	c.Flags().BoolVar(&f.noDryRun, "no-dry-run", false, "apply the API server's defaults and validation locally, instead of sending the pods as a server-side dry run")
	c.Flags().StringSliceVar(&f.accepted, "accepted-reasons", nil, "exit with 13 if the outcome or the evictions of a job are uncertain for any reason that is not in this list of `codes`; \"none\" accepts no reason")
	cli.CompleteFiles(c, "filename", "yaml", "yml", "json")
	cli.CompleteFiles(c, "snapshot", "json", "gz", "yaml", "yml")
	cli.Exits(c, forecastCodes[forecast.Fits], "the job starts without evicting pods")
	cli.Exits(c, forecastCodes[forecast.Preempts], "the job starts after preempting others")
	cli.Exits(c, forecastCodes[forecast.Pends], "the job waits")
	cli.Exits(c, forecastCodes[forecast.Never], "the job can never run")
	cli.Exits(c, approximateCode, "the outcome or the evictions are uncertain for a reason that is not accepted")
	cli.Exits(c, cli.Failed, "no forecast is possible")
	return c
}

func (f forecastFlags) run(ctx context.Context, in io.Reader, out io.Writer) error {
	switch {
	case f.file == "" && f.plan == "":
		return cli.UsageError("--filename or --plan is missing; see `elastic-sim forecast --help`")
	case f.file != "" && f.plan != "":
		return cli.UsageError("--filename and --plan are mutually exclusive")
	case f.snapshot == "-" && (f.file == "-" || f.plan == "-"):
		return cli.UsageError("--snapshot and the jobs are both -; only one file can be standard input")
	}
	accepted, err := forecast.ParseReasonCodes(slices.DeleteFunc(slices.Clone(f.accepted), func(code string) bool { return code == "none" }))
	if err != nil {
		return cli.UsageError("--accepted-reasons: %v", err)
	}
	if f.asJSON {
		f.format = "json"
	}
	write, known := outputs[f.format]
	if !known {
		return cli.UsageError("--format=%q: use text, json or markdown", f.format)
	}
	text, err := f.read(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	of, err := f.state(ctx, in)
	if err != nil {
		return err
	}
	given, err := f.contents(ctx, of, text)
	if err != nil {
		return err
	}
	r, err := given.report(ctx, of)
	if err != nil {
		return err
	}
	if err := write(r, out); err != nil {
		return err
	}
	if len(f.accepted) > 0 {
		for _, entry := range r.Entries {
			if codes := entry.Unaccepted(accepted...); len(codes) > 0 {
				return &cli.ExitError{Code: approximateCode, Err: fmt.Errorf("the forecast of %s is approximate: %s", entry.Name, strings.Join(codes, ", "))}
			}
		}
	}
	if code := forecastCodes[r.Worst()]; code != 0 {
		return &cli.ExitError{Code: code, Err: fmt.Errorf("the worst outcome is: %s", r.Worst())}
	}
	return nil
}

// outputs are how a report is written.
var outputs = map[string]func(report.Report, io.Writer) error{
	"text": report.Report.Text, "json": report.Report.JSON, "markdown": report.Report.Markdown,
}

// needsDetails are the training jobs that answers ask about, each once.
func needsDetails(answers []forecast.Answer) []types.NamespacedName {
	var names []types.NamespacedName
	for _, answer := range answers {
		for _, name := range answer.NeedsConfigMaps {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (f forecastFlags) read(in io.Reader) ([]byte, error) {
	name, most := f.file, int64(jobfile.MaxBytes)
	if f.plan != "" {
		name, most = f.plan, terraformplan.MaxBytes
	}
	if name == "-" {
		return io.ReadAll(io.LimitReader(in, most+1))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most+1))
}
