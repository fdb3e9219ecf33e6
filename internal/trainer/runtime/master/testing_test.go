package master_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const virtualWorkers = 4

// countingNetwork is a network with a parameter for each virtual worker of each step, which must end as exactly 1. Its
// state is larger than the buffers of a connection whose peer does not read.
type countingNetwork struct{ step *atomic.Int64 }

const tallySize = 1 << 15

func (countingNetwork) StateSize() int     { return tallySize }
func (countingNetwork) TrainableSize() int { return tallySize }
func (countingNetwork) StatsSize() int     { return 0 }
func (countingNetwork) Close()             {}

func (countingNetwork) Tables() []gradient.Table { return nil }

func (countingNetwork) Init(state []float32, _ uint64) { clear(state) }

func (countingNetwork) Gradient(_ []float32, b *graph.Batch, _ int, step int64, v int, _ uint64, out []float32, _ []gradient.Rows) (nn.Result, error) {
	clear(out)
	out[step*virtualWorkers+int64(v)] = 1
	return nn.Result{Records: b.N, Counts: []int64{0}}, nil
}

func (n countingNetwork) Apply(state []float32, sum gradient.Sum, _ [][]float32, step int64) error {
	for i, g := range sum.Dense {
		state[i] += g
	}
	n.step.Store(step + 1)
	return nil
}

// Evaluate returns how many gradients are in the state.
func (countingNetwork) Evaluate(state []float32, b *graph.Batch) (nn.Result, error) {
	sum := 0.0
	for _, v := range state {
		sum += float64(v)
	}
	return nn.Result{LossSum: sum * float64(b.N), Counts: []int64{0}, Records: b.N}, nil
}

func (countingNetwork) Export(state []float32) []safetensors.Tensor {
	return []safetensors.Tensor{safetensors.Float32("tally", []int{len(state)}, state)}
}

func (n countingNetwork) Snapshot(state []float32) []safetensors.Tensor { return n.Export(state) }

func (countingNetwork) Restore(state []float32, tensors []safetensors.Tensor) error {
	values, err := tensors[0].Float32s()
	copy(state, values)
	return err
}

// site is a job, its master, and workers in this process.
type site struct {
	*testing.T
	spec        trainingjob.Job
	text, model []byte
	job         *job.Job
	options     job.Options
	credentials wire.Credentials
	address     string
	step        atomic.Int64 // updates that any worker has applied
	lost        chan string
	reporter    reporter
	config      master.Config
	launcher    *launcher
}

// newSite prepares a job of the given number of epochs, 30 steps each.
func newSite(t *testing.T, epochs int) *site {
	t.Helper()
	s := &site{T: t, lost: make(chan string, 1)}
	var err error
	if s.model, err = os.ReadFile("../local/testdata/reference_model.py"); err != nil {
		t.Fatal(err)
	}
	s.options = job.Options{Threads: 1, Kernel: "portable", Compile: func(*graph.Model, nn.Options) (job.Network, error) { return countingNetwork{&s.step}, nil }}
	s.spec = trainingjob.Job{
		Name: "tally", Namespace: "default", Model: trainingjob.Model{File: "model.py"},
		Data:     trainingjob.Data{Training: "synthetic://digits?records=1200&seed=1", Format: "recordio", Codec: "bytes", RecordsPerTask: 50},
		Training: trainingjob.Training{Epochs: epochs, MinibatchSize: 10, GradsToWait: virtualWorkers, Seed: 1},
	}
	s.prepare()
	return s
}

// prepare loads the job of spec, model and options, and listens for its workers.
func (s *site) prepare() {
	t := s.T
	t.Helper()
	var err error
	if s.text, err = json.Marshal(s.spec); err != nil {
		t.Fatal(err)
	}
	if s.job, err = job.Load(t.Context(), s.spec, "model.py", s.model, s.options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.job.Close(); err != nil {
			t.Error(err)
		}
	})
	made, err := trainingjob.NewCredentials(rand.Reader, time.Now(), "tally-master")
	if err != nil {
		t.Fatal(err)
	}
	s.credentials = wire.Credentials(made)
	s.launcher = &launcher{site: s, work: s.worker(0), events: make(chan coordinator.Event, 256), cancel: map[int]context.CancelFunc{}}
	t.Cleanup(s.launcher.close)
	s.config = master.Config{
		Job: s.job, JobJSON: s.text, ModelName: "model.py", Min: 1, Max: 1, LastWorker: -1, Credentials: s.credentials,
		Launcher: s.launcher, Fence: fence{s.lost}, Reporter: &s.reporter, Store: store.Directory{Root: t.TempDir()},
		Log:     slog.New(slog.DiscardHandler),
		Silence: patience.Medium, // on a busy machine a worker that is well may send nothing for a second
	}
	s.listen()
}

