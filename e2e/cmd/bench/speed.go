package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
)

//go:embed network_torch.py
var torchProgram string

// python is Debian's, which finds Debian's python3-torch.
const python = "/usr/bin/python3"

// speedTime is how long one measurement lasts, of this project or of PyTorch.
const speedTime = 2 * time.Second

// networks are those whose speed is compared: built-in models, which network_torch.py has under the same names.
var networks = []struct{ model, title string }{
	{"mnist", "training speed"},
	{"cifar10", "training speed, CIFAR-10 network"},
}

// measureSpeed compares records per CPU-second of one whole training step (forward, backward, update) on one thread
// with PyTorch's, round by round: of the tutorial's network, and of ElasticDL's for CIFAR-10.
func measureSpeed(ctx context.Context, o options) ([]figure, error) {
	torch := exec.CommandContext(ctx, python, "-c", "import torch").Run() == nil
	var figures []figure
	for _, network := range networks {
		built, err := zoo.Load(network.model)
		if err != nil {
			return nil, err
		}
		model, _, err := modelfile.Load(built.FileName(), built.Source, modelfile.Options{})
		if err != nil {
			return nil, err
		}
		for _, set := range kernel.Available() {
			if set.Name == "portable" {
				continue
			}
			for _, records := range []int{10, 64} {
				name := fmt.Sprintf("%s, %s, minibatch %d", network.title, set.Name, records)
				f, err := compareSpeed(ctx, o, name, network.model, model, set, records, torch)
				if err != nil {
					return nil, err
				}
				figures = append(figures, f)
			}
		}
	}
	return figures, nil
}

func compareSpeed(ctx context.Context, o options, name, network string, m *graph.Model, set kernel.Set, records int, torch bool) (figure, error) {
	var ours, theirs, ratio []float64
	for range o.rounds {
		speed, err := stepSpeed(ctx, m, set, records)
		if err != nil {
			return figure{}, err
		}
		ours = append(ours, speed)
		if !torch {
			continue
		}
		other, err := torchSpeed(ctx, network, records)
		if err != nil {
			return figure{}, err
		}
		theirs = append(theirs, other)
		ratio = append(ratio, speed/other)
	}
	if !torch {
		return figure{Name: name, Skipped: fmt.Sprintf("no PyTorch for %s (Debian: python3-torch); ours %.0f records per CPU-second", python, medianOf(ours))}, nil
	}
	return ratios(name, "≥ 1.5", fmt.Sprintf("PyTorch, one thread: %.0f and %.0f records per CPU-second", medianOf(ours), medianOf(theirs)), ratio), nil
}

func medianOf(samples []float64) float64 { return ratios("", "", "", samples).Median }

// stepSpeed is our records per CPU-second, by the fastest tenth of the steps: what other load on the machine slows
// least, for both sides.
func stepSpeed(ctx context.Context, m *graph.Model, set kernel.Set, records int) (float64, error) {
	n, err := nn.Compile(m, nn.Options{Kernel: set, Threads: 1, MaxBatch: records})
	if err != nil {
		return 0, err
	}
	defer n.Close()
	batch, err := firstBatch(ctx, m, records)
	if err != nil {
		return 0, err
	}
	state, out := make([]float32, n.StateSize()), make([]float32, n.TrainableSize()+n.StatsSize())
	n.Init(state, 1)
	sum, stats := gradient.Sum{Dense: out[:n.TrainableSize()]}, [][]float32{out[n.TrainableSize():]}
	step := int64(0)
	one := func() error {
		if _, err := n.Gradient(state, batch, records, step, 0, 1, out, nil); err != nil {
			return err
		}
		step++
		return n.Apply(state, sum, stats, step)
	}
	if err := one(); err != nil { // warm
		return 0, err
	}
	var times []float64
	for end := time.Now().Add(speedTime); (time.Now().Before(end) || len(times) < 10) && ctx.Err() == nil; {
		before := cpuSeconds()
		if err := one(); err != nil {
			return 0, err
		}
		times = append(times, cpuSeconds()-before)
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	slices.Sort(times)
	return float64(records) / times[len(times)/10], nil
}

// firstBatch is a minibatch of the synthetic images of the model's size.
func firstBatch(ctx context.Context, m *graph.Model, records int) (*graph.Batch, error) {
	set := "digits"
	if len(m.Nodes[0].Shape) == 3 {
		set = "shapes"
	}
	images, err := data.Open(ctx, data.Spec{Path: data.Synthetic(set, int64(records), 1), Features: m.Feed.Features})
	if err != nil {
		return nil, err
	}
	defer func() { _ = images.Close() }()
	batcher, err := data.NewBatcher(images, m.Feed, records)
	if err != nil {
		return nil, err
	}
	indices := make([]int64, records)
	for i := range indices {
		indices[i] = int64(i)
	}
	batch := &graph.Batch{}
	return batch, batcher.Fill(ctx, 0, indices, batch)
}

// torchSpeed is PyTorch's records per CPU-second, with the better of two ways of allocating memory: neither is the
// faster one on every machine and in every run.
func torchSpeed(ctx context.Context, network string, records int) (float64, error) {
	best := 0.0
	for _, allocation := range [][]string{
		nil,
		// glibc then does not give the large activations back to the kernel at every step.
		{"MALLOC_MMAP_THRESHOLD_=1073741824", "MALLOC_TRIM_THRESHOLD_=4294967296"},
	} {
		c := exec.CommandContext(ctx, python, "-c", torchProgram, network, strconv.Itoa(records), strconv.FormatFloat(speedTime.Seconds(), 'f', 1, 64))
		var stderr bytes.Buffer
		c.Stderr = &stderr
		c.Env = append(append(os.Environ(), blasKernels(),
			// OpenBLAS has threads of its own, whatever PyTorch's setting, and those without work spin: that is
			// processor time, too.
			"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"), allocation...)
		out, err := c.Output()
		if err != nil {
			return 0, fmt.Errorf("PyTorch: %w: %s", err, stderr.String())
		}
		speed, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			return 0, fmt.Errorf("PyTorch's speed: %w", err)
		}
		best = max(best, speed)
	}
	return best, nil
}

// blasKernels names OpenBLAS' kernels: Debian's does not know newer processors and would fall back to SSE3 without a
// word.
func blasKernels() string {
	if flags, err := os.ReadFile("/proc/cpuinfo"); err == nil && bytes.Contains(flags, []byte(" avx512f")) {
		return "OPENBLAS_CORETYPE=SKYLAKEX"
	}
	return "OPENBLAS_CORETYPE=HASWELL" // the AVX2 kernels, on AMD's processors too
}

// cpuSeconds is the processor time of this process.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only for arguments that are wrong
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
