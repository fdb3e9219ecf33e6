package local_test

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/local"
)

func TestTheReferenceJobGivesOneHash(t *testing.T) {
	all := ways{kernels: kernels(), workers: []int{1, 2, 3, 4}, threads: []int{1, 2, 3}, kills: []int{0, 20}}
	if underRace {
		all.workers, all.threads = []int{1, 3}, []int{1, 3}
	}
	givesOneHash(t, reference("testdata/reference_model.py"), all.runs())
}

func TestResidualLayersAndAnOptimizerWithSlotsGiveOneHashWhateverTheMembership(t *testing.T) {
	var runs []run
	for i, kernel := range kernels() {
		runs = append(runs, run{kernel: kernel, workers: 1 + i, threads: 1}, run{kernel: kernel, workers: 3, threads: 2, kills: 5})
	}
	givesOneHash(t, reference("testdata/residual_model.py"), runs)
}

func TestTabularModelsGiveOneHashWhateverTheMembership(t *testing.T) {
	all := ways{kernels: kernels(), workers: []int{1, 2, 3}}
	killed := ways{kernels: kernels(), workers: []int{3}, kills: []int{10}}
	between := ways{workers: []int{3}, kills: []int{0, 10}, aggregations: []string{trainingjob.AggregationAllReduce}}
	if os.Getenv("ELASTIC_SOAK") != "" {
		killed.workers, between.workers, between.kernels = all.workers, all.workers, all.kernels
	}
	if underRace {
		all.workers, all.kernels, killed.kernels = []int{3}, nil, nil
	}
	jobs := zooJobs(t)
	models := []string{"deepfm", "wide_deep", "census_dnn"}
	if testing.Short() {
		models = models[:1]
	}
	for _, model := range models {
		t.Run(model, func(t *testing.T) {
			givesOneHash(t, jobs[model], slices.Concat(all.runs(), killed.runs(), between.runs()))
		})
	}
}

func TestImageModelsGiveOneHashWhateverTheMembership(t *testing.T) {
	if underRace || testing.Short() {
		t.Skip("it trains large convolutions many times")
	}
	vectors := slices.DeleteFunc(kernels(), func(name string) bool { return name == "portable" && os.Getenv("ELASTIC_SOAK") == "" }) // half a minute each
	all := ways{kernels: vectors, workers: []int{1, 2, 3}}
	killed := ways{kernels: vectors, workers: []int{3}, kills: []int{5}}
	between := ways{workers: []int{3}, kills: []int{0, 5}, aggregations: []string{trainingjob.AggregationAllReduce}}
	jobs := zooJobs(t)
	for _, model := range []string{"cifar10", "resnet"} {
		t.Run(model, func(t *testing.T) {
			givesOneHash(t, jobs[model], slices.Concat(all.runs(), killed.runs(), between.runs()))
		})
	}
}

func TestAModelOnCSVGivesOneHashWhateverTheMembership(t *testing.T) {
	all, killed := ways{kernels: kernels(), workers: []int{1, 3}}, ways{kernels: kernels(), workers: []int{3}, kills: []int{3}}
	givesOneHash(t, zooJobs(t)["iris"], slices.Concat(all.runs(), killed.runs()))
}

func TestTheTutorialsNetworkGivesOneHashOnEveryKernel(t *testing.T) {
	spec := reference("../../../../examples/models/mnist_functional_api.py")
	spec.Training.GradsToWait = 2
	spec.Data.RecordsPerTask = 100
	if testing.Short() {
		t.Skip("it trains a large network eight times")
	}
	var runs []run
	for _, kernel := range kernels() {
		if kernel == "portable" && os.Getenv("ELASTIC_SOAK") == "" {
			continue // half a minute each
		}
		runs = append(runs, run{kernel: kernel, workers: 1, threads: 2}, run{kernel: kernel, workers: 2, threads: 1},
			run{kernel: kernel, workers: 2, threads: 1, kills: 5}, run{kernel: kernel, workers: 3, threads: 1})
	}
	givesOneHash(t, spec, runs)
}

func TestTheSameCommandAgainFindsTheFinishedJob(t *testing.T) {
	spec := reference("testdata/reference_model.py")
	spec.Data.Training = "synthetic://digits?records=80&seed=1"
	spec.Output = t.TempDir()
	first := train(t, spec, run{kernel: kernel.Available()[len(kernel.Available())-1].Name, workers: 1, threads: 1})
	info := only(t, filepath.Join(spec.Output, "*", "model.json"))
	before, err := os.Stat(info)
	if err != nil {
		t.Fatal(err)
	}
	if again := train(t, spec, run{kernel: "portable", workers: 2, threads: 1}); again != first {
		t.Errorf("hash %s, then %s", first, again)
	}
	if after, err := os.Stat(info); err != nil || after.ModTime() != before.ModTime() {
		t.Errorf("the model was written again: %v", err)
	}
}

func TestASecondMasterOfTheSameJobIsRefusedWithTheProcessThatRunsIt(t *testing.T) {
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
	j, text := load(t, reference("testdata/reference_model.py"), options(1, ""))
	_, err = local.Train(t.Context(), local.Config{
		Job: j, JobJSON: text, ModelName: "model.py", Min: 1, Max: 1, Output: t.TempDir(), WorkerLog: io.Discard,
		Listen: taken.Addr().String(), Reporter: discard{}, Log: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("a port in use: %v", err)
	}
}
