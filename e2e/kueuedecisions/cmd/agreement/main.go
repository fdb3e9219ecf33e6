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
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

func main() {
	var c command
	flag.Uint64Var(&c.first, "first", 1, "the seed of the first scenario of each family")
	flag.Uint64Var(&c.scenarios, "scenarios", 20_000, "number of scenarios, of all families together; as many of each")
	flag.StringVar(&c.output, "output", "", "file to write; empty: standard output")
	flag.StringVar(&c.known, "known", "", "file of results: those in it of the same releases are not compared again, and new ones are added")
	flag.StringVar(&c.revision, "revision", "", "with -known: the revision of the engine that is compared")
	flag.StringVar(&c.earlier, "earlier", "", "with -known: an earlier revision of the engine whose results count, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := c.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agreement:", err)
		os.Exit(1)
	}
}

type command struct {
	first, scenarios uint64
	output, known    string
	revision         string
	earlier          string

	tally kueuedecisions.Tally
}

// each is the number of scenarios of each family.
func (c *command) each() uint64 {
	families := uint64(len(draw.Families()))
	return (c.scenarios + families - 1) / families
}

// betweenProgress is the time between two lines of progress.
const betweenProgress = 10 * time.Second

// run compares and writes the page, with what was compared until then when it is stopped.
func (c *command) run(ctx context.Context) error {
	results, err := openResults(c.known, c.revision, c.earlier)
	if err != nil {
		return err
	}
	defer results.file.Close()
	all := kueuedecisions.All(draw.Families(), c.first, c.each())
	c.tally = kueuedecisions.Tally{}
	left := results.unknown(all, c.tally)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	progress := time.NewTicker(betweenProgress)
	defer progress.Stop()
	err = kueuedecisions.Each(ctx, left, func(drawn kueuedecisions.Drawn, compared *kueuedecisions.Comparison) {
		c.tally.Count(drawn.Family, compared.Result, compared.Steps)
		if err := errors.Join(results.add(drawn, compared), c.tell(drawn, compared)); err != nil {
			fail(err)
		}
		select {
		case <-progress.C:
			fmt.Fprintf(os.Stderr, "%d of %d scenarios: %s\n", c.tally.Sum().Scenarios(), len(all), c.tally.Sum())
		default:
		}
	})
	if c.tally.Sum().Results[kueuedecisions.Different] > 0 {
		err = errors.Join(err, errors.New("some decisions differ"))
	}
	return errors.Join(err, c.write())
}

// tell prints a difference at once, and writes the page with it.
func (c *command) tell(drawn kueuedecisions.Drawn, compared *kueuedecisions.Comparison) error {
	if compared.Result != kueuedecisions.Different {
		return nil
	}
	fmt.Fprintf(os.Stderr, "family %s, seed %d differs: %s\n", drawn.Family, drawn.Seed, compared.Difference)
	if c.output == "" {
		return nil
	}
	return c.write()
}

func (c *command) write() error {
	if c.output == "" {
		_, err := os.Stdout.WriteString(c.section())
		return err
	}
	return os.WriteFile(c.output, []byte(c.section()), 0o644) //nolint:gosec // a part of a page of the repository
}

// section is the part of the page.
func (c *command) section() string {
	sum := c.tally.Sum()
	stopped := ""
	if all := int(c.each()) * len(draw.Families()); sum.Scenarios() < all { //nolint:gosec // a number of scenarios
		stopped = fmt.Sprintf("**The comparison of %s scenarios was stopped.** ", wording.Count(int64(all)))
	}
	return fmt.Sprintf(`## Kueue %s, in process

The code of Kueue's queue manager, cache, scheduler, Workload and LocalQueue controllers runs in process, on scenarios drawn from seeds
%d to %d of each family: queues, cohorts, nodes and the steps to take. After each step the events (who is admitted, who is evicted for whom
and why), the state of each workload with its flavors, counts and domains, and the usage of each queue must be the same. In "tied"
scenarios Kueue chooses by UIDs, by the order of a Go map, or by how often it has tried a workload that fails again and again: with
the same UIDs the engine must choose likewise, and where Kueue differs with itself, as Kueue once does; the steps after that are not
compared. In "restless" ones workloads evict each other without end, in the same events again and again, with both.

%s%s of %s scenarios were equal, %s tied, %s restless, %s different (%s steps).

| family | scenarios | steps | equal | tied | restless | different |
|---|---:|---:|---:|---:|---:|---:|
%s`, inprocess.Release, c.first, c.first+c.each()-1, stopped,
		wording.Count(int64(sum.Results[kueuedecisions.Equal])), wording.Count(int64(sum.Scenarios())), wording.Count(int64(sum.Results[kueuedecisions.Tied])),
		wording.Count(int64(sum.Results[kueuedecisions.Restless])), wording.Count(int64(sum.Results[kueuedecisions.Different])), wording.Count(int64(sum.Steps)), c.tally.Rows())
}
