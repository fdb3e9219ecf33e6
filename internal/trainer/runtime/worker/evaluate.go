package worker

import (
	"context"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/evaluation"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// mostEvaluations is how many evaluations are kept, the newest: they are sent with every state.
const mostEvaluations = 1000

// evaluating is the current evaluation.
type evaluating struct {
	step  int64   // of the state to evaluate; the worker's state may not be there yet
	parts []int32 // that are assigned and not begun
}

// assignParts adds ranges of the validation data to the work to do.
func (w *worker) assignParts(e *wirepb.Evaluate) error {
	if w.evaluating.step != e.Step {
		w.evaluating = evaluating{step: e.Step}
	}
	for _, p := range e.Parts {
		if p < 0 || int(p) >= len(w.job.Parts) {
			return protocolErrorf("the master assigned part %d of %d of the validation data", p, len(w.job.Parts))
		}
		w.evaluating.parts = append(w.evaluating.parts, p)
	}
	return nil
}

// mayEvaluate reports whether there is a part to evaluate, and the state to evaluate it at.
func (w *worker) mayEvaluate() bool {
	return len(w.evaluating.parts) > 0 && w.evaluating.step == w.step
}

// evaluateNext evaluates the next assigned part while the data of the one behind it are read.
func (s *session) evaluateNext(ctx context.Context) error {
	p := s.evaluating.parts[0]
	s.evaluating.parts = s.evaluating.parts[1:]
	if rest := s.evaluating.parts; len(rest) > 0 {
		next := s.job.Parts[rest[0]]
		s.job.Validation.Prefetch(next.File, next.Lo, next.Hi)
	}
	r, err := evaluation.Range(ctx, s.job.Network, s.state, s.validation, s.job.Parts[p], s.job.Spec.LargestMinibatch())
	if err != nil {
		if ctx.Err() != nil {
			return s.leave()
		}
		return s.report(err)
	}
	s.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Evaluated{Evaluated: &wirepb.Evaluated{
		Step: s.step, Part: p, LossSum: r.LossSum, Counts: r.Counts, Records: int64(r.Records),
	}}})
	return nil
}

// remember keeps the result of an evaluation. A repeated evaluation is received again.
func (w *worker) remember(e *wirepb.Evaluation) {
	w.evaluations = slices.DeleteFunc(w.evaluations, func(old *wirepb.Evaluation) bool { return old.Step >= e.Step })
	w.evaluations = append(w.evaluations[max(0, len(w.evaluations)+1-mostEvaluations):], e)
}
