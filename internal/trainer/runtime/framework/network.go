// Package framework runs a job's computation in a user's script: PyTorch, JAX or plain Python. It starts the job's
// command as a child, or in another container of the master's pod (remote.go), with the script as its last argument,
// and sends it requests over a Unix socket for what package nn computes for other jobs: the gradient of (step, virtual
// worker) at a state, and the state after an update. A script implements job.Network as package nn does, so that
// schedule, membership, checkpoints and restarts work the same way.
//
// The state is one []float32 here as everywhere; tensors of other types take as many words of it as they need, and are
// only copied. The child holds a copy. A request for another state first loads that state into the child. So a child is
// only a cache: no data is lost with it, and the master restarts its own. The master runs a child too, because it
// applies updates; so there is one code path for computing, comparing and saving states.
//
// Results are reproducible to the bit as far as the framework's are. Every request is a function of state, records,
// step and seed. If the script computes it as one, every record is counted once, whatever happens to its workers.
package framework

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
)

// Options configure the script to run.
type Options struct {
	Command []string // the script's path is added to it
	Name    string   // of the script's file, and in messages
	Script  []byte   // its text
	Beside  string   // the user's directory with modules that the script imports; "" for none
	// Shared is a directory that this container shares with the one in which Host runs the script; "" runs it as a
	// child.
	Shared string

	Seed          uint64
	MinibatchSize int
	LearningRate  *float64 // the job's, which replaces the script's; nil keeps the script's
	Threads       int      // of the child; results depend on it

	// LocalRank is the number of the process among the LocalWorld that a worker runs of the script, each of which knows both
	// by the variables of torchrun. LocalWorld is 0 where a script knows nothing of ranks.
	LocalRank, LocalWorld int

	// Restarts is how many times in a row a child is restarted that has died without having answered a request
	// in between. A worker's child is not restarted: the worker ends, which is reported with more detail.
	Restarts int
	Output   io.Writer // receives what a child prints, with the script's name before each line; nil discards it
	// Finite reports whether all numbers of a vector are finite.
	Finite func([]float32) bool
}

// Network is a script as a job.Network. It is safe for concurrent use; the script answers one request at a time.
type Network struct {
	options     Options
	description Description
	layout      layout
	start       []float32 // the state of step 0

	mu    sync.Mutex
	child *process  // nil when it has died
	held  []float32 // the state that the child holds; nil when that is not known
	died  int       // times in a row
}

