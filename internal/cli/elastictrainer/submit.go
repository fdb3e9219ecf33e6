//go:build !podsonly

package elastictrainer

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/migrate/elasticdl"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// podFlags are those of the master's pod, or of each worker's.
type podFlags struct{ priority, cpuRequest, cpuLimit, memoryRequest, memoryLimit string }

// submission are the flags of submit.
type submission struct {
	clusterFlags
	specFlags
	version                      string // of this program, and of the image that belongs to it
	master, worker               podFlags
	image, imageBase, repository string
	volumeName, mountPath, claim string
	dryRun, output               string
	notices                      []string // what differs from the command line, and what may not be as it was meant
}

func newSubmit(version string) *cobra.Command {
	s := submission{version: version}
	c := &cobra.Command{
		Use:   "submit --job-name NAME --model-file FILE|--model NAME --train-data-dir DIR",
		Short: "Submit a training job to a cluster, without Terraform",
		Long: `Create a training job in the cluster of the kubeconfig: the same objects as resource
elastic_training_job of the Terraform provider. Accepts the flags of ElasticDL's first
client, with its defaults for CPU and memory. Some of these flags no longer apply, and
those of later versions are unknown; the error names the replacement. No image is
built: --image_base is replaced by the trainer's image, and --repository is ignored.

Paths of data are paths in the pods. The image contains no data: unless you set
--volume-name, the PersistentVolumeClaim of --claim-name is mounted at the first folder
of --train-data-dir, for example at /data for /data/mnist/train. submit creates a
ServiceAccount and a Role for the job's pods; you need permission to create them.

With --dry-run the objects are printed and nothing is created. The printed Job has
"suspend: true": set it to false when all objects have been created.`,
		Example: `  elastic-trainer submit --job_name=low-prio-job \
      --model_file=examples/models/mnist_functional_api.py \
      --train_data_dir=/data/mnist/train --num_worker=2 --grads_to_wait=2 \
      --master_pod_priority=high-priority --worker_pod_priority=low-priority
  elastic-trainer submit --job-name digits --model mnist \
      --train-data-dir "synthetic://digits?records=10000&seed=1" --dry-run -o yaml`,
		Args: cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	c.SetFlagErrorFunc(explainLater)
	f := c.Flags()
	f.StringVar(&s.spec.Name, "job-name", "", "name of the job and prefix of its pods' names (required)")
	f.StringVar(&s.spec.Data.Training, "train-data-dir", "", "training data in the pods: a directory, a file, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, or synthetic://digits?records=10000&seed=1; with --worker-command also indices://NAME?records=N (required, except with --elastic=restart)")
	f.StringVar(&s.spec.Output, "model-dir", "", "`directory` in a volume for model and checkpoints (default: the model is kept in ConfigMap NAME-model)")
	f.StringVar(&s.checkpoint.Directory, "checkpoint-dir", "", "`directory` in a volume for checkpoints (default MODEL_DIR/checkpoints)")
	f.StringVar(&s.image, "image", "", "image of master and workers (default the published one of this version)")
	f.StringVar(&s.imageBase, "image-base", "", "accepted for compatibility with ElasticDL; used only if the image is named elastic-trainer")
	f.StringVar(&s.repository, "repository", "", "ignored: submit neither builds nor pushes an image")
	f.StringVar(&s.repository, "docker-image-repository", "", "same as --repository")
	f.StringVar(&s.volumeName, "volume-name", "", "name of the volume that mounts --claim-name at --mount-path")
	f.StringVar(&s.mountPath, "mount-path", "", "path at which master and workers mount the volume")
	f.StringVar(&s.claim, "claim-name", elasticdl.Claim, "PersistentVolumeClaim to mount; empty: none")
	for _, pod := range []struct {
		role, who, cpu, memory string
		flags                  *podFlags
	}{{"master", "the master", "100m", "1024Mi", &s.master}, {"worker", "each worker", "1000m", "4096Mi", &s.worker}} {
		f.StringVar(&pod.flags.priority, pod.role+"-pod-priority", "", "PriorityClass of "+pod.who)
		f.StringVar(&pod.flags.cpuRequest, pod.role+"-cpu-request", pod.cpu, "CPUs requested for "+pod.who)
		f.StringVar(&pod.flags.cpuLimit, pod.role+"-cpu-limit", pod.cpu, "CPU limit of "+pod.who)
		f.StringVar(&pod.flags.memoryRequest, pod.role+"-memory-request", pod.memory, "memory requested for "+pod.who)
		f.StringVar(&pod.flags.memoryLimit, pod.role+"-memory-limit", pod.memory, "memory limit of "+pod.who)
	}
	f.StringVar(&s.dryRun, "dry-run", "none", "print the objects instead of creating them: client or none")
	f.Lookup("dry-run").NoOptDefVal = "client"
	f.StringVarP(&s.output, "output", "o", "", "with --dry-run, how the objects are printed: yaml or json (default yaml)")
	s.specFlags.register(c)
	s.clusterFlags.register(c)
	cli.Require(c, "job-name")
	c.MarkFlagsRequiredTogether("volume-name", "mount-path")
	cli.CompleteFrom(c, "dry-run", "client", "none")
	cli.CompleteFrom(c, "output", "yaml", "json")
	cli.Exits(c, 0, "the job is created; it starts when there is capacity for its pods")
	return c
}

// explainLater adds to the error of an unknown flag what takes its place if it is one of ElasticDL's later versions.
func explainLater(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return c.Parent().FlagErrorFunc()(c, err)
	}
	switch first, here := elasticdl.Later(strings.ReplaceAll(unknown.GetSpecifiedName(), "-", "_")); {
	case first != "":
		return cli.UsageError("%w; did you mean --%s? See `%s --help`", err, strings.ReplaceAll(first, "_", "-"), c.CommandPath())
	case here != "":
		return cli.UsageError("%w, of a later version of ElasticDL; with elastic_training_job, %s", err, here)
	}
	return c.Parent().FlagErrorFunc()(c, err)
}

