// Command agreement compares the engine's decisions with those of kube-scheduler, on snapshots that are generated from
// seeds, and with recorded decisions of Kueue, and writes the counts as a page in Markdown. `make agreement` runs it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/differential"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", "..", "root of the repository")
	flag.Uint64Var(&o.first, "first", 1, "the seed of the first snapshot")
	flag.Uint64Var(&o.seeds, "seeds", 20_000, "number of snapshots")
	flag.StringVar(&o.recordings, "recordings", "", "recordings of Kueue: a file or a directory (default those of the repository)")
	flag.StringVar(&o.output, "output", "-", "file to write; - for standard output")
	flag.BoolVar(&o.totals, "totals", false, "compare with kube-scheduler only, and write one row with the totals, for -older")
	flag.StringVar(&o.inProcess, "kueue", "", "file with the part of the page about Kueue's own scheduler, by the command of this name in e2e/kueuedecisions")
	flag.StringVar(&o.older, "older", "", "file with the rows of comparisons with older versions of kube-scheduler")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Compare the engine with kube-scheduler and with recordings of Kueue, and write a page with the counts.\n\nFlags:")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agreement:", err)
		os.Exit(1)
	}
}

type options struct {
	root, recordings, output, older, inProcess string
	first, seeds                               uint64
	totals                                     bool
}

// errDifferent is the result of a comparison with differences; the page names their number.
var errDifferent = errors.New("some decisions differ")

func (o options) run(ctx context.Context) error {
	if o.seeds == 0 {
		return errors.New("-seeds must be at least 1")
	}
	o.recordings = cmp.Or(o.recordings, filepath.Join(o.root, "internal/scheduler/conformance/testdata"))
	var p page
	p.first, p.seeds = o.first, o.seeds
	var err error
	if p.scheduler, err = compareSnapshots(ctx, o.first, o.seeds); err != nil {
		return err
	}
	if o.totals {
		return o.finish(p.row(), p.differences())
	}
	for _, part := range []struct {
		file string
		text *string
	}{{o.older, &p.older}, {o.inProcess, &p.inProcess}} {
		if part.file == "" {
			continue
		}
		text, err := os.ReadFile(part.file)
		if err != nil {
			return err
		}
		*part.text = string(text)
	}
	if p.kueue, p.release, err = compareRecordings(o.recordings); err != nil {
		return err
	}
	return o.finish(p.markdown(), p.differences())
}

func (o options) finish(text string, differences int) error {
	if err := o.write(text); err != nil {
		return err
	}
	if differences > 0 {
		return errDifferent
	}
	return nil
}

func (o options) write(text string) error {
	if o.output == "-" {
		_, err := io.WriteString(os.Stdout, text)
		return err
	}
	return os.WriteFile(o.output, []byte(text), 0o644) //nolint:gosec // A page of the repository.
}

// betweenProgress is the time between two lines of progress.
const betweenProgress = 10 * time.Second

// compareSnapshots has kube-scheduler's code and the engine decide on the snapshots of some seeds.
func compareSnapshots(ctx context.Context, first, seeds uint64) (*differential.Tally, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var tally differential.Tally
	var done atomic.Uint64
	ticker := time.NewTicker(betweenProgress)
	defer ticker.Stop()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				fmt.Fprintf(os.Stderr, "%d of %d snapshots\n", done.Load(), seeds)
			}
		}
	}()
	differential.Each(first, seeds, 16*runtime.NumCPU(), func(seed uint64) {
		if ctx.Err() != nil {
			return
		}
		if err := compareSnapshot(ctx, seed, &tally); err != nil {
			fail(fmt.Errorf("seed %d: %w", seed, err))
		}
		done.Add(1)
	})
	return &tally, context.Cause(ctx)
}

func compareSnapshot(ctx context.Context, seed uint64, tally *differential.Tally) error {
	snapshot, family := differential.Generate(seed)
	steps, _, err := differential.DecideInProcess(ctx, snapshot)
	if errors.Is(err, context.DeadlineExceeded) {
		// Of about 20,000 schedulers in one process, one does not see an object that its tracker has. Its decisions were
		// compared with nothing yet, and a new scheduler decides on the same snapshot.
		fmt.Fprintf(os.Stderr, "seed %d is decided once more: %v\n", seed, err)
		steps, _, err = differential.DecideInProcess(ctx, snapshot)
	}
	if err != nil {
		return err
	}
	for _, step := range steps {
		compared, err := differential.Compare(ctx, step)
		if err != nil {
			return err
		}
		tally.Count(family, compared)
		if compared.Result == differential.Different {
			fmt.Fprintf(os.Stderr, "seed %d, family %q differs\n", seed, family)
		}
	}
	return nil
}

// replayed counts the recordings of a family.
type replayed struct {
	family                              string
	recordings, steps, equal, different int
}

// compareRecordings replays recordings of Kueue. It returns the counts of each family, in the order of the recordings,
// and the release of Kueue that was recorded.
func compareRecordings(path string) (families []replayed, release string, err error) {
	at := map[string]int{}
	for recording, err := range conformance.Read(path) {
		if err != nil {
			return nil, "", err
		}
		family := recording.Family()
		i, known := at[family]
		if !known {
			i = len(families)
			at[family] = i
			families = append(families, replayed{family: family})
		}
		f := &families[i]
		f.recordings++
		f.steps += recording.Asserted()
		if d := conformance.Difference(recording); d == "" {
			f.equal++
		} else {
			f.different++
			fmt.Fprintf(os.Stderr, "%s: %s\n", recording.Name, d)
		}
		release = recording.Kueue
	}
	return families, release, nil
}
