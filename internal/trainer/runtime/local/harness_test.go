package local_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli/elastictrainer"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job/jobtest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/local"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

// TestMain makes the launcher's children workers: the launcher starts this program, which is the test binary here.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "master" {
		os.Exit(masterProcess(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == "train" {
		os.Exit(elastictrainer.Main("test", os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if os.Getenv(countingModel) != "" {
			os.Exit(runWorker(os.Args[1:], func(*worker.Config) {}))
		}
		if os.Getenv(diesAt) != "" {
			os.Exit(dyingWorker(os.Args[1:]))
		}
		if paths := filepath.SplitList(os.Getenv(emulatedTrainer)); len(paths) > 0 && os.Args[len(os.Args)-1] == "0" {
			os.Exit(emulatedWorker(paths, os.Args[1:])) // the last argument is the worker's number
		}
		os.Exit(elastictrainer.Main("test", os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// run is one way of computing a job. All ways must give the same model.
type run struct {
	kernel      string // "" is the fastest
	workers     int
	threads     int
	kills       int
	aggregation string // "" is the job's own
	masterKills int    // of the process; the workers survive
	stops       int    // by SIGTERM, after which the same command is repeated
}

func (r run) String() string {
	kills := "undisturbed"
	if r.kills > 0 {
		kills = fmt.Sprintf("%d SIGKILLs", r.kills)
	}
	if r.masterKills > 0 {
		kills += fmt.Sprintf(", %d of the master", r.masterKills)
	}
	if r.stops > 0 {
		kills += fmt.Sprintf(", %d stops", r.stops)
	}
	if r.aggregation != "" {
		kills += ", aggregation " + r.aggregation
	}
	return fmt.Sprintf("%s, %d workers, %d threads, %s", cmp.Or(r.kernel, "fastest"), r.workers, r.threads, kills)
}

// ways are several runs. A list that is empty has one element, its zero value; of the threads 1.
type ways struct {
	kernels                 []string
	workers, threads, kills []int
	aggregations            []string
	masterKills, stops      []int
}

// runs are enough of the combinations that every pair of two values occurs (all-pairs testing): nearly every defect
// that depends on the way of a run depends on one or two of its parameters. With ELASTIC_SOAK they are all
// combinations, with -short the first one on the fastest kernel and the last one, which is disturbed the most.
func (w ways) runs() []run {
	all := w.product()
	switch {
	case os.Getenv("ELASTIC_SOAK") != "":
		return all
	case testing.Short() && len(all) > 2:
		return []run{all[0], all[len(all)-1]}
	default:
		return allPairs(all)
	}
}

// product is one run of every combination.
func (w ways) product() []run {
	all := []run{{}}
	all = each(all, w.kernels, func(r *run, kernel string) { r.kernel = kernel })
	all = each(all, w.workers, func(r *run, n int) { r.workers = n })
	all = each(all, w.threads, func(r *run, n int) { r.threads = n })
	all = each(all, w.kills, func(r *run, n int) { r.kills = n })
	all = each(all, w.aggregations, func(r *run, aggregation string) { r.aggregation = aggregation })
	all = each(all, w.masterKills, func(r *run, n int) { r.masterKills = n })
	all = each(all, w.stops, func(r *run, n int) { r.stops = n })
	for i := range all {
		all[i].threads = max(all[i].threads, 1)
	}
	return all
}

// pair is two values of one run, by the position of their parameters.
type pair struct {
	i, j int
	a, b any
}

func (r run) pairs() (all []pair) {
	values := []any{r.kernel, r.workers, r.threads, r.kills, r.aggregation, r.masterKills, r.stops}
	for i := range values {
		for j := range i {
			all = append(all, pair{i, j, values[i], values[j]})
		}
	}
	return all
}

// allPairs selects runs in which every pair of values that occurs in all of them occurs. It takes the run with the most
// new pairs, again and again; the first of several.
func allPairs(all []run) (selected []run) {
	covered := map[pair]bool{}
	for {
		best, most := run{}, 0
		for _, r := range all {
			count := 0
			for _, p := range r.pairs() {
				if !covered[p] {
					count++
				}
			}
			if count > most {
				best, most = r, count
			}
		}
		if most == 0 {
			return selected
		}
		for _, p := range best.pairs() {
			covered[p] = true
		}
		selected = append(selected, best)
	}
}

// each combines runs with every value of a list.
func each[T any](runs []run, list []T, set func(*run, T)) (all []run) {
	for _, r := range runs {
		for _, value := range orZero(list) {
			set(&r, value)
			all = append(all, r)
		}
	}
	return all
}

func orZero[T any](list []T) []T {
	if len(list) == 0 {
		return make([]T, 1)
	}
	return list
}

// kernels are the names of the sets that this processor can run, the fastest first.
func kernels() (names []string) {
	for _, set := range kernel.Available() {
		names = append(names, set.Name)
	}
	return names
}

// givesOneHash trains a job in several ways, which must give one model: that of the fastest kernel and one undisturbed
// worker.
func givesOneHash(t *testing.T, spec trainingjob.Job, runs []run) {
	t.Helper()
	want := train(t, spec, run{workers: 1, threads: 1})
	for _, r := range runs {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel() // a run that is killed all the time is mostly waiting
			if hash := train(t, spec, r); hash != want {
				t.Errorf("hash %s, and %s elsewhere", hash, want)
			}
		})
	}
	if n := len(kernel.Available()); n < 3 {
		t.Logf("this processor has %d of the four kernels; the others were not run", n)
	}
}

// reference is the reference job of numerics.md: 1,200 records, R = 50, B = 10, K = 4, one epoch, 30 steps.
func reference(model string) trainingjob.Job {
	return trainingjob.Job{
		Name: "reference", Namespace: "default", Model: trainingjob.Model{File: model},
		Data:     trainingjob.Data{Training: "synthetic://digits?records=1200&seed=1", Format: "recordio", Codec: "bytes", RecordsPerTask: 50},
		Training: trainingjob.Training{Epochs: 1, MinibatchSize: 10, GradsToWait: 4, Seed: 1},
	}
}

// train runs a job in one way and returns the hash of its model.
func train(t *testing.T, spec trainingjob.Job, r run) string {
	t.Helper()
	return trained(t, spec, r).SHA256
}

func trained(t *testing.T, spec trainingjob.Job, r run) *master.ModelInfo {
	t.Helper()
	if r.aggregation != "" {
		spec.Training.Aggregation = r.aggregation
	}
	j, text := load(t, spec, options(r.threads, r.kernel))
	output := spec.Output
	if output == "" {
		output = t.TempDir()
	}
	var result master.Result
	switch {
	case r.masterKills > 0 || r.stops > 0:
		result = trainAtSite(t, j, text, r, output)
	case r.kills > 0: // slow enough for so many kills
		result = processes{least: 1, most: r.workers, threads: r.threads, pace: 15 * time.Millisecond, meanwhile: func(ctx context.Context, output string) {
			killWorkers(ctx, output, r.kills)
		}}.train(t.Context(), t, j, text, output)
	default: // slow enough for all workers to take part
		result = processes{least: r.workers, most: r.workers, threads: r.threads}.train(t.Context(), t, j, text, output)
	}
	if result.Model == nil {
		t.Fatalf("%v: %+v", r, result)
	}
	return result.Model
}

// processes configures the workers of local.Train, and what happens while they train.
type processes struct {
	least, most int
	threads     int
	pace        time.Duration // the least duration of a gradient
	reporter    master.Reporter
	log         io.Writer                                // of the workers; nil for the test's
	meanwhile   func(ctx context.Context, output string) // ctx ends with the training; nil for nothing
	history     *history.Recorder                        // of the job; nil if the test does not follow it
	silence     time.Duration                            // after which a worker is lost; 0: what no busy machine causes
	limit       time.Duration                            // of the training; 0: patience.Long
}

func (p processes) train(ctx context.Context, t *testing.T, j *job.Job, text []byte, output string) master.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.limit, patience.Long))
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		if p.meanwhile != nil {
			p.meanwhile(ctx, output)
		}
	}()
	if p.reporter == nil {
		p.reporter = discard{}
	}
	if p.log == nil {
		p.log = &testLog{t: t}
	}
	result, err := local.Train(ctx, local.Config{
		Job: j, JobJSON: text, ModelName: filepath.Base(j.Spec.Model.File), Min: p.least, Max: p.most, Output: output,
		WorkerArgs: []string{"--kernel", j.Kernel.Name, "--threads", strconv.Itoa(p.threads), "--pace", p.pace.String(), "--log-level", "error"},
		WorkerLog:  p.log, Listen: "127.0.0.1:0", Reporter: p.reporter, Log: slog.New(slog.DiscardHandler),
		History: p.history, Silence: cmp.Or(p.silence, patience.Medium),
	})
	cancel()
	<-over
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// options are those of every process of a run: of the test itself, and of the masters and workers that it starts.
func options(threads int, kernel string) job.Options {
	o := job.Options{Threads: threads, Kernel: kernel}
	if os.Getenv(countingModel) != "" {
		o.Compile = compileCounting
	}
	return o
}

// load loads a job, and returns it as the workers are to load it.
func load(t *testing.T, spec trainingjob.Job, o job.Options) (*job.Job, []byte) {
	t.Helper()
	var err error
	if spec.Model.File, err = filepath.Abs(spec.Model.File); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return jobtest.Load(t, spec, o), text
}

// killWorkers kills n workers of the run that writes to output, at random times.
func killWorkers(ctx context.Context, output string, n int) {
	for n > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(20+rand.IntN(60)) * time.Millisecond):
		}
		if pids := workersOf(output); len(pids) > 0 {
			if syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL) == nil {
				n--
			}
		}
	}
}

