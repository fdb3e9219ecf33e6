// Package nn trains a graph.Model: it compiles the graph to a program over one static arena and runs it with the
// kernels of internal/trainer/ml/kernel. A gradient is a function of (state, minibatch, step, virtual worker, seed) to
// the bit, with any kernel set and any number of threads; the package comment of kernel is the contract. Nothing is
// allocated after Compile.
//
// A graph has one output; values may branch and be merged again. The gradient of an embedding table consists of the
// rows that the minibatch looked up. Compile rejects what is not implemented, with the layer's name and line. Other
// packages handle schedules, the sums of gradients over virtual workers, and files.
package nn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
)

// Options of a network.
type Options struct {
	Kernel   kernel.Set
	Threads  int // that compute at once, the caller's included; 0 is 1
	MaxBatch int // records of the largest minibatch
	// MemoryBytes is what the values of a minibatch may take; 0 is 256 GiB, which no machine has free.
	MemoryBytes int64
}

// Param is one variable. The state is one []float32: the trainable variables in creation order, then the moving
// statistics in creation order, then the optimizer's slots, each as long as the trainable variables together; then each
// embedding table in creation order, with its slots behind it. Those are trainable too, but no part of the dense
// gradient.
type Param struct {
	Name         string // as Keras names it: "conv2d/kernel"
	Shape        []int  // as Keras shapes it
	Offset, Size int    // in the state, in floats
	Trainable    bool
	Transposed   bool // the state holds a Dense kernel as [out, in]; see numerics rule 4

	stddev float64 // of initial values from a truncated normal distribution; 0 is uniform ones
}

// Result is what records gave.
type Result struct {
	LossSum float64 // sum of the records' losses
	// Losses are those of the records one by one, where they are known: sums of several results are then made in the order
	// of the records, however these were cut into minibatches.
	Losses  []float64
	Counts  []int64 // of the model's metrics; what metric.Set says of them
	Records int
}

// Add adds the result of other records. Their losses are not kept one by one.
func (r *Result) Add(o Result) {
	if o.Losses == nil {
		r.LossSum += o.LossSum
	}
	for _, l := range o.Losses {
		r.LossSum += l
	}
	r.Records += o.Records
	if r.Counts == nil {
		r.Counts = make([]int64, len(o.Counts))
	}
	for i, n := range o.Counts {
		r.Counts[i] += n
	}
}

// Clone is a copy that nobody else changes.
func (r Result) Clone() Result {
	r.Counts, r.Losses = slices.Clone(r.Counts), slices.Clone(r.Losses)
	return r
}

// ErrNotFinite is wrapped by the errors about an infinity or a NaN.
var ErrNotFinite = errors.New("not finite")

// Network is a compiled model. Its methods must not be called at the same time; Close ends its threads.
type Network struct {
	model   *graph.Model
	kernel  kernel.Set
	options Options
	threads *threads

	inputs    []*input // by their place in a minibatch; nil where the output does not depend on one
	output    *tensor
	labels    []int32
	targets   []float32
	classes   int // that labels may name; 0: targets are numbers
	params    []Param
	tables    []gradient.Table
	trainable int // floats of the trainable variables that are no tables
	stats     int // of the moving statistics
	dense     int // of the state before the tables
	state     int // of the state
	layers    []LayerInfo

	training   program
	inference  program
	batchNorms []*batchNorm
	loss       *loss
	embeddings []*embedding
	optimizer  *optimizer
	slots      [][]float32 // of the state at hand

	run run
}

// run is what the layers of the program at work need to know about it.
type run struct {
	state         []float32
	gradient      []float32
	rows          []gradient.Rows // of the tables
	records       int
	start         float32 // the derivative that the backward pass starts from
	step          int64
	virtualWorker int
	seed          uint64
	unanswered    bool // there are no labels, and no loss
}

// Params lists the variables in the order of the state.
func (n *Network) Params() []Param { return n.params }

// StateSize is the length of the state, in floats.
func (n *Network) StateSize() int { return n.state }

// TrainableSize is the length of the part of the state that gradients are for.
func (n *Network) TrainableSize() int { return n.trainable }

// StatsSize is the length of the moving statistics. A gradient buffer is TrainableSize + StatsSize long: the batch
// statistics of the virtual worker stand behind the gradient in the order of the moving ones.
func (n *Network) StatsSize() int { return n.stats }

// Tables lists the embedding tables, whose gradients are rows, in the order in which they are passed; nil without any.
func (n *Network) Tables() []gradient.Table { return n.tables }

// Close ends the network's threads and waits for them. The network must not be used afterwards.
func (n *Network) Close() { n.threads.close() }