func (s *site) listen() {
	s.Helper()
	s.listenOn("127.0.0.1:0")
}

func (s *site) listenOn(address string) {
	s.Helper()
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", address)
	if err != nil {
		s.Fatal(err)
	}
	s.config.Listener, s.address = listener, listener.Addr().String()
}

// run runs the master to its end.
func (s *site) run(ctx context.Context) master.Result {
	s.Helper()
	result, err := master.Run(ctx, s.config)
	if err != nil {
		s.Fatal(err)
	}
	return result
}

// worker is the worker in a worker's pod.
func (s *site) worker(pace time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, id int) error {
		return worker.Run(ctx, worker.Config{
			Master: s.address, ID: id, Credentials: s.credentials, Job: s.options, MasterTimeout: patience.Medium, Pace: pace,
			Log: slog.New(slog.DiscardHandler),
		})
	}
}

// wait polls until ok; it returns an error when ctx ends.
func wait(ctx context.Context, what string, ok func() bool) error {
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// launcher runs workers as goroutines.
type launcher struct {
	site   *site
	work   func(context.Context, int) error
	events chan coordinator.Event

	mu      sync.Mutex
	cancel  map[int]context.CancelFunc
	running sync.WaitGroup
	ended   []error
}

func (l *launcher) Events() <-chan coordinator.Event { return l.events }

func (l *launcher) Create(id int, minimum bool) {
	ctx, cancel := context.WithCancel(context.Background())
	l.mu.Lock()
	l.cancel[id] = cancel
	l.mu.Unlock()
	pod := coordinator.PodChanged{Worker: id, Minimum: minimum, State: coordinator.PodRunning}
	l.events <- pod
	l.running.Go(func() {
		defer cancel()
		err := l.work(ctx, id)
		pod.State, pod.Disrupted, pod.Reason = coordinator.PodEnded, errors.Is(err, worker.ErrLeft), fmt.Sprint(err)
		l.mu.Lock()
		delete(l.cancel, id)
		l.ended = append(l.ended, err)
		l.mu.Unlock()
		l.events <- pod
	})
}

func (l *launcher) Delete(id int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.cancel[id]; cancel != nil {
		cancel()
	}
}

// found lists the workers as the next master finds them.
func (l *launcher) found() (pods []coordinator.PodChanged) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.cancel {
		pods = append(pods, coordinator.PodChanged{Worker: id, State: coordinator.PodRunning, Minimum: id == 0})
	}
	return pods
}

// any is one of the workers, or −1.
func (l *launcher) any() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.cancel {
		return id
	}
	return -1
}

func (l *launcher) close() {
	l.mu.Lock()
	for _, cancel := range l.cancel {
		cancel()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// fence is held until a reason is sent.
type fence struct{ lost chan string }

func (fence) Generation() int64           { return 3 }
func (f fence) Lost() <-chan string       { return f.lost }
func (fence) Check(context.Context) error { return nil }

// reporter records statuses and notices.
type reporter struct {
	mu      sync.Mutex
	last    trainingjob.Status
	notices []coordinator.Notice
}

func (r *reporter) Status(s trainingjob.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = s
}

func (r *reporter) Notice(n coordinator.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notices = append(r.notices, n)
}

func (r *reporter) phase() trainingjob.Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.Phase
}

// visitor is a worker's end of a stream, without a worker.
type visitor struct {
	grpc.ClientStream
	queue *wire.Queue
}

// visit opens a stream and joins. close ends it.
func (s *site) visit(ctx context.Context, join *wirepb.Join) (v *visitor, closeVisit func(), err error) {
	conn, err := wire.Dial(s.address, s.credentials)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := wire.Open(ctx, conn)
	if err != nil {
		cancel()
		return nil, nil, errors.Join(err, conn.Close())
	}
	v = &visitor{stream, wire.NewQueue(1)}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = v.queue.Run(ctx, stream) // it ends with the stream
	}()
	v.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Join{Join: join}})
	return v, func() {
		cancel()
		<-sent
		_ = conn.Close()
	}, nil
}

// hello reports that the visitor holds the state of the first step.
func (s *site) hello(v *visitor) {
	id := s.job.Identity
	v.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Hello{Hello: &wirepb.Hello{
		Lineage: id.Lineage, JobDigest: id.Job, Hash: worker.Hash(make([]float32, tallySize)),
	}}})
}