// workersOf lists the child processes that work for the run that writes to output.
func workersOf(output string) []int { return childrenOf("worker", output) }

// childrenOf lists those with a role, which is their first argument.
func childrenOf(role, output string) []int {
	var pids []int
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			command, _ := os.ReadFile(filepath.Join("/proc", field, "cmdline"))
			if err == nil && strings.Contains(string(command), "\x00"+role+"\x00") && strings.Contains(string(command), output) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// ready lists the workers that take part in a job, by their numbers.
func ready(h *history.Recorder) (ids []int) {
	for _, w := range h.Snapshot().Status.Workers {
		if w.State == string(coordinator.WorkerReady) {
			ids = append(ids, w.ID)
		}
	}
	return ids
}

// signalWorker signals one worker of the run that writes to output, and reports whether it is there.
func signalWorker(output string, id int, signal syscall.Signal) bool {
	for _, pid := range workersOf(output) {
		command, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")) // it may have ended
		if strings.HasSuffix(string(command), fmt.Sprintf("\x00%d\x00", id)) {          // the last argument
			return syscall.Kill(pid, signal) == nil
		}
	}
	return false
}

func only(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v: %v", paths, err)
	}
	return paths[0]
}

// discard is a reporter that discards everything.
type discard struct{}

func (discard) Status(trainingjob.Status) {}
func (discard) Notice(coordinator.Notice) {}

// testLog writes the workers' logs to the test's log.
type testLog struct{ t *testing.T }

func (l *testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}
