package elasticsim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/audit"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/timeline"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// auditFlags are those of elastic-sim audit.
type auditFlags struct {
	clusterFlags
	namespace string
	asJSON    bool
}

func newAudit() *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:   "audit [LOG]",
		Short: "List preemptions with victim, preemptor and cost",
		Long: `List the disruptions of jobs (pods and Workloads that were preempted or evicted), with
reason, preemptor, lost steps, lost seconds and the time to recover, and add up the cost
by the priority classes of preemptors and victims.

A LOG is an event log that "run --log" or the demo has written; - is standard input.
Without one the command reads the cluster: what the masters of training jobs have
reported, and the Workloads that Kueue has preempted. A cluster keeps the newest 20
disruptions of a training job, and the last preemption of a Workload.

Lost seconds are the part of the time until the recovery in which the job completed no
new step.`,
		Example: `  elastic-sim run busy.yaml --log - | elastic-sim audit -
  elastic-sim audit -n team-a --json | jq .sums`,
		Args:              cli.NeedsArguments("[LOG]"),
		ValidArgsFunction: cli.FirstArgument(cli.Files("jsonl")),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r audit.Report
			var err error
			if len(args) > 0 {
				r, err = auditOfLog(args[0], cmd.InOrStdin())
			} else {
				r, err = f.ofCluster(cmd.Context())
			}
			if err != nil {
				return err
			}
			if f.asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(r)
			}
			return printAudit(cmd.OutOrStdout(), r)
		},
	}
	f.add(c)
	c.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the jobs (default all namespaces)")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the audit as JSON")
	return c
}

func auditOfLog(path string, in io.Reader) (audit.Report, error) {
	if path != "-" {
		file, err := os.Open(filepath.Clean(path))
		if err != nil {
			return audit.Report{}, err
		}
		defer file.Close()
		in = file
	}
	events, err := eventlog.Read(in)
	return audit.OfLog(events), err
}

// mostPrinted is how many disruptions are printed for people.
const mostPrinted = 50

func printAudit(out io.Writer, r audit.Report) error {
	if len(r.Disruptions) == 0 {
		_, err := fmt.Fprintln(out, "no disruptions")
		return err
	}
	t := timeline.Table{
		Title:   "Disruptions",
		Columns: []string{"at", "job", "victim", "class", "kind", "reason", "preemptor", "lost steps", "lost", "recovered after", "all workers after"},
	}
	if n := len(r.Disruptions); n > mostPrinted {
		t.Title = fmt.Sprintf("The last %d of %s disruptions; --json prints all", mostPrinted, wording.Count(int64(n)))
	}
	for _, e := range r.Disruptions[max(0, len(r.Disruptions)-mostPrinted):] {
		by := strings.TrimPrefix(e.Preemptor(), "pod ")
		if e.ByClass != "" {
			by += " (" + e.ByClass + ")"
		}
		job := e.Job
		if e.Namespace != "" {
			job = e.Namespace + "/" + job
		}
		t.Rows = append(t.Rows, dashes(e.At.UTC().Format(time.RFC3339), job, cmp.Or(e.Pod, e.Role), e.Class, string(e.Kind), e.Reason, by,
			strconv.FormatInt(e.LostSteps, 10), inSeconds(e.LostSeconds), after(e.Recovered), after(e.FullSize)))
	}
	if err := printTable(out, t); err != nil {
		return err
	}
	sums := timeline.Table{Title: "\nBy priority class", Columns: []string{"kind", "preemptor's class", "victim's class", "count", "lost steps", "lost"}}
	for _, s := range r.Sums {
		sums.Rows = append(sums.Rows, dashes(string(s.Kind), s.ByClass, s.Class, strconv.Itoa(s.Count), strconv.FormatInt(s.LostSteps, 10), inSeconds(s.LostSeconds)))
	}
	return printTable(out, sums)
}

// dashes are the cells of a row, which come from logs and clusters of others, with a dash for what is not known.
func dashes(cells ...string) []string {
	for i, cell := range cells {
		cells[i] = cmp.Or(strings.Join(strings.Fields(wording.Printable(cell)), " "), "–")
	}
	return cells
}

func inSeconds(seconds float64) string {
	return wording.Duration(time.Duration(seconds * float64(time.Second)))
}

func after(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return inSeconds(*seconds)
}
