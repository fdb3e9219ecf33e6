package elastictrainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/groupmaster"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/kube"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	supervisor "github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/supervise"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

func newMaster() *cobra.Command {
	var c computeFlags
	var jobFile, listen, credentials, statusAddress string
	var supervised, signed bool
	cmd := &cobra.Command{
		Use:   "master",
		Short: "Run the master of a training job",
		Long: `The master's pod of an elastic_training_job runs this command: it creates worker pods,
assigns work to them, and writes the status and the final model.

It runs under a supervisor process, which restarts it immediately if it is killed or
crashes. The restarted master fetches the newest state from the workers.`,
		Example: "  elastic-trainer master --job /etc/elastic/job.json",
		Args:    cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inPod := os.Getenv("MY_POD_NAME") != ""; inPod && !supervised { // elsewhere it says why it cannot run
				return supervise(cmd, &c)
			}
			return runMaster(cmd, &c, jobFile, listen, credentials, statusAddress, signed)
		},
	}
	cmd.Flags().StringVar(&jobFile, "job", filepath.Join(trainingjob.ConfigDir, trainingjob.JobKey), "`file` that describes the job")
	cmd.Flags().StringVar(&listen, "listen", fmt.Sprintf("127.0.0.1:%d", trainingjob.MasterPort), "address on which to listen for workers")
	cmd.Flags().StringVar(&credentials, "credentials", trainingjob.CredentialsDir, "`directory` with the job's certificate, key and token")
	cmd.Flags().StringVar(&statusAddress, "status-address", fmt.Sprintf("127.0.0.1:%d", trainingjob.StatusPort), "address that serves the job's page, /metrics, /healthz and /readyz; empty: off. The pod's loopback address is served too, for kubectl port-forward")
	cmd.Flags().BoolVar(&supervised, "supervised", false, "this process already runs under a supervisor (set internally)")
	cmd.Flags().StringVar(&c.options.ScriptShared, strings.TrimPrefix(trainingjob.ScriptSharedFlag, "--"), "", "`directory` shared with the container that runs \"elastic-trainer script\", for a job with a command; empty: run the command as a child of the master")
	cmd.Flags().BoolVar(&signed, strings.TrimPrefix(trainingjob.SignedFlag, "--"), false, "accept only a job description that is signed with the credentials")
	c.register(cmd, "compute threads; 0: one per CPU, at most 8; for a job with a command, OMP_NUM_THREADS, or 1 if that is not set")
	cli.Exits(cmd, coordinator.ExitDone, "the job is done")
	cli.Exits(cmd, coordinator.ExitJobFailed, "the job failed permanently; a restart does not help")
	cli.Exits(cmd, trainingjob.ExitOther, "another master runs the job")
	cli.Exits(cmd, coordinator.ExitInterrupted, "interrupted, or replaced by another master")
	return cmd
}

// supervise runs this very command line as a child, and again when it must.
func supervise(cmd *cobra.Command, c *computeFlags) error {
	log, err := c.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	code, err := supervisor.Run(cmd.Context(), supervisor.Config{
		Args: append(slices.Clone(os.Args[1:]), "--supervised"), Stdout: os.Stdout, Stderr: os.Stderr,
		Final: []int{coordinator.ExitDone, coordinator.ExitInterrupted, coordinator.ExitJobFailed, trainingjob.ExitOther}, Log: log,
	})
	if err == nil && code != coordinator.ExitDone {
		err = fmt.Errorf("the master has ended with exit code %d", code)
	}
	if err != nil {
		return &cli.ExitError{Code: max(code, cli.Failed), Err: err}
	}
	return nil
}