// Gradient computes the gradient of the sum of the minibatch's losses divided by stepRecords into out (TrainableSize +
// StatsSize floats): that is the minibatch's part of the mean over all records of the step, so that the gradients of
// a step's virtual workers are added; where the model's is the sum of losses, b.N times as much; of the embedding
// tables into rows, one for each, whose memory is used again. step and virtualWorker choose the dropout masks. An
// infinity or a NaN in loss or gradient is an error that wraps ErrNotFinite and names the layer. The counts of the
// result are valid until the next call.
func (n *Network) Gradient(
	state []float32, b *graph.Batch, stepRecords int, step int64, virtualWorker int, seed uint64, out []float32,
	rows []gradient.Rows,
) (Result, error) {
	if len(out) != n.trainable+n.stats || len(rows) != len(n.tables) {
		return Result{}, fmt.Errorf("gradient of step %d, virtual worker %d: the buffer has %d floats and rows of %d tables, the network's gradient and statistics %d and %d",
			step, virtualWorker, len(out), len(rows), n.trainable+n.stats, len(n.tables))
	}
	if err := n.begin(state, b); err != nil {
		return Result{}, fmt.Errorf("gradient of step %d, virtual worker %d: %w", step, virtualWorker, err)
	}
	if stepRecords < b.N {
		return Result{}, fmt.Errorf("gradient of step %d, virtual worker %d: a minibatch of %d records cannot be part of a step of %d", step, virtualWorker, b.N, stepRecords)
	}
	n.run.gradient, n.run.rows = out, rows
	n.run.start = float32(b.N) / float32(stepRecords)
	if !n.model.SumOfLosses {
		n.run.start /= float32(b.N)
	}
	n.run.step, n.run.virtualWorker, n.run.seed = step, virtualWorker, seed
	n.execute(n.training)
	result := n.loss.result(b.N)
	if !finite(result.LossSum) {
		return result, fmt.Errorf("step %d, virtual worker %d: the loss of layer %q is %w (%v): training diverged; a lower learning rate may help, or the input holds such values",
			step, virtualWorker, n.model.Nodes[n.model.Output].Name, ErrNotFinite, result.LossSum)
	}
	if !n.kernel.Finite(out) {
		return result, n.notFinite(out, step, virtualWorker)
	}
	for i, e := range n.embeddings {
		if !n.kernel.Finite(rows[i].Values) {
			return result, fmt.Errorf("step %d, virtual worker %d: the gradient of %q is %w: training diverged; a lower learning rate may help", step, virtualWorker, e.table.Name, ErrNotFinite)
		}
	}
	return result, nil
}

// Evaluate computes loss and counts in inference mode: moving statistics, no dropout. Counts and
// losses are valid until the next call.
func (n *Network) Evaluate(state []float32, b *graph.Batch) (Result, error) {
	if err := n.begin(state, b); err != nil {
		return Result{}, fmt.Errorf("evaluation: %w", err)
	}
	n.infer()
	result := n.loss.result(b.N)
	result.Losses = n.loss.values[:b.N]
	if !finite(result.LossSum) {
		return result, fmt.Errorf("evaluation: the loss is %w (%v): the model or the input holds infinities or NaN", ErrNotFinite, result.LossSum)
	}
	return result, nil
}

// Predict computes the output layer's values of the records in inference mode, record behind record; they are valid
// until the next call. Labels are not looked at, and need not be there. A record's values do not depend on those beside
// it.
func (n *Network) Predict(state []float32, b *graph.Batch) ([]float32, error) {
	if err := n.beginInputs(state, b); err != nil {
		return nil, fmt.Errorf("prediction: %w", err)
	}
	n.run.unanswered = true
	n.infer()
	return n.Outputs(), nil
}

// infer runs the program of inference.
func (n *Network) infer() {
	for _, bn := range n.batchNorms {
		bn.useMovingStatistics()
	}
	n.execute(n.inference)
}

// Outputs is the output layer's values for the records of the last Gradient or Evaluate, valid until the next.
func (n *Network) Outputs() []float32 { return n.output.data[:n.run.records*n.output.size] }

// Apply makes the state of the next step. sum (TrainableSize floats, and rows of every table) is over the step's
// virtual workers; stats holds the statistics of each virtual worker in order: the tails of their gradient buffers. The
// moving statistics take one Keras update per virtual worker, not weighted: moving ← moving + (1 − momentum)·(batch −
// moving); then the optimizer steps, for the (step+1)-th time. A state that would not be finite is an error.
func (n *Network) Apply(state []float32, sum gradient.Sum, stats [][]float32, step int64) error {
	if len(state) != n.state || len(sum.Dense) != n.trainable || len(sum.Rows) != len(n.tables) {
		return fmt.Errorf("update of step %d: state of %d and gradient of %d floats and rows of %d tables for a network of %d, %d and %d",
			step, len(state), len(sum.Dense), len(sum.Rows), n.state, n.trainable, len(n.tables))
	}
	for v, s := range stats {
		if len(s) != n.StatsSize() {
			return fmt.Errorf("update of step %d: virtual worker %d sent %d floats of statistics, the network has %d", step, v, len(s), n.StatsSize())
		}
	}
	for i, e := range n.embeddings {
		if err := e.check(sum.Rows[i]); err != nil {
			return fmt.Errorf("update of step %d: %w", step, err)
		}
	}
	for _, s := range stats {
		for _, bn := range n.batchNorms {
			bn.move(state, s, n.trainable)
		}
	}
	if err := n.optimize(state, sum, step); err != nil {
		return fmt.Errorf("update of step %d: %w", step, err)
	}
	if !n.kernel.Finite(state[:n.dense]) {
		return n.notFinite(state, step, -1)
	}
	for i, e := range n.embeddings {
		if err := e.checkFinite(state, sum.Rows[i], step); err != nil {
			return err
		}
	}
	return nil
}

