package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/local"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// TestMain lets the launcher's children be workers: it starts this program again, which is the test binary here.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if os.Getenv("COUNTING_MODEL") != "" {
			os.Exit(countingWorker(os.Args[1:]))
		}
		if paths := filepath.SplitList(os.Getenv(emulatedTrainer)); len(paths) > 0 && os.Args[len(os.Args)-1] == "0" {
			os.Exit(emulatedWorker(paths, os.Args[1:])) // the last argument is the worker's number
		}
		os.Exit(cli.Main("test", os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// run is one way of computing a job.
type run struct {
	kernel  string
	workers int
	threads int
	kills   int
}

func (r run) String() string {
	kills := "undisturbed"
	if r.kills > 0 {
		kills = fmt.Sprintf("%d SIGKILLs", r.kills)
	}
	return fmt.Sprintf("%s, %d workers, %d threads, %s", r.kernel, r.workers, r.threads, kills)
}

// reference is the reference job of numerics.md: 1,200 records, R = 50, B = 10, K = 4, one epoch, 30 steps.
func reference(model string) trainingjob.Job {
	return trainingjob.Job{
		Name: "reference", Namespace: "default", Model: trainingjob.Model{File: model},
		Data:     trainingjob.Data{Training: "synthetic://digits?records=1200&seed=1", Format: "recordio", Codec: "bytes", RecordsPerTask: 50},
		Training: trainingjob.Training{Epochs: 1, MinibatchSize: 10, GradsToWait: 4, Seed: 1},
	}
}

func TestTheReferenceJobGivesOneHash(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains the reference job dozens of times")
	}
	want := train(t, reference("testdata/reference_model.py"), run{kernel.Available()[0].Name, 1, 1, 0})
	for _, set := range kernel.Available() {
		for workers := 1; workers <= 4; workers++ {
			for threads := 1; threads <= 3; threads++ {
				if underRace && (workers%2 == 0 || threads == 2) {
					continue
				}
				for _, kills := range []int{0, 20} {
					r := run{set.Name, workers, threads, kills}
					t.Run(r.String(), func(t *testing.T) {
						t.Parallel() // a run that is killed all the time is mostly waiting
						if hash := train(t, reference("testdata/reference_model.py"), r); hash != want {
							t.Errorf("hash %s, and %s elsewhere", hash, want)
						}
					})
				}
			}
		}
	}
	if n := len(kernel.Available()); n < 3 {
		t.Logf("this processor has %d of the four kernels; the others were not run", n)
	}
}

func TestResidualLayersAndAnOptimizerWithSlotsGiveOneHashWhoeverComesAndGoes(t *testing.T) {
	spec := reference("testdata/residual_model.py")
	want := ""
	for i, set := range kernel.Available() {
		for _, r := range []run{{set.Name, 1 + i, 1, 0}, {set.Name, 3, 2, 5}} {
			t.Run(r.String(), func(t *testing.T) {
				hash := train(t, spec, r)
				if want == "" {
					want = hash
				}
				if hash != want {
					t.Errorf("hash %s, and %s elsewhere", hash, want)
				}
			})
		}
	}
}

func TestTheTutorialsNetworkGivesOneHashOnEveryKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains the tutorial's network several times")
	}
	spec := reference("../../../examples/models/mnist_functional_api.py")
	spec.Training.GradsToWait = 2
	spec.Data.RecordsPerTask = 100
	want := ""
	for _, set := range kernel.Available() {
		if set.Name == "portable" && os.Getenv("ELASTIC_SOAK") == "" {
			continue // half a minute each
		}
		for _, r := range []run{{set.Name, 1, 2, 0}, {set.Name, 2, 1, 0}, {set.Name, 2, 1, 5}, {set.Name, 3, 1, 0}} {
			hash := train(t, spec, r)
			if want == "" {
				want = hash
			}
			if hash != want {
				t.Errorf("%v: hash %s, and before %s", r, hash, want)
			}
		}
	}
}

