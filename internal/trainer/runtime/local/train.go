// Package local trains on one machine without a cluster: the supervisor runs the master in its own process and the
// workers as children, with the same coordinator, protocol and arithmetic as in a cluster.
package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/groupmaster"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// Config configures a local run.
type Config struct {
	Job        *job.Job
	JobJSON    []byte
	ModelName  string
	Min, Max   int
	Output     string   // directory
	WorkerArgs []string // passed to every worker
	WorkerLog  io.Writer
	Listen     string // host:port; port 0 chooses a free one
	Reporter   master.Reporter
	History    *history.Recorder // of the job; see master.Record
	Log        *slog.Logger
	Silence    time.Duration // as in master.Config
}

// Train runs a job to its end. The same command again resumes an interrupted job, and returns the result of a finished
// one.
func Train(ctx context.Context, cfg Config) (_ master.Result, err error) {
	files := store.Directory{Root: cfg.Output, KeepCheckpoints: cfg.Job.Spec.Keep()}
	if c := cfg.Job.Spec.Checkpoint; c != nil {
		files.CheckpointRoot = c.Directory
	}
	dir := files.Dir(cfg.Job.Identity.Job)
	fence, err := NewFence(dir)
	if err != nil {
		return master.Result{}, err
	}
	defer func() { err = errors.Join(err, fence.Close()) }()
	made, err := trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(cfg.Job.Spec.Name))
	if err != nil {
		return master.Result{}, err
	}
	credentials := wire.Credentials(made)
	secrets := filepath.Join(dir, ".credentials")
	if err := credentials.Save(secrets); err != nil {
		return master.Result{}, fmt.Errorf("save the job's credentials: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(secrets)) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return master.Result{}, fmt.Errorf("listen for workers on %s: %w; choose another --listen, port 0 finds a free one", cfg.Listen, err)
	}
	args := append([]string{"worker", "--master", listener.Addr().String(), "--credentials", secrets}, cfg.WorkerArgs...)
	run := master.Run
	if cfg.Job.Spec.OwnGroup() {
		run = groupmaster.Run
		args = append(args, "--elastic", cfg.Job.Spec.Elastic)
	}
	launcher := NewLauncher(args, cfg.WorkerLog)
	defer launcher.Close()
	return run(ctx, master.Config{
		Job: cfg.Job, JobJSON: cfg.JobJSON, ModelName: cfg.ModelName, Min: cfg.Min, Max: cfg.Max, LastWorker: -1,
		Listener: listener, Credentials: credentials, Launcher: launcher, Fence: fence, Reporter: cfg.Reporter, History: cfg.History, Store: files, Log: cfg.Log,
		Silence: cfg.Silence,
	})
}