// begin takes a minibatch with its labels.
func (n *Network) begin(state []float32, b *graph.Batch) error {
	switch {
	case len(b.Labels)+len(b.Targets) != b.N:
		return fmt.Errorf("minibatch of %d records has %d labels and %d targets", b.N, len(b.Labels), len(b.Targets))
	case n.classes > 0 && len(b.Labels) != b.N:
		return fmt.Errorf("the labels are floats, and the loss %s takes class numbers", n.model.Loss)
	}
	if err := n.checkTargets(b); err != nil {
		return err
	}
	n.labels, n.targets = b.Labels, b.Targets
	return n.beginInputs(state, b)
}

// beginInputs takes what stands before the loss.
func (n *Network) beginInputs(state []float32, b *graph.Batch) error {
	switch {
	case len(state) != n.state:
		return fmt.Errorf("state of %d floats for a network of %d", len(state), n.state)
	case b.N < 1 || b.N > n.options.MaxBatch:
		return fmt.Errorf("minibatch of %d records, the network was compiled for 1 to %d", b.N, n.options.MaxBatch)
	case len(b.Inputs) != len(n.inputs):
		return fmt.Errorf("minibatch of %d records has %d inputs, the model %d", b.N, len(b.Inputs), len(n.inputs))
	}
	for i, in := range n.inputs {
		if in != nil {
			if err := in.take(b, i); err != nil {
				return err
			}
		}
	}
	n.run.state, n.run.records, n.run.unanswered = state, b.N, false
	return nil
}

func (n *Network) checkTargets(b *graph.Batch) error {
	name := n.model.Nodes[n.model.Output].Name
	for i, label := range b.Labels {
		if n.classes > 0 && (label < 0 || int(label) >= n.classes) {
			return fmt.Errorf("record %d of the minibatch has label %d, the output layer %q has %d classes (0 to %d)", i, label, name, n.classes, n.classes-1)
		}
		if n.model.Loss == graph.SigmoidCrossEntropy && label != 0 && label != 1 {
			return fmt.Errorf("record %d of the minibatch has label %d, the loss %s takes 0 and 1", i, label, n.model.Loss)
		}
	}
	for i, v := range b.Targets {
		if n.model.Loss == graph.SigmoidCrossEntropy && !(v >= 0 && v <= 1) {
			return fmt.Errorf("record %d of the minibatch has target %v, the loss %s takes numbers from 0 to 1", i, v, n.model.Loss)
		}
	}
	return nil
}

func (n *Network) notFinite(values []float32, step int64, virtualWorker int) error {
	for _, p := range n.params {
		if p.Offset+p.Size > len(values) || p.Offset >= n.dense {
			continue // a table
		}
		for i, v := range values[p.Offset : p.Offset+p.Size] {
			if !finite(float64(v)) {
				if virtualWorker < 0 {
					return fmt.Errorf("step %d: variable %q is %w after the update (element %d is %v): training diverged; a lower learning rate may help", step, p.Name, ErrNotFinite, i, v)
				}
				return fmt.Errorf("step %d, virtual worker %d: the gradient of %q is %w (element %d is %v): training diverged; a lower learning rate may help", step, virtualWorker, p.Name, ErrNotFinite, i, v)
			}
		}
	}
	for i, slot := range n.optimizer.slots {
		for at, v := range n.slotOf(values, i) {
			if !finite(float64(v)) {
				return fmt.Errorf("step %d: the optimizer's %s of weight %d is %w after the update (%v): the gradient is too large; a lower learning rate may help", step, slot.name, at, ErrNotFinite, v)
			}
		}
	}
	panic("nn: an infinity or a NaN outside all variables")
}

func finite(v float64) bool { return v-v == 0 }

// LayerInfo is a line of `elastic-trainer model`.
type LayerInfo struct {
	Name         string
	Op           string
	OutputShape  []int  // without the batch dimension
	Params       int    // all variables' elements
	NonTrainable int    // of these, moving statistics
	Form         string // how sums along K are made: "fma chain" (rule 1), "16 lanes" (rule 3), "chains of 8 blocks" (rule 2), or ""
}

// Layers lists the model's layers from input to output.
func (n *Network) Layers() []LayerInfo { return n.layers }