// submitFlagOf are the flags of submit by the fields of a job that they set, besides those that train has too.
var submitFlagOf = map[string]string{
	"namespace":             "namespace",
	"image":                 "image",
	"output":                "model-dir",
	"workers.min":           "min-worker",
	"workers.max":           "num-worker",
	"volumes[0]":            "claim-name",
	"volumes[0].name":       "volume-name",
	"volumes[0].mount_path": "mount-path",
	"master.resources":      "master-cpu-request (or another of the master's)",
	"workers.resources":     "worker-cpu-request (or another of the workers')",
}

// define makes the job's definition of the flags.
func (s *submission) define(cmd *cobra.Command) (d trainingjob.Definition, err error) {
	if err = s.finish(cmd); err != nil {
		return d, err
	}
	s.spec.Namespace = s.namespace
	if cmd.Flags().Changed("checkpoint-steps") || cmd.Flags().Changed("keep-checkpoint-max") || s.checkpoint.Directory != "" {
		s.spec.Checkpoint, s.checkpoint.KeepMax = &s.checkpoint, &s.keep
	}
	_, text, err := job.ReadModel(s.spec, job.Options{})
	if err != nil {
		return d, err
	}
	d = trainingjob.Definition{Job: s.spec, Min: s.minimum, Max: s.workers}
	if s.spec.Model.Name == "" {
		d.Job.Model.File, d.ModelText = "", string(text)
	}
	if d.Settings, err = s.settings(); err != nil {
		return d, err
	}
	if problems := d.Problems(); len(problems) > 0 {
		return d, cli.UsageError("%s", byFlag(problems, submitFlagOf))
	}
	for _, warning := range d.Warnings() {
		s.notices = append(s.notices, byFlag([]trainingjob.Problem{warning}, submitFlagOf))
	}
	return d, s.checkModel(d)
}

