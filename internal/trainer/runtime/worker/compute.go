package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/schedule"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// worker is the part of a worker that outlives a stream: the loaded job and its state.
type worker struct {
	cfg        Config
	log        *slog.Logger
	generation int64   // the newest seen
	member     *member // the script of a member of a group; nil before it is started, and in other jobs
	ranks      *ranks  // the processes of a command that is restarted; nil before the first job, and in other jobs

	job        *job.Job
	tables     []gradient.Table
	source     string // what job was loaded from
	training   *data.Batcher
	validation *data.Batcher
	state      []float32
	step       int64            // updates applied to state
	last       *wirepb.Measured // of the last of them; nil at step 0

	evaluations []*wirepb.Evaluation // of the states before, the newest mostEvaluations
	evaluating  evaluating

	// Of the current step.
	plan     schedule.Step
	planned  int64 // the step that plan is of; −1 for none
	reading  lookahead
	todo     []int // virtual workers that are assigned and not begun
	tree     *reduce.Tree
	results  []nn.Result // by virtual worker
	stats    [][]float32 // by virtual worker: batch statistics, behind the sums when they are sent
	hashes   []uint32    // by virtual worker: see resultHash
	computed []*sum      // sums that are computed
	again    int         // how many of computed are from an earlier master
	batch    graph.Batch
	buffers  *wire.Buffers

	exchangeState // workers, where they add the gradients themselves
}

// load prepares a job for computing: at step 0, or at the current state where that is of the same job, whose other
// settings or validation data have changed.
func (w *worker) load(j *job.Job) error {
	before := *w
	w.close()
	w.job = j
	if j.Spec.OwnGroup() {
		return nil // the script reads and computes
	}
	var err error
	if w.training, err = data.NewBatcher(j.Training, j.Graph.Feed, j.Spec.LargestMinibatch()); err != nil {
		return err
	}
	if j.Validation != nil {
		if w.validation, err = data.NewBatcher(j.Validation, j.Graph.Feed, j.Spec.LargestMinibatch()); err != nil {
			return err
		}
	}
	k := j.Spec.Training.GradsToWait
	w.state = make([]float32, j.Network.StateSize())
	w.tables = j.Network.Tables()
	w.buffers = wire.NewBuffers(j.Network.TrainableSize() + k*j.Network.StatsSize() + gradient.LongestPacked(w.tables, k*j.Spec.Training.MinibatchSize))
	w.tree = reduce.NewTree(j.Kernel.Add, func(s gradient.Sum) { w.buffers.Put(s.Dense) })
	w.results = make([]nn.Result, k)
	w.hashes = make([]uint32, k)
	w.stats = make([][]float32, k)
	for v := range w.stats {
		w.stats[v] = make([]float32, j.Network.StatsSize())
	}
	w.job.Network.Init(w.state, w.job.Spec.Training.Seed)
	w.step, w.last, w.planned, w.todo, w.computed, w.again = 0, nil, -1, nil, nil, 0
	w.reading = lookahead{}
	w.evaluations, w.evaluating = nil, evaluating{}
	w.resumeFrom(before)
	return w.startExchange()
}

// resumeFrom keeps the state of the previously loaded job if it has the same lineage: no other process may have the
// newest state.
func (w *worker) resumeFrom(before worker) {
	if before.job == nil || len(before.state) != len(w.state) {
		return
	}
	old, id := before.job.Identity, w.job.Identity
	if old.Lineage != id.Lineage || old.Job != id.Job || old.Numerics != id.Numerics {
		return
	}
	w.state, w.step, w.last = before.state, before.step, before.last
	if old.Validation == id.Validation {
		w.evaluations = before.evaluations
	}
}

func (w *worker) close() {
	w.stopExchange()
	if w.job != nil {
		times, waited := w.job.Training.Waits()
		w.log.Debug("reading was waited for", "times", times, "seconds", waited.Seconds())
		if err := w.job.Close(); err != nil {
			w.log.Warn("closing the job's data", "error", err)
		}
		w.job = nil
	}
}

// hash identifies the state.
func (w *worker) hash() string { return Hash(w.state) }

// Hash is the SHA-256 of a state's bytes, by which master and workers compare theirs.
func Hash(state []float32) string {
	sum := sha256.Sum256(wire.Bytes(state))
	return hex.EncodeToString(sum[:])
}

// assign adds virtual workers of the current step to the work to do.
func (w *worker) assign(vs []int32) {
	if w.planned != w.step {
		w.plan, w.planned = w.job.Schedule.Step(w.step), w.step
		w.tree.Reset(len(w.plan.Minibatches))
		w.todo = w.todo[:0]
	}
	for _, v := range vs {
		if int(v) < len(w.plan.Minibatches) && !slices.Contains(w.todo, int(v)) {
			w.todo = append(w.todo, int(v))
		}
	}
	w.reading.follow(w.step, w.job.Schedule, w.job.Training.Prefetch)
}

// compute computes the next assigned virtual worker completely: a worker that is signalled to stop finishes it first.
func (w *worker) compute(ctx context.Context) error {
	began := time.Now()
	v := w.todo[0]
	w.todo = w.todo[1:]
	m := w.plan.Minibatches[v]
	if err := w.training.Fill(context.WithoutCancel(ctx), m.Range.File, m.Records, &w.batch); err != nil {
		return err
	}
	n := w.job.Network
	out := w.buffers.Get()[:n.TrainableSize()+n.StatsSize()]
	rows := make([]gradient.Rows, len(w.tables))
	result, err := n.Gradient(w.state, &w.batch, w.plan.Records, w.step, v, w.job.Spec.Training.Seed, out, rows)
	if err != nil {
		return err
	}
	w.results[v], w.hashes[v] = result.Clone(), resultHash(result, out, rows)
	if w.isBackup(v) {
		w.buffers.Put(out)
		return nil
	}
	copy(w.stats[v], out[n.TrainableSize():])
	if err := w.tree.Add(reduce.Span{Lo: v, Hi: v + 1}, gradient.Sum{Dense: out[:n.TrainableSize()], Rows: rows}); err != nil {
		return err
	}
	if rest := w.cfg.Pace - time.Since(began); rest > 0 {
		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
	return nil
}

// apply applies an update in the format of messages; rows is the number of rows of each embedding table.
func (w *worker) apply(update []float32, rows []int32) error {
	if err := ApplyUpdate(w.job.Network, w.state, update, rows, w.step); err != nil {
		return err
	}
	w.step++
	return nil
}

// ApplyUpdate brings a state from step to step+1. update is the sum of the step's gradients in the format of messages:
// the dense part, every virtual worker's statistics one behind the other, and the rows of the embedding tables, packed;
// counts is the number of rows of each.
func ApplyUpdate(n job.Network, state, update []float32, counts []int32, step int64) error {
	tables := n.Tables()
	end := len(update)
	for i, t := range tables {
		end -= int(counts[i]) * (1 + t.Width)
	}
	rows, err := gradient.Unpack(tables, counts, update[end:])
	if err != nil {
		return fmt.Errorf("update of step %d: %w", step, err)
	}
	sum, behind := update[:n.TrainableSize()], update[n.TrainableSize():end]
	var stats [][]float32
	for size := n.StatsSize(); size > 0 && len(behind) > 0; behind = behind[size:] {
		stats = append(stats, behind[:size])
	}
	return n.Apply(state, gradient.Sum{Dense: sum, Rows: rows}, stats, step)
}
