package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/timeline"
)

// Options of a telling.
type Options struct {
	Tools    Tools
	Root     string // the repository
	Out      string // where the telling leaves its files; what an earlier one left there is removed
	MNISTDir string // MNIST's IDX files; "" for synthetic digits
	Observe  func(eventlog.Event)
	Say      func(format string, args ...any) // what is no event of the story: of its cluster and data, and how long things take
}

// OutDir is where the repository's programs and tests leave what is told under a name: e2e/out/NAME.
func OutDir(root, name string) string { return filepath.Join(root, "e2e", "out", name) }

// DataCache is the directory below which the records of all stories are kept from one telling to the next. A backend
// that gives nodes directories of this machine only at their making gives them this one, at the same path.
func DataCache(root string) string { return OutDir(root, "data") }

// Outcome is a told story.
type Outcome struct {
	Events     []eventlog.Event
	Violations []Violation
	Outline    string // what must be the same on every backend
	Page       string // the timeline; "" when there was nothing to draw
}

// Tell tells a story on a backend's cluster, judges its log and draws its timeline; Out then holds events.jsonl,
// measurements.json, outline.txt, terraform.log, timeline.html and what the backend wrote. Whatever happens, the story's
// resources are destroyed and the cluster is let go when it returns; a story that failed or was interrupted has an outcome
// too.
func Tell(ctx context.Context, story Story, backend Backend, options Options) (outcome Outcome, err error) {
	unlock, err := freshDir(options.Out)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, unlock()) }()

	place := Place{Out: options.Out, Say: options.Say}
	if story.Needs.Records {
		if place.DataDir, err = prepareData(ctx, options); err != nil {
			return outcome, err
		}
	}
	cluster, release, err := backend.Cluster(ctx, story, place)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, release()) }()

	var told error
	outcome.Events, told = tell(ctx, story, setting{
		cluster:  cluster,
		tools:    options.Tools,
		examples: filepath.Join(options.Root, "examples"),
		dataDir:  place.DataDir,
		dir:      options.Out,
		observe:  options.Observe,
		say:      options.Say,
	})
	if told == nil {
		outcome.Violations = story.Promises.Check(outcome.Events)
	}
	told = errors.Join(told, writeMeasurements(options.Out, Measure(outcome.Events)))
	outcome.Outline = story.Outline(outcome.Events)
	if err := os.WriteFile(filepath.Join(options.Out, "outline.txt"), []byte(outcome.Outline), 0o600); err != nil {
		told = errors.Join(told, fmt.Errorf("the outline: %w", err))
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
	dir = filepath.Join(DataCache(options.Root), "synthetic")
	if options.MNISTDir != "" {
		dir = filepath.Join(DataCache(options.Root), "mnist")
		options.Say("Data: MNIST images from %s.", options.MNISTDir)
	} else {
		options.Say("Data: synthetic digits (MNIST_DIR=DIR takes MNIST's IDX files from DIR).")
	}
	return dir, PrepareData(ctx, options.Tools.Trainer, options.MNISTDir, dir)
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
