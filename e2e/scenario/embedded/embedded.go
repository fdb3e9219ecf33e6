// Package embedded tells the stories on the embedded cluster: it makes the data, starts a cluster of its own, tells the
// story, judges its log and draws its timeline. The demo and the end-to-end test are this with different readers.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/e2e/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/timeline"
)

// trainerImage is the image in the story's configuration; the embedded cluster runs the trainer's executable for it.
const trainerImage = "ghcr.io/elastic-training/elastic-trainer:0.1.0"

// Binaries are the executables of a story.
type Binaries struct {
	Simcluster string
	scenario.Tools
}

// FindBinaries finds what `make build` built, and terraform on PATH.
func FindBinaries() (Binaries, error) {
	var found Binaries
	var clusterErr, toolsErr error
	found.Simcluster, clusterErr = scenario.FindBinary(simcluster.BinaryVariable)
	found.Tools, toolsErr = scenario.FindTools()
	if err := errors.Join(clusterErr, toolsErr); err != nil {
		return found, fmt.Errorf("%w; run it by make, which builds what it needs and says where it is", err)
	}
	return found, nil
}

// Options of a telling.
type Options struct {
	Binaries  Binaries
	Root      string // the repository
	Out       string // where the telling leaves its files; what an earlier one left there is removed
	DataCache string // where prepared records are kept from one telling to the next
	MNISTDir  string // MNIST's IDX files; "" for synthetic digits
	Mounts    string // how containers get their volumes; "" is what the machine can do best
	Observe   func(eventlog.Event)
	Say       func(format string, args ...any) // what happens before and after the story
}

// Outcome is a told story.
type Outcome struct {
	Events     []eventlog.Event
	Violations []scenario.Violation
	Page       string // the timeline; "" when there was nothing to draw
}

// Tell tells a story on a cluster of its own. Whatever happens, the cluster is stopped when it returns; a story that
// failed or was interrupted has an outcome too.
func Tell(ctx context.Context, story Story, options Options) (outcome Outcome, err error) {
	unlock, err := freshDir(options.Out)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	dataDir := ""
	if story.trains {
		if dataDir, err = prepareData(ctx, options); err != nil {
			return outcome, err
		}
	}
	cluster, stop, err := startCluster(ctx, story, options)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	var told error
	outcome.Events, told = story.run(ctx, scenario.Setting{
		Cluster:  scenario.Cluster{Kubeconfig: cluster.Kubeconfig, Namespace: "default", Image: trainerImage, DataDir: dataDir},
		Tools:    options.Binaries.Tools,
		Examples: filepath.Join(options.Root, "examples"),
		Dir:      options.Out,
		Observe:  options.Observe,
	})
	if told == nil {
		outcome.Violations = story.Promises.Check(outcome.Events)
	}
	page := filepath.Join(options.Out, "timeline.html")
	switch err := drawPage(page, story.Title, outcome.Events); {
	case err == nil:
		outcome.Page = page
	case !errors.Is(err, timeline.ErrNothing):
		told = errors.Join(told, err)
	}
	return outcome, told
}

// prepareData makes the records that the story's jobs train on, and says which they are.
func prepareData(ctx context.Context, options Options) (dir string, err error) {
	dir = filepath.Join(options.DataCache, "synthetic")
	if options.MNISTDir != "" {
		dir = filepath.Join(options.DataCache, "mnist")
		options.Say("Data: MNIST images from %s.", options.MNISTDir)
	} else {
		options.Say("Data: synthetic digits (MNIST_DIR=DIR takes MNIST's IDX files from DIR).")
	}
	return dir, scenario.PrepareData(ctx, options.Binaries.Trainer, options.MNISTDir, dir)
}

// startCluster starts the story's cluster; stop ends it, and its log.
func startCluster(ctx context.Context, story Story, options Options) (cluster *simcluster.Cluster, stop func() error, err error) {
	options.Say("Cluster: %s, Kubernetes' own control plane.", story.cluster.text)
	began := time.Now()
	log, err := os.Create(filepath.Join(options.Out, "cluster.log"))
	if err != nil {
		return nil, nil, fmt.Errorf("the cluster's log: %w", err)
	}
	name, _, _ := strings.Cut(trainerImage, ":")
	run := story.cluster.options
	run.Binary = options.Binaries.Simcluster
	run.Dir = filepath.Join(options.Out, "cluster")
	run.Images = map[string]string{name: options.Binaries.Trainer}
	maps.Copy(run.Images, story.cluster.options.Images)
	run.Mounts = options.Mounts
	run.Progress = log
	if cluster, err = simcluster.Run(ctx, run); err != nil {
		return nil, nil, errors.Join(err, log.Close())
	}
	options.Say("Cluster: ready after %.1f s. To look at it yourself: export KUBECONFIG=%s", time.Since(began).Seconds(), cluster.Kubeconfig)
	return cluster, func() error { return errors.Join(cluster.Close(), log.Close()) }, nil
}

func drawPage(path, title string, events []eventlog.Event) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("the timeline: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return timeline.Render(file, title, events)
}

// freshDir empties a directory that nobody else uses, and keeps others out of it until unlock is called.
func freshDir(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("the output directory: %w", err)
	}
	// The lock lies beside the directory, so that emptying it leaves the lock alone.
	lock := flock.New(dir + ".lock")
	if locked, err := lock.TryLock(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	} else if !locked {
		return nil, fmt.Errorf("another story is being told in %s; wait until it has ended", dir)
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("empty the output directory: %w", err), lock.Unlock())
	}
	return lock.Unlock, nil
}