func TestTheSameCommandAgainFindsTheJobDone(t *testing.T) {
	spec := reference("testdata/reference_model.py")
	spec.Data.Training = "synthetic://digits?records=80&seed=1"
	spec.Output = t.TempDir()
	first := train(t, spec, run{kernel.Available()[len(kernel.Available())-1].Name, 1, 1, 0})
	info := only(t, filepath.Join(spec.Output, "*", "model.json"))
	before, err := os.Stat(info)
	if err != nil {
		t.Fatal(err)
	}
	if again := train(t, spec, run{"portable", 2, 1, 0}); again != first {
		t.Errorf("hash %s, then %s", first, again)
	}
	if after, err := os.Stat(info); err != nil || after.ModTime() != before.ModTime() {
		t.Errorf("the model was written again: %v", err)
	}
}

func TestASecondMasterOfTheSameJobIsRefusedWithTheProcessThatHasIt(t *testing.T) {
	dir := t.TempDir()
	first, err := local.NewFence(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = local.NewFence(dir)
	if err == nil || !strings.Contains(err.Error(), "already has a master") || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("the second master: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := local.NewFence(dir)
	if err != nil || second.Generation() != first.Generation()+1 {
		t.Errorf("after the first has ended: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAPortInUseIsRefusedWithTheRemedy(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	j, text := load(t, reference("testdata/reference_model.py"), job.Options{Threads: 1})
	_, err = local.Train(t.Context(), local.Config{
		Job: j, JobJSON: text, ModelName: "model.py", Min: 1, Max: 1, Output: t.TempDir(), WorkerLog: io.Discard,
		Listen: taken.Addr().String(), Reporter: discard{}, Log: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("a port in use: %v", err)
	}
}

// train runs a job with worker processes and returns the hash of its model.
func train(t *testing.T, spec trainingjob.Job, r run) string {
	t.Helper()
	j, text := load(t, spec, job.Options{Threads: r.threads, Kernel: r.kernel})
	result := trainLoaded(t, j, text, r)
	if result.Model == nil {
		t.Fatalf("%v: %+v", r, result)
	}
	return result.Model.SHA256
}

func trainLoaded(t *testing.T, j *job.Job, text []byte, r run) master.Result {
	t.Helper()
	output := j.Spec.Output
	if output == "" {
		output = t.TempDir()
	}
	pace, least := "0s", r.workers // undisturbed, all compute, and none is left out for having started late
	if r.kills > 0 {
		pace, least = "15ms", 1 // so that the job lasts long enough to be killed so often
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	chaos := make(chan struct{})
	go func() {
		defer close(chaos)
		killWorkers(ctx, output, r.kills)
	}()
	log := &testLog{t: t}
	result, err := local.Train(ctx, local.Config{
		Job: j, JobJSON: text, ModelName: "model.py", Min: least, Max: r.workers, Output: output,
		WorkerArgs: []string{"--kernel", r.kernel, "--threads", strconv.Itoa(r.threads), "--pace", pace, "--log-level", "error"},
		WorkerLog:  log, Listen: "127.0.0.1:0", Reporter: discard{}, Log: slog.New(slog.DiscardHandler),
	})
	cancel()
	<-chaos
	if err != nil {
		t.Fatalf("%v: %v", r, err)
	}
	return result
}

func load(t *testing.T, spec trainingjob.Job, o job.Options) (*job.Job, []byte) {
	t.Helper()
	path, err := filepath.Abs(spec.Model.File)
	if err != nil {
		t.Fatal(err)
	}
	spec.Model.File = path
	model, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(t.Context(), spec, "model.py", model, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return j, text
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
func workersOf(output string) []int {
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
			if err == nil && strings.Contains(string(command), output) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func only(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%v: %v", paths, err)
	}
	return paths[0]
}

// discard is a reporter for nobody.
type discard struct{}

func (discard) Status(trainingjob.Status) {}
func (discard) Notice(coordinator.Notice) {}

// testLog writes what workers say to the test's log.
type testLog struct{ t *testing.T }

func (l *testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}