// checkModel reads a model file as the master will.
func (s *submission) checkModel(d trainingjob.Definition) error {
	if d.ModelText == "" || len(d.Job.Command) > 0 {
		return nil
	}
	_, report, err := modelfile.Load(s.spec.Model.File, []byte(d.ModelText), modelfile.Options{LearningRate: d.Job.Training.LearningRate})
	if err != nil {
		return fmt.Errorf("%w; `elastic-trainer model FILE` checks a model file, and a script of another framework needs --worker-command", err)
	}
	for _, warning := range report.Warnings {
		s.notices = append(s.notices, fmt.Sprintf("%s, %s", s.spec.Model.File, warning))
	}
	return nil
}

// settings are those of the pods.
func (s *submission) settings() (trainingjob.Settings, error) {
	t := s.translate()
	settings := trainingjob.Settings{Image: t.Image}
	settings.ImagePullPolicy = trainingjob.PullPolicy(t.Image)
	if t.VolumeName != "" {
		settings.Volumes = []trainingjob.Volume{{Name: t.VolumeName, MountPath: t.MountPath, PVC: s.claim, Mount: trainingjob.MountAll}}
	}
	var err error
	if settings.Master, err = s.master.settings("master"); err != nil {
		return settings, err
	}
	settings.Workers, err = s.worker.settings("worker")
	return settings, err
}

// translate decides what takes the place of ElasticDL's flags, and notes what differs.
func (s *submission) translate() elasticdl.Translation {
	arguments := elasticdl.Arguments{TrainingData: s.spec.Data.Training, VolumeName: s.volumeName, MountPath: s.mountPath}
	if s.image == "" { // otherwise the user has named the replacement
		arguments.Image = s.imageBase
	}
	if s.repository != "" {
		arguments.Pushed = "--repository=" + s.repository
	}
	t := arguments.Translate(cmp.Or(s.image, trainingjob.DefaultImage(s.version)), s.claim)
	s.notices = append(s.notices, t.Notices...)
	return t
}

func (p *podFlags) settings(role string) (trainingjob.PodSettings, error) {
	if err := elasticdl.CheckClass(p.priority); err != nil {
		return trainingjob.PodSettings{}, cli.UsageError("--%s-pod-priority=%s: %w", role, p.priority, err)
	}
	list := map[corev1.ResourceName]map[string]string{
		corev1.ResourceCPU: {"request": p.cpuRequest, "limit": p.cpuLimit}, corev1.ResourceMemory: {"request": p.memoryRequest, "limit": p.memoryLimit},
	}
	resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		for which, into := range map[string]corev1.ResourceList{"request": resources.Requests, "limit": resources.Limits} {
			amount, err := resource.ParseQuantity(list[name][which])
			if err != nil || amount.Sign() <= 0 {
				return trainingjob.PodSettings{}, cli.UsageError("--%s-%s-%s=%s: use a quantity such as %s", role, name, which, list[name][which],
					map[corev1.ResourceName]string{corev1.ResourceCPU: "1000m or 0.5", corev1.ResourceMemory: "1024Mi or 4Gi"}[name])
			}
			into[name] = amount
		}
	}
	return trainingjob.PodSettings{PriorityClassName: p.priority, Resources: &resources}, nil
}

// isDryRun reports whether the objects are printed only, and checks how.
func (s *submission) isDryRun() (bool, error) {
	switch {
	case s.dryRun != "none" && s.dryRun != "client":
		return false, cli.UsageError("--dry-run=%s: use client or none", s.dryRun)
	case s.output != "" && s.output != "yaml" && s.output != "json":
		return false, cli.UsageError("--output=%s: use yaml or json", s.output)
	case s.output != "" && s.dryRun == "none":
		return false, cli.UsageError("--output=%s has an effect only with --dry-run; to set the model's directory, use --model-dir", s.output)
	}
	return s.dryRun == "client", nil
}

// text is what the command prints of the notices, a line each.
func (s *submission) text() string {
	var b strings.Builder
	for _, notice := range s.notices {
		fmt.Fprintf(&b, "note: %s\n", notice)
	}
	return b.String()
}