// Start runs the script and reads its description. Close ends the script.
func Start(ctx context.Context, o Options) (*Network, error) {
	n := &Network{options: o}
	if err := n.begin(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

// begin starts a child. It rejects one whose description differs from the first.
func (n *Network) begin(ctx context.Context) (err error) {
	child, err := startProcess(ctx, n.options)
	if err != nil {
		return err
	}
	n.child = child
	defer func() {
		if err != nil {
			n.child = nil
			err = errors.Join(err, child.close())
		}
	}()
	question := struct {
		Seed          uint64   `json:"seed"`
		MinibatchSize int      `json:"minibatch_size"`
		Threads       int      `json:"threads"`
		LearningRate  *float64 `json:"learning_rate,omitempty"`
	}{n.options.Seed, n.options.MinibatchSize, n.options.Threads, n.options.LearningRate}
	var d Description
	if err := n.exchange(askDescribe, question, &d, nil); err != nil {
		return err
	}
	l, err := layOut(d)
	if err != nil {
		return fmt.Errorf("%s: %w", n.options.Name, err)
	}
	if n.start != nil {
		if !reflect.DeepEqual(l, n.layout) {
			return fmt.Errorf("%s describes other tensors than the last time", n.options.Name)
		}
		return nil // a state will be loaded
	}
	n.description, n.layout = d, l
	if err := writeFrame(child.conn, askInitial, struct{}{}); err != nil {
		return child.lost(err)
	}
	if n.start, err = readInitial(child.conn, l.state); err != nil {
		return n.explained(err)
	}
	n.held = slices.Clone(n.start)
	return nil
}

// Description is the script's description of itself.
func (n *Network) Description() Description { return n.description }

// Lineage is the part of the description that determines the state: all but the framework's version, so that a job
// continues after an update of its image.
func (n *Network) Lineage() Description {
	d := n.description
	d.Framework = ""
	return d
}

// StateSize is the length of the state, in words of 4 bytes.
func (n *Network) StateSize() int { return n.layout.state }

// TrainableSize is the length of a gradient: a float for each element of a parameter.
func (n *Network) TrainableSize() int { return n.layout.parameters }

// StatsSize is the length of the statistics and reports that come with every gradient, in words of 4 bytes.
func (n *Network) StatsSize() int { return n.layout.statistics }

// Tables returns none: a framework's embeddings have dense gradients.
func (n *Network) Tables() []gradient.Table { return nil }

// Init copies the state of step 0, which the script has made from Options.Seed.
func (n *Network) Init(state []float32, _ uint64) { copy(state, n.start) }

// Export copies the model's tensors under the framework's names.
func (n *Network) Export(state []float32) []safetensors.Tensor { return n.layout.export(state) }

// Snapshot copies the whole state as tensors, for a checkpoint.
func (n *Network) Snapshot(state []float32) []safetensors.Tensor { return n.layout.snapshot(state) }

// Restore is the inverse of Snapshot, to the bit.
func (n *Network) Restore(state []float32, tensors []safetensors.Tensor) error {
	return n.layout.restore(state, tensors)
}

// measured is the header of a response about records.
type measured struct {
	LossSum float64 `json:"loss_sum"`
	Counts  []int64 `json:"counts"`
}

// Gradient requests the gradient of a minibatch's records (Batch.Records) at state; see nn.Network.Gradient.
func (n *Network) Gradient(
	state []float32, b *graph.Batch, stepRecords int, step int64, virtualWorker int, _ uint64, out []float32,
	_ []gradient.Rows,
) (nn.Result, error) {
	question := struct {
		Step          int64 `json:"step"`
		VirtualWorker int   `json:"virtual_worker"`
		StepRecords   int   `json:"step_records"`
		Sizes         []int `json:"sizes"`
	}{step, virtualWorker, stepRecords, sizes(b.Records)}
	var m measured
	if err := n.ask(state, askGradient, question, &m, out, b.Records...); err != nil {
		return nn.Result{}, fmt.Errorf("gradient of step %d, virtual worker %d: %w", step, virtualWorker, err)
	}
	if !n.options.Finite(out[:n.layout.parameters]) {
		return nn.Result{}, fmt.Errorf("the gradient of step %d, virtual worker %d, is %w: training diverged; a lower learning rate may help", step, virtualWorker, nn.ErrNotFinite)
	}
	return n.result(m, b.N)
}

// Apply requests the state after an update; see nn.Network.Apply. The script decides what to do with the statistics of
// the step's virtual workers.
func (n *Network) Apply(state []float32, sum gradient.Sum, stats [][]float32, step int64) error {
	virtualWorkers := len(stats)
	question := struct {
		Step           int64 `json:"step"`
		VirtualWorkers int   `json:"virtual_workers"`
	}{step, virtualWorkers}
	body := make([][]byte, 0, 1+len(stats))
	body = append(body, wire.Bytes(sum.Dense))
	for _, s := range stats {
		body = append(body, wire.Bytes(s))
	}
	next := make([]float32, len(state)) // keeps the state intact if the child dies meanwhile
	if err := n.ask(state, askApply, question, &struct{}{}, next, body...); err != nil {
		return fmt.Errorf("update of step %d: %w", step, err)
	}
	if name, diverged := n.layout.diverged(state, next, n.options.Finite); diverged {
		return fmt.Errorf("step %d: tensor %q is %w after the update: training diverged; a lower learning rate may help", step, name, nn.ErrNotFinite)
	}
	copy(state, next)
	return nil
}

// Evaluate requests loss and metrics of a minibatch's records at state, in inference mode.
func (n *Network) Evaluate(state []float32, b *graph.Batch) (nn.Result, error) {
	question := struct {
		Sizes []int `json:"sizes"`
	}{sizes(b.Records)}
	var m measured
	if err := n.ask(state, askEvaluate, question, &m, nil, b.Records...); err != nil {
		return nn.Result{}, fmt.Errorf("evaluation: %w", err)
	}
	return n.result(m, b.N)
}

// Close ends the script.
func (n *Network) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.child != nil {
		_ = n.child.close() // a directory that cannot be removed does no harm
		n.child = nil
	}
}

func (n *Network) result(m measured, records int) (nn.Result, error) {
	if len(m.Counts) != len(n.description.Metrics) {
		return nn.Result{}, fmt.Errorf("%s answered with %d counts for %d metrics", n.options.Name, len(m.Counts), len(n.description.Metrics))
	}
	if len(m.Counts) == 0 {
		m.Counts = []int64{0} // as metric.Shares counts
	}
	return nn.Result{LossSum: m.LossSum, Counts: m.Counts, Records: records}, nil
}

func sizes(records [][]byte) []int {
	out := make([]int, len(records))
	for i, r := range records {
		out[i] = len(r)
	}
	return out
}

// ask sends the child a request about a state, after loading the state if the child holds another.
func (n *Network) ask(state []float32, k kind, question, reply any, answer []float32, body ...[]byte) error {
	if len(state) != n.layout.state {
		return fmt.Errorf("state of %d floats for a script with %d", len(state), n.layout.state)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		err := n.askOnce(state, k, question, reply, answer, body)
		if died := (*DiedError)(nil); !errors.As(err, &died) {
			if err == nil {
				n.died = 0
			}
			return err
		}
		if n.child != nil {
			err = errors.Join(err, n.child.close())
			n.child = nil
		}
		if n.died++; n.died > n.options.Restarts {
			return err
		}
	}
}

func (n *Network) askOnce(state []float32, k kind, question, reply any, answer []float32, body [][]byte) error {
	if n.child == nil {
		n.held = nil
		if err := n.begin(context.Background()); err != nil {
			return err
		}
	}
	if n.held == nil || !bytes.Equal(wire.Bytes(n.held), wire.Bytes(state)) {
		n.held = nil
		if err := n.exchange(askLoad, struct{}{}, &struct{}{}, nil, wire.Bytes(state)); err != nil {
			return err
		}
		n.held = slices.Clone(state)
	}
	if k != askApply {
		return n.exchange(k, question, reply, answer, body...)
	}
	n.held = nil
	if err := n.exchange(k, question, reply, answer, body...); err != nil {
		return err
	}
	n.held = slices.Clone(answer)
	return nil
}

// exchange sends one request and reads its response.
func (n *Network) exchange(k kind, question, reply any, answer []float32, body ...[]byte) error {
	if err := writeFrame(n.child.conn, k, question, body...); err != nil {
		return n.child.lost(err)
	}
	return n.explained(readFrame(n.child.conn, k, reply, answer))
}

// explained turns a failed request into the script's own error or the report of its death.
func (n *Network) explained(err error) error {
	if own := (*scriptError)(nil); err == nil || errors.As(err, &own) {
		return err
	}
	return n.child.lost(err)
}
