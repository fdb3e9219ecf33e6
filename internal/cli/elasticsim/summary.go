package elasticsim

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/timeline"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// facts are a summary's numbers, each with its name.
func facts(s *simulator.Summary) [][2]string {
	resource := s.Counted
	switch resource {
	case "nvidia.com/gpu":
		resource = "GPU"
	case "cpu":
		resource = "CPU"
	}
	inHours := s.Held >= 2*3600
	work := func(seconds int64) string {
		if inHours {
			return fmt.Sprintf("%s %s-hours", decimal(seconds, 3600), resource)
		}
		return fmt.Sprintf("%s %s-seconds", wording.Count(seconds), resource)
	}
	all := [][2]string{
		{"jobs", fmt.Sprintf("%s, of which %s completed", wording.Count(int64(s.Jobs)), wording.Count(int64(s.Finished)))},
		{"makespan", span(s.Makespan)},
	}
	for _, u := range s.Utilisation {
		all = append(all, [2]string{"utilisation of " + u.Resource, u.Share.String()})
	}
	return append(all, [][2]string{
		{"pods preempted by the scheduler", wording.Count(int64(s.Preemptions))},
		{"workloads evicted by a queue", wording.Count(int64(s.Evictions))},
		{"nodes lost", wording.Count(int64(s.Losses))},
		{"allocated to jobs", work(s.Held)},
		{"work lost", work(s.Lost)},
		{"goodput", s.Goodput.String()},
	}...)
}

// decimal is a quotient with one decimal.
func decimal(n, by int64) string {
	tenths := (n*10 + by/2) / by
	return fmt.Sprintf("%s.%d", wording.Count(tenths/10), tenths%10)
}

// span is a time for people.
func span(d scenariofile.Duration) string { return wording.Duration(d.Std()) }

// waitingTable has a line for each priority.
func waitingTable(s *simulator.Summary) timeline.Table {
	t := timeline.Table{
		Title:   "Waiting time (arrival to start) and turnaround time (arrival to completion)",
		Columns: []string{"priority", "jobs completed", "waiting p50", "p90", "p99", "max", "turnaround p50", "p90", "p99", "max"},
	}
	for _, w := range s.Waits {
		row := []string{fmt.Sprint(w.Priority), endedOf(w)}
		for _, d := range []simulator.Distribution{w.Waiting, w.Taking} {
			row = append(row, span(d.P50), span(d.P90), span(d.P99), span(d.Max))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// endedOf reports how many jobs a priority's times are of: those that have ended.
func endedOf(w simulator.Waits) string {
	return wording.Count(int64(w.Jobs)) + " of " + wording.Count(int64(w.Arrived))
}

// printSummary prints a summary for people.
func printSummary(out io.Writer, s *simulator.Summary) error {
	fmt.Fprintf(out, "%s (seed %d)\n\n", s.Scenario, s.Seed)
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, fact := range facts(s) {
		fmt.Fprintf(columns, "%s\t%s\n", fact[0], fact[1])
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := printTable(out, waitingTable(s)); err != nil {
		return err
	}
	if len(s.Unfinished) > 0 {
		more := ""
		if rest := s.Jobs - s.Finished - len(s.Unfinished); rest > 0 {
			more = fmt.Sprintf(" and %s more", wording.Count(int64(rest)))
		}
		fmt.Fprintf(out, "\nnot completed: %s%s\n", strings.Join(s.Unfinished, ", "), more)
	}
	return nil
}

func printTable(out io.Writer, t timeline.Table) error {
	fmt.Fprintf(out, "%s:\n", t.Title)
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Columns}, t.Rows...) {
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	return columns.Flush()
}