func runMaster(cmd *cobra.Command, c *computeFlags, jobFile, listen, credentialsDir, statusAddress string, signed bool) (err error) {
	ctx := cmd.Context()
	log, err := c.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	text, err := os.ReadFile(c.options.Resolve(jobFile))
	if err != nil {
		return jobFailed(fmt.Errorf("read the job: %w", err))
	}
	spec, err := trainingjob.DecodeJob(text)
	if err != nil {
		return jobFailed(err)
	}
	credentials, err := wire.LoadCredentials(c.options.Resolve(credentialsDir))
	if err != nil {
		return err
	}
	cluster, err := kube.Connect(ctx, c.options.Root, spec.Name)
	if err != nil {
		return err
	}
	fence, err := kube.Acquire(ctx, cluster, log)
	if errors.Is(err, kube.ErrOtherMaster) {
		return &cli.ExitError{Code: trainingjob.ExitOther, Err: err}
	}
	if err != nil {
		return err
	}
	defer func() {
		releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, fence.Close(releasing))
	}()
	defer func() {
		if code := exitCode(err); code == coordinator.ExitDone || code == coordinator.ExitJobFailed {
			finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
			defer cancel()
			if failed := cluster.Finish(finishing); failed != nil {
				log.Error("the job has finished, but cleanup failed; its pods may still exist and hold quota", "error", failed)
			}
		}
	}()
	earlier, err := cluster.EarlierStatus(ctx)
	if err != nil {
		log.Warn("cannot read the goodput phases and disruptions of earlier masters", "error", err)
	}
	reporter := kube.NewReporter(cluster, earlier, log)
	defer reporter.Close()
	cluster.Notice = reporter.Notice
	if signed {
		cluster.Signed = (*trainingjob.Credentials)(&credentials)
		if err := waitForSignature(ctx, cluster, map[string][]byte{trainingjob.JobKey: text}, reporter, fence.Generation()); err != nil {
			return err
		}
	}
	// From here on a job that cannot begin says so in its status.
	fail := func(err error) error {
		reporter.Status(trainingjob.Status{Phase: trainingjob.PhaseFailed, Message: err.Error(), Generation: fence.Generation()})
		return jobFailed(err)
	}
	name, model, err := job.ReadModel(spec, c.options)
	if err != nil {
		return fail(err)
	}
	if signed && spec.Model.File != "" {
		script, err := os.ReadFile(c.options.Resolve(spec.Model.File))
		if err != nil {
			return fail(err)
		}
		if err := waitForSignature(ctx, cluster, map[string][]byte{trainingjob.ModelKey: script}, reporter, fence.Generation()); err != nil {
			return err
		}
	}
	c.options.ScriptOutput, c.options.ScriptRestarts = labelled{cmd.ErrOrStderr(), "master"}, masterScriptRestarts
	j, err := job.Load(ctx, spec, name, model, c.options)
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for _, w := range j.Warnings() {
		log.Warn(w)
		reporter.Notice(coordinator.Notice{Warning: true, Reason: "JobWarning", Message: w})
	}
	for _, n := range j.Notices() {
		log.Info(n)
	}
	address, err := cluster.ServiceAddress(ctx)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("listen for workers on %s: %w", listen, err)
	}
	launcher, existing, lastWorker, err := kube.Start(ctx, cluster, address, log)
	if unmanaged := (*kube.UnmanagedError)(nil); errors.As(err, &unmanaged) {
		return errors.Join(fail(err), listener.Close())
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer launcher.Close()
	minimum, most := launcher.Size()
	files := kube.Store{Cluster: cluster}
	if spec.Output != "" {
		files.Output = &store.Directory{Root: c.options.Resolve(spec.Output), KeepCheckpoints: spec.Keep()}
		if p := spec.Checkpoint; p != nil && p.Directory != "" {
			files.Output.CheckpointRoot = c.options.Resolve(p.Directory)
		}
	}
	log.Info("master started", "job", spec.Name, "digest", j.Identity.Job[:8], "steps", j.Schedule.Steps(), "generation", fence.Generation(), "address", address)
	if err := cluster.ReportNoCheckpoint(ctx); err != nil {
		log.Warn("cannot set the Job's annotation last-checkpoint-time (no checkpoint yet)", "error", err)
	}
	recorder := master.Record(j)
	recorder.Resume(earlier)
	if statusAddress != "" {
		page, err := web.StartInPod(ctx, statusAddress, recorder, log)
		if err != nil {
			log.Warn("cannot serve the status page and metrics; training continues", "error", err)
			reporter.Notice(coordinator.Notice{Warning: true, Reason: "StatusNotServed", Message: err.Error()})
		} else {
			defer page.Close()
			log.Info("serving the status page and metrics", "url", page.URL())
		}
	}
	running, stop := untilStopped(ctx, cluster, log)
	defer stop()
	run := master.Run
	if spec.OwnGroup() {
		run = groupmaster.Run
	}
	result, err := run(running, master.Config{
		Job: j, JobJSON: text, ModelName: name, Min: minimum, Max: most, Queued: launcher.Queued(), LastWorker: lastWorker, Existing: existing,
		Listener: listener, Credentials: credentials, Launcher: launcher, Fence: fence, Reporter: reporter, History: recorder,
		Store: files, Log: log,
	})
	if err != nil {
		return err
	}
	if m := result.Model; m != nil {
		log.Info("job succeeded", "sha256", m.SHA256, "steps", m.Steps, "loss", m.Loss, "accuracy", m.Accuracy, "job", m.Job, "files", m.Files)
	}
	return failed(result)
}

// forgedPause is the time between two looks at a ConfigMap that somebody has changed.
const forgedPause = 5 * time.Second

