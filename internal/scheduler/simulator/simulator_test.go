package simulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

var rewrite = flag.Bool("rewrite", false, "write what the runs log into testdata instead of comparing with it; read the difference before committing it")

var examples = filepath.Join("..", "..", "..", "examples", "scenarios")

func read(t testing.TB, path string) *scenariofile.Scenario {
	t.Helper()
	s, err := scenariofile.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a scenario and returns its log, as it would be in a file, and its summary.
func run(t testing.TB, s *scenariofile.Scenario, options simulator.Options) ([]byte, *simulator.Summary) {
	t.Helper()
	var log bytes.Buffer
	options.Log = func(e eventlog.Event) error { return eventlog.Write(&log, e) }
	summary, err := simulator.Run(context.Background(), s, options)
	if err != nil {
		t.Fatal(err)
	}
	return log.Bytes(), summary
}

// The golden logs were written on amd64; other machines must write the same bytes.
func TestAScenarioHasOneLogOnEveryMachine(t *testing.T) {
	for _, path := range []string{
		filepath.Join(examples, "elastic-scheduling.yaml"), filepath.Join(examples, "queue-priorities.yaml"),
		filepath.Join(examples, "elastic-under-a-queue.yaml"), filepath.Join("testdata", "busy.yaml"),
	} {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			log, summary := run(t, read(t, path), simulator.Options{})
			text, err := json.MarshalIndent(summary, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name[:len(name)-len(".yaml")]+".jsonl", log)
			golden(t, name[:len(name)-len(".yaml")]+".summary.json", append(text, '\n'))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	gotLines, wantLines := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(gotLines), len(wantLines)) {
		if !bytes.Equal(gotLines[i], wantLines[i]) {
			t.Fatalf("%s, line %d:\ngot  %s\nwant %s", name, i+1, gotLines[i], wantLines[i])
		}
	}
	t.Fatalf("%s has %d lines, want %d", name, len(gotLines), len(wantLines))
}

func TestAnotherSeedIsAnotherRun(t *testing.T) {
	path := filepath.Join("testdata", "busy.yaml")
	first, _ := run(t, read(t, path), simulator.Options{})
	second, _ := run(t, read(t, path), simulator.Options{Seed: new(uint64(8))})
	if bytes.Equal(first, second) {
		t.Error("seeds 7 and 8 give the same log")
	}
}

func TestALogChangesNothingOfARun(t *testing.T) {
	for _, path := range []string{filepath.Join("testdata", "busy.yaml"), filepath.Join(examples, "research-in-gangs.yaml")} {
		_, logged := run(t, read(t, path), simulator.Options{})
		plain, err := simulator.Run(context.Background(), read(t, path), simulator.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain, logged); diff != "" {
			t.Errorf("%s with a log (+) and without (-): %s", filepath.Base(path), diff)
		}
	}
}

func TestAStoppedRunReportsItsStep(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := simulator.Run(ctx, read(t, filepath.Join("testdata", "busy.yaml")), simulator.Options{}); err == nil {
		t.Error("a run whose context has ended continues")
	}
}

func TestElasticJobsKeepMoreOfTheirWorkThanGangs(t *testing.T) {
	_, gangs := run(t, read(t, filepath.Join(examples, "research-in-gangs.yaml")), simulator.Options{})
	_, elastic := run(t, read(t, filepath.Join(examples, "research-in-elastic-jobs.yaml")), simulator.Options{})
	if gangs.Jobs != elastic.Jobs || gangs.Preemptions == 0 || elastic.Preemptions == 0 {
		t.Fatalf("the scenarios cannot be compared: %d and %d jobs, %d and %d preemptions", gangs.Jobs, elastic.Jobs, gangs.Preemptions, elastic.Preemptions)
	}
	if elastic.Goodput <= gangs.Goodput || elastic.Lost >= gangs.Lost || elastic.Held >= gangs.Held {
		t.Errorf("goodput %s with elastic jobs, %s with gangs; %d and %d GPU-seconds lost, %d and %d held",
			elastic.Goodput, gangs.Goodput, elastic.Lost, gangs.Lost, elastic.Held, gangs.Held)
	}
}
