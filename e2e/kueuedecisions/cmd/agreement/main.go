// Command agreement compares the quota engine with Kueue's own scheduler, on scenarios that are drawn from seeds, and
// writes the counts as a part of the page that e2e/cmd/agreement makes. `make agreement` runs both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions"
	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/draw"
	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/inprocess"
)

func main() {
	var first, scenarios uint64
	var output string
	flag.Uint64Var(&first, "first", 1, "the seed of the first scenario of each family")
	flag.Uint64Var(&scenarios, "scenarios", 20_000, "number of scenarios, of all families together; as many of each")
	flag.StringVar(&output, "output", "", "file to write; empty: standard output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, first, scenarios, output)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agreement:", err)
		os.Exit(1)
	}
}

// betweenProgress is the time between two lines of progress.
const betweenProgress = 10 * time.Second

func run(ctx context.Context, first, scenarios uint64, output string) error {
	families := draw.Families()
	each := (scenarios + uint64(len(families)) - 1) / uint64(len(families))
	tally := kueuedecisions.Tally{}
	told := time.Now()
	err := kueuedecisions.Each(ctx, families, first, each, func(family string, seed uint64, c *kueuedecisions.Comparison) {
		tally.Count(family, c)
		if c.Result == kueuedecisions.Different {
			fmt.Fprintf(os.Stderr, "family %s, seed %d differs: %s\n", family, seed, c.Difference)
		}
		if time.Since(told) > betweenProgress {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d scenarios\n", tally.Sum().Scenarios(), each*uint64(len(families)))
		}
	})
	if err != nil {
		return err
	}
	if err := write(output, section(tally, first, each)); err != nil {
		return err
	}
	if tally.Sum().Results[kueuedecisions.Different] > 0 {
		return errors.New("some decisions differ")
	}
	return nil
}

func write(output, text string) error {
	if output == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(output, []byte(text), 0o644) //nolint:gosec // a part of a page of the repository
}

// section is the part of the page.
func section(tally kueuedecisions.Tally, first, each uint64) string {
	sum := tally.Sum()
	return fmt.Sprintf(`## Kueue %s, in process

The code of Kueue's queue manager, cache, scheduler and Workload controller runs in process, on scenarios that are drawn from seeds
%d to %d of each family: queues, cohorts, nodes and the steps to take. After each step the events (who is admitted, who is evicted for whom
and why), the state of each workload with its flavors, counts and domains, and the usage of each queue must be the same. In "tied"
scenarios Kueue chooses by UIDs, by the order of a Go map, or by how often it has tried a workload that fails again and again: with
the same UIDs the engine must choose likewise, and where Kueue differs with itself, as Kueue once does; the steps after that are not
compared. In "restless" ones workloads evict each other without end, with both.

%s of %s scenarios were equal, %s tied, %s restless, %s different (%s steps).

| family | scenarios | steps | equal | tied | restless | different |
|---|---:|---:|---:|---:|---:|---:|
%s`, inprocess.Release, first, first+each-1,
		thousands(sum.Results[kueuedecisions.Equal]), thousands(sum.Scenarios()), thousands(sum.Results[kueuedecisions.Tied]),
		thousands(sum.Results[kueuedecisions.Restless]), thousands(sum.Results[kueuedecisions.Different]), thousands(sum.Steps), tally.Rows())
}

// thousands is a number with a comma between its thousands.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
