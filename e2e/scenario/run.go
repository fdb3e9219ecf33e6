package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/timeline"
)

// Options of a run.
type Options struct {
	Tools    Tools
	Root     string // the repository
	Out      string // the output directory; Run removes the files of an earlier run
	MNISTDir string // MNIST's IDX files; "" for synthetic digits
	Observe  func(eventlog.Event)
	Logf     func(format string, args ...any) // what is no event of the scenario: of its cluster and data, and how long things take
}

// OutDir is the output directory of a run with a name: e2e/out/NAME.
func OutDir(root, name string) string { return filepath.Join(root, "e2e", "out", name) }

// DataCache is the directory that keeps the training data of all scenarios between runs. A backend that can mount host
// directories only when it creates nodes mounts this one, at the same path.
func DataCache(root string) string { return OutDir(root, "data") }

// Outcome is the result of a run.
type Outcome struct {
	Events     []eventlog.Event
	Violations []Violation
	Outline    string // what must be the same on every backend
	Page       string // the path of the timeline; "" when there was nothing to draw
}

// Run runs a scenario on a backend's cluster, checks its assertions and draws its timeline. Options.Out then holds
// events.jsonl, measurements.json, outline.txt, terraform.log, timeline.html with timeline-light.svg and
// timeline-dark.svg, and the backend's files. Run destroys the scenario's resources and releases the cluster before it
// returns, also after a failure or an interruption, and returns an outcome in these cases too.
func Run(ctx context.Context, scenario Scenario, backend Backend, options Options) (outcome Outcome, err error) {
	unlock, err := freshDir(options.Out)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	forCluster := ClusterOptions{Out: options.Out, Logf: options.Logf}
	if scenario.Requirements.Records {
		if forCluster.DataDir, err = prepareData(ctx, options); err != nil {
			return outcome, err
		}
	}
	cluster, release, err := backend.Cluster(ctx, scenario, forCluster)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, release()) }()

	var runErr error
	outcome.Events, runErr = runScenario(ctx, scenario, environment{
		cluster:  cluster,
		tools:    options.Tools,
		examples: filepath.Join(options.Root, "examples"),
		dataDir:  forCluster.DataDir,
		dir:      options.Out,
		observe:  options.Observe,
		logf:     options.Logf,
	})
	if runErr == nil {
		outcome.Violations = scenario.Assertions.Check(outcome.Events)
	}
	runErr = errors.Join(runErr, writeMeasurements(options.Out, Measure(outcome.Events)))
	outcome.Outline = scenario.Outline(outcome.Events)
	if err := os.WriteFile(filepath.Join(options.Out, "outline.txt"), []byte(outcome.Outline), 0o600); err != nil {
		runErr = errors.Join(runErr, fmt.Errorf("write the outline: %w", err))
	}
	page := filepath.Join(options.Out, "timeline.html")
	switch err := drawTimeline(options.Out, scenario.Title, outcome.Events); {
	case err == nil:
		outcome.Page = page
	case !errors.Is(err, timeline.ErrNothing):
		runErr = errors.Join(runErr, err)
	}
	return outcome, runErr
}

// prepareData creates the training data of the scenario's jobs and reports its source.
func prepareData(ctx context.Context, options Options) (dir string, err error) {
	dir = filepath.Join(DataCache(options.Root), "synthetic")
	if options.MNISTDir != "" {
		dir = filepath.Join(DataCache(options.Root), "mnist")
		options.Logf("Data: MNIST images from %s.", options.MNISTDir)
	} else {
		options.Logf("Data: synthetic digits (MNIST_DIR=DIR takes MNIST's IDX files from DIR).")
	}
	return dir, PrepareData(ctx, options.Tools.Trainer, options.MNISTDir, dir)
}

// drawTimeline writes the timeline as a page, and as images for documents.
func drawTimeline(dir, title string, events []eventlog.Event) error {
	draw := func(name string, render func(io.Writer) error) (err error) {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("create the timeline: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		return render(file)
	}
	if err := draw("timeline.html", func(w io.Writer) error { return timeline.Render(w, title, events) }); err != nil {
		return err
	}
	var errs []error
	for _, scheme := range []timeline.Scheme{timeline.Light, timeline.Dark} {
		errs = append(errs, draw("timeline-"+string(scheme)+".svg", func(w io.Writer) error { return timeline.RenderImage(w, events, scheme) }))
	}
	return errors.Join(errs...)
}

// freshDir locks a directory against other runs until unlock is called, and empties it.
func freshDir(dir string) (unlock func() error, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the output directory: %w", err)
	}
	// The lock lies beside the directory, so that emptying it leaves the lock alone.
	lock := flock.New(dir + ".lock")
	if locked, err := lock.TryLock(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	} else if !locked {
		return nil, fmt.Errorf("another run uses the output directory %s; wait until it has ended", dir)
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