// waitForSignature returns when the job's ConfigMap is as its maker wrote it. Meanwhile the job's status says why
// nothing happens. Files that were read from the mounted ConfigMap must be the same, or the master ends and starts
// anew: a kubelet brings them up to date in a minute.
func waitForSignature(ctx context.Context, cluster *kube.Cluster, read map[string][]byte, reporter *kube.Reporter, generation int64) error {
	for {
		config, err := cluster.Config(ctx)
		if forged := (*trainingjob.ForgedError)(nil); !errors.As(err, &forged) {
			for key, text := range read {
				if err == nil && config.Data[key] != string(text) {
					err = fmt.Errorf("the mounted file %s differs from ConfigMap %s/%s, which may just have been changed", key, config.Namespace, config.Name)
				}
			}
			return err
		}
		reporter.Status(trainingjob.Status{Phase: trainingjob.PhaseWaiting, Message: err.Error(), Generation: generation})
		cluster.Notice(coordinator.Notice{Warning: true, Reason: "JobForged", Message: err.Error()})
		select {
		case <-time.After(forgedPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Limits of the requests that a master makes before it stops, and when its job is over.
const (
	causeTimeout  = 2 * time.Second
	finishTimeout = 10 * time.Second
)

// untilStopped is a context that ends after ctx, with a master.StoppedError of why as its cause.
// stop ends it, and waits until the cause is known.
func untilStopped(ctx context.Context, cluster *kube.Cluster, log *slog.Logger) (running context.Context, stop func()) {
	running, end := context.WithCancelCause(context.WithoutCancel(ctx))
	requested := make(chan struct{})
	cancelRequest := context.AfterFunc(ctx, func() {
		defer close(requested)
		request, cancel := context.WithTimeout(context.WithoutCancel(ctx), causeTimeout)
		defer cancel()
		cause, err := cluster.Stop(request)
		if err != nil {
			log.Warn("received SIGTERM; cannot determine whether the queue evicted the job", "error", err)
		}
		end(master.StoppedError(cause))
	})
	return running, func() {
		if !cancelRequest() {
			<-requested
		}
		end(nil)
	}
}

// jobFailed is an error that a restart of the master would meet again: its Job gives up at this exit code.
func jobFailed(err error) error {
	return &cli.ExitError{Code: coordinator.ExitJobFailed, Err: err}
}

func newWorker(version string) *cobra.Command {
	var c computeFlags
	var cfg worker.Config
	var credentials string
	cmd := &cobra.Command{
		Use:   "worker --master HOST:PORT --id N",
		Short: "Run a worker, which computes gradients for a master",
		Long: `A worker's pod runs this command. It receives the job from the master, reads the data
from its own volumes, and computes the gradients assigned to it until the master
ends the job.`,
		Example: "  elastic-trainer worker --master 10.0.0.7:50001 --id 0",
		Args:    cli.NeedsArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			c.options.ScriptOutput = labelled{cmd.ErrOrStderr(), fmt.Sprintf("worker %d", cfg.ID)}
			c.options.Memory = data.MemoryBytes()
			cfg.Log, cfg.Job, cfg.Build, cfg.Node = log, c.options, version, os.Getenv("MY_NODE_NAME")
			if cfg.Credentials, err = wire.LoadCredentials(c.options.Resolve(credentials)); err != nil {
				return err
			}
			return worker.Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Master, "master", "", "address of the master (required)")
	f.IntVar(&cfg.ID, "id", 0, "number of this worker (required)")
	f.StringVar(&credentials, "credentials", trainingjob.CredentialsDir, "`directory` with the job's certificate and token")
	f.DurationVar(&cfg.MasterTimeout, "master-timeout", 120*time.Second, "time for which the worker tries to connect to a master")
	f.StringVar(&cfg.PeerHost, "peer-host", "", "address at which other workers reach this one, on any free port (default: the one used to reach the master)")
	f.DurationVar(&cfg.Pace, "pace", 0, "minimum time per gradient, to simulate slower hardware")
	f.StringVar(&cfg.Elastic, "elastic", trainingjob.ElasticGradients, "how the job's script exchanges gradients: gradients, collectives or restart")
	f.DurationVar(&cfg.StopGrace, "stop-grace", worker.DefaultStopGrace, "with --elastic=restart, time between SIGTERM and SIGKILL when the command is stopped")
	cli.CompleteFrom(cmd, "elastic", trainingjob.ElasticModes...)
	c.register(cmd, "compute threads; 0: one per CPU, at most 8; for a job with a command, OMP_NUM_THREADS, or 1 if that is not set")
	cli.InRange(cmd, "id", 0, math.MaxInt32)
	cli.NotNegative(cmd, "master-timeout")
	cli.NotNegative(cmd, "pace")
	cli.NotNegative(cmd, "stop-grace")
	cli.Require(cmd, "master", "id")
	cli.Exits(cmd, 0, "stopped by the master")
	cli.Exits(cmd, exitLeft, "interrupted, or no master was reachable")
	return cmd
}
