package elasticsim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/timeline"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/trace"
)

// runFlags are the flags of run.
type runFlags struct {
	report, log string
	seed        uint64
	json        bool
}

func newRun() *cobra.Command {
	var flags runFlags
	c := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Simulate a scenario file: days in seconds",
		Long: `Simulate the jobs of a scenario, and print waiting times by priority, utilization,
evictions, lost work and goodput. The simulation uses Kueue's rules for quota,
kube-scheduler's rules for placement, and elastic-trainer's coordinator for elastic
jobs.

A SCENARIO is a YAML file; examples/scenarios contains examples. Its nodes,
classes, queues and jobs use the field names of Kubernetes and Kueue. For example:

  name: Two jobs
  nodes: [{name: node, count: 3, allocatable: {cpu: "4", memory: 16Gi}}]
  priorityClasses: [{name: high, value: 1000}, {name: low, value: 10}]
  jobs:
    - name: gang                 # pods that compute only while all of them run
      gang: {pods: 2, requests: {cpu: "3"}, priorityClass: low, runs: 20m,
             checkpointEvery: 5m}
    - name: elastic              # a master, and preemptible workers
      submit: 5m
      elastic:
        master: {requests: {cpu: "1"}, priorityClass: high}
        workers: {min: 1, max: 3, requests: {cpu: "3"}, priorityClass: high}
        steps: 10000
        speed: {stepsPerSecond: {1: 10, 2: 19, 3: 26}}

In addition to jobs, or instead of them, a scenario may name a recorded trace (trace:
{format: philly, jobs: cluster_job_log, nodes: cluster_machine_list}). The formats are
alibaba-gpu-v2023, alibaba-spot-v2026, philly, helios, and synthetic, which needs no
file.

The same scenario and seed produce the same event log, byte for byte, on every machine.`,
		Example: `  elastic-sim run examples/scenarios/elastic-scheduling.yaml -o report.html
  elastic-sim run busy.yaml --seed 2 --log events.jsonl --json | jq .goodput`,
		Args:              cli.NeedsArguments("SCENARIO"),
		ValidArgsFunction: cli.FirstArgument(scenarios),
		RunE: func(cmd *cobra.Command, paths []string) error {
			var seed *uint64
			if cmd.Flags().Changed("seed") {
				seed = &flags.seed
			}
			return runScenario(cmd, paths[0], seed, flags)
		},
	}
	c.Flags().StringVarP(&flags.report, "output", "o", "", "write an HTML page with a timeline to this `file`")
	c.Flags().StringVar(&flags.log, "log", "", "write every event to this `file` as JSON lines; - is standard output, without the summary")
	cli.CompleteFiles(c, "output", "html")
	cli.CompleteFiles(c, "log", "jsonl")
	c.Flags().Uint64Var(&flags.seed, "seed", 0, "seed; overrides the scenario's")
	cli.Seed(c, "seed")
	c.Flags().BoolVar(&flags.json, "json", false, "print the summary as JSON")
	return c
}

// scenarios completes by files of YAML.
var scenarios = cli.Files("yaml", "yml")

func runScenario(cmd *cobra.Command, path string, seed *uint64, flags runFlags) (err error) {
	s, err := load(cmd, path)
	if err != nil {
		return err
	}
	var history eventlog.Builder
	logTo, closeLog, err := openLog(cmd, flags.log)
	if err != nil {
		return err
	}
	defer func() {
		if err = firstOf(err, closeLog()); err == nil && flags.log != "" && flags.log != "-" {
			fmt.Fprintf(cmd.ErrOrStderr(), "wrote the event log to %s\n", flags.log)
		}
	}()
	options := simulator.Options{Seed: seed}
	if logTo != nil || flags.report != "" {
		options.Log = func(e eventlog.Event) error {
			if flags.report != "" {
				history.Add(e)
			}
			if logTo == nil {
				return nil
			}
			return eventlog.Write(logTo, e)
		}
	}
	summary, err := simulate(cmd, s, options)
	if err != nil {
		return err
	}
	if flags.report != "" {
		if err := writeReport(flags.report, s, summary, history.History()); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "wrote the report to %s\n", flags.report)
	}
	switch {
	case flags.log == "-":
		return nil
	case flags.json:
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(summary)
	}
	return printSummary(cmd.OutOrStdout(), summary)
}

// load reads a scenario with its trace.
func load(cmd *cobra.Command, path string) (*scenariofile.Scenario, error) {
	s, err := scenariofile.ReadFile(path)
	if err != nil {
		return nil, err
	}
	omitted, err := trace.Into(s)
	if err != nil {
		return nil, err
	}
	for _, o := range omitted {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: skipped %d rows of the trace, %s\n", o.Rows, o.Reason)
	}
	return s, nil
}

// simulate runs a scenario and shows how far it is.
func simulate(cmd *cobra.Command, s *scenariofile.Scenario, options simulator.Options) (*simulator.Summary, error) {
	p := newProgress(cmd.ErrOrStderr(), s.Name)
	defer p.end()
	options.Progress = p.show
	return simulator.Run(cmd.Context(), s, options)
}

// openLog opens what --log names; nil without one.
func openLog(cmd *cobra.Command, path string) (to io.Writer, end func() error, err error) {
	switch path {
	case "":
		return nil, func() error { return nil }, nil
	case "-":
		lines := bufio.NewWriter(cmd.OutOrStdout())
		return lines, lines.Flush, nil
	}
	f, err := os.Create(filepath.Clean(path))
	if err != nil {
		return nil, nil, fmt.Errorf("write the event log: %w", err)
	}
	lines := bufio.NewWriter(f)
	return lines, func() error { return firstOf(lines.Flush(), f.Close()) }, nil
}

func firstOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func writeReport(path string, s *scenariofile.Scenario, summary *simulator.Summary, history *eventlog.History) error {
	page := timeline.Page{Title: s.Name, Text: s.Description, Simulated: true, Facts: facts(summary), Tables: []timeline.Table{waitingTable(summary)}}
	if err := cli.WriteFile(path, 0o644, func(out io.Writer) error { return page.Render(out, history) }); err != nil {
		return fmt.Errorf("write the report %s: %w", path, err)
	}
	return nil
}
