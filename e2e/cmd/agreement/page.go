package main

import (
	"fmt"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/e2e/differential"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/kubeversion"
)

// page is what the comparisons found.
type page struct {
	first, seeds uint64
	scheduler    *differential.Tally
	kueue        []replayed
	release      string
	older        string // rows of the table of older versions of kube-scheduler
	inProcess    string // the part about Kueue's own scheduler
}

// row is the totals as a row of the table of older versions.
func (p *page) row() string {
	c := p.scheduler.Sum()
	return fmt.Sprintf("| v%s | %d | %d | %d | %d | %d |\n", differential.SchedulerVersion, c.Decisions(),
		c.Results[differential.Equal], c.Results[differential.Tied], c.Results[differential.Approximate], c.Results[differential.Different])
}

func (p *page) differences() int {
	n := p.scheduler.Sum().Results[differential.Different]
	for _, f := range p.kueue {
		n += f.different
	}
	return n
}

// markdown is the page. The README repeats the sentences with the totals.
func (p *page) markdown() string {
	var b strings.Builder
	sum := p.scheduler.Sum()
	fmt.Fprintf(&b, `# Agreement with kube-scheduler and Kueue

`+"`make agreement`"+` writes this page. It compares the decisions of the engine behind forecasts with those of the real schedulers,
and fails if one differs.

## kube-scheduler %s

The code of kube-scheduler runs in process, on snapshots of clusters that are generated from seeds %d to %d. For each pending pod both
decide on the same input, with the same message for a pod that stays pending. "Tied" decisions are chosen at random between several
nodes or sets of victims, which must be the same for both; of more than 100 nodes kube-scheduler compares a sample, and its choice must be
among the engine's. "Approximate" means that the engine itself reports that its answer may differ, because the scores of such a sample
are relative to the sample.

%s

| family | decisions | equal | tied | approximate | different |
|---|---:|---:|---:|---:|---:|
`, kubeversion.Version, p.first, p.first+p.seeds-1, schedulerTotal(sum))
	row := func(name string, c differential.Counts) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", name, c.Decisions(),
			c.Results[differential.Equal], c.Results[differential.Tied], c.Results[differential.Approximate], c.Results[differential.Different])
	}
	for _, name := range differential.Families() {
		row(name, p.scheduler.Of(name))
	}
	row("**all**", sum)
	if p.older != "" {
		fmt.Fprintf(&b, `
The engine follows the rules of the cluster's version. With an older one, on as many snapshots, compared with the code of that version:

| kube-scheduler | decisions | equal | tied | approximate | different |
|---|---:|---:|---:|---:|---:|
%s`, p.older)
	}

	var all replayed
	for _, f := range p.kueue {
		all.recordings, all.steps = all.recordings+f.recordings, all.steps+f.steps
		all.equal, all.different = all.equal+f.equal, all.different+f.different
	}
	if p.inProcess != "" {
		fmt.Fprintf(&b, "\n%s", p.inProcess)
	}
	fmt.Fprintf(&b, `
## Recordings of Kueue %s

Recordings of a real Kueue are replayed. After each step (a workload is created or finishes, a queue changes) the events, the state of
each workload and the usage of each queue must be those that were recorded. Steps whose result depends on timing are not compared.
Many families are about topology-aware scheduling, among them layers, groups, rackreclaim, rackshares, levels, slices and
replacements; another 1,000 recordings, of single placements, are in the tests of package topology.

%s

| family | recordings | steps | equal recordings | different recordings |
|---|---:|---:|---:|---:|
`, p.release, kueueTotal(all))
	for _, f := range p.kueue {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", f.family, f.recordings, f.steps, f.equal, f.different)
	}
	fmt.Fprintf(&b, "| **all** | %d | %d | %d | %d |\n", all.recordings, all.steps, all.equal, all.different)
	return b.String()
}

func schedulerTotal(c differential.Counts) string {
	return fmt.Sprintf("%s of %s decisions were equal or tied, %s approximate, %s different.",
		wording.Count(int64(c.Results[differential.Equal]+c.Results[differential.Tied])), wording.Count(int64(c.Decisions())),
		wording.Count(int64(c.Results[differential.Approximate])), wording.Count(int64(c.Results[differential.Different])))
}

func kueueTotal(all replayed) string {
	return fmt.Sprintf("%s of %s recordings were equal (%s steps).", wording.Count(int64(all.equal)), wording.Count(int64(all.recordings)), wording.Count(int64(all.steps)))
}
