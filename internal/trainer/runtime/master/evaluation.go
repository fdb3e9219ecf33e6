package master

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/evaluation"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// The newest evaluations of a run are kept: they are sent with every state and shown in every status.
const (
	mostEvaluations     = 1000
	evaluationsInStatus = 50
)

// evaluations are the evaluations of the run so far. Every worker keeps them too, so that they are not lost with a
// master. An evaluation of the state from which a master resumes is repeated, with the same result.
type evaluations struct {
	parts []nn.Result // of the current evaluation, by range of the validation data

	began time.Time // of the current evaluation; zero while there is none

	all  []trainingjob.Measurement // by step
	last nn.Result                 // of the last one
	took time.Duration             // all of them, by this master
}

// takeEvaluations continues from the evaluations that came with a state of step. Evaluations on other validation data
// are not comparable with later ones.
func (m *Master) takeEvaluations(step int64, all []trainingjob.Measurement, madeOn string) {
	m.evaluations.all = all
	if madeOn != m.cfg.Job.Identity.Validation {
		m.evaluations.all = nil
		if len(all) > 0 {
			m.notice(coordinator.Notice{Warning: true, Reason: "EvaluationsSkipped", Message: fmt.Sprintf(
				"model.json omits %s up to step %d, which used other validation data", wording.Number(len(all), "evaluation"), step)})
			return
		}
	}
	m.reportMissing(step)
}

// reportMissing reports evaluations before a step that are configured and were not made.
func (m *Master) reportMissing(step int64) {
	j, have := m.cfg.Job, m.evaluations.all
	if len(j.Parts) == 0 || len(have) >= mostEvaluations { // the oldest are not kept
		return
	}
	made := map[int64]bool{}
	for _, e := range have {
		made[e.Step] = true
	}
	missing, first := 0, int64(0)
	for s := int64(1); s < step; s++ {
		if j.Spec.Evaluation.Due(s, j.Schedule.StepsPerEpoch()) && !made[s] {
			if missing++; missing == 1 {
				first = s
			}
		}
	}
	if missing > 0 {
		m.notice(coordinator.Notice{Warning: true, Reason: "EvaluationsMissing", Message: fmt.Sprintf(
			"model.json lacks %s before step %d, the first of step %d: they were not made when these steps were computed", wording.Number(missing, "evaluation"), step, first)})
	}
}

// before lists the evaluations of states before step.
func (e *evaluations) before(step int64) []trainingjob.Measurement {
	return slices.DeleteFunc(slices.Clone(e.all), func(m trainingjob.Measurement) bool { return m.Step >= step })
}

// union merges evaluations, by step: a repeated one has the same result.
func union(a, b []trainingjob.Measurement) []trainingjob.Measurement {
	byStep := map[int64]trainingjob.Measurement{}
	for _, e := range slices.Concat(a, b) {
		byStep[e.Step] = e
	}
	var all []trainingjob.Measurement
	for _, step := range slices.Sorted(maps.Keys(byStep)) {
		all = append(all, byStep[step])
	}
	return all[max(0, len(all)-mostEvaluations):]
}

// newestOf returns the newest evaluations, for a status.
func newestOf(all []trainingjob.Measurement) []trainingjob.Measurement {
	return slices.Clone(all[max(0, len(all)-evaluationsInStatus):])
}

func evaluationProto(m trainingjob.Measurement) *wirepb.Evaluation {
	return &wirepb.Evaluation{Step: m.Step, Loss: m.Loss, Records: m.Records, Metrics: m.Metrics}
}

// toProto converts evaluations to messages.
func toProto(all []trainingjob.Measurement) []*wirepb.Evaluation {
	out := make([]*wirepb.Evaluation, len(all))
	for i, m := range all {
		out[i] = evaluationProto(m)
	}
	return out
}

// fromProto is the inverse of toProto.
func fromProto(all []*wirepb.Evaluation) []trainingjob.Measurement {
	var out []trainingjob.Measurement
	for _, e := range all[max(0, len(all)-mostEvaluations):] {
		out = append(out, trainingjob.Measurement{Step: e.Step, Loss: e.Loss, Records: e.Records, Metrics: e.Metrics})
	}
	return out
}

// evaluate asks a worker to evaluate ranges.
func (m *Master) evaluate(e coordinator.Evaluate) {
	if m.evaluations.began.IsZero() {
		m.evaluations.began = time.Now()
	}
	if c := m.conns[e.Worker]; c != nil {
		c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Evaluate{Evaluate: &wirepb.Evaluate{Step: e.Step, Parts: narrow(e.Parts)}}})
	}
}

// takePart passes the result of a range to the coordinator.
func (m *Master) takePart(c *connection, e *wirepb.Evaluated) {
	parts := m.cfg.Job.Parts
	if size := m.cfg.Job.Metrics.Size(); e.Part < 0 || int(e.Part) >= len(parts) || len(e.Counts) != size || math.IsNaN(e.LossSum) || math.IsInf(e.LossSum, 0) ||
		e.Records != parts[e.Part].Hi-parts[e.Part].Lo {
		m.failProtocol(c, fmt.Sprintf("sent a result for part %d of %d of the validation data with %d records, %d counts of %d and a loss of %v", e.Part, len(parts), e.Records, len(e.Counts), size, e.LossSum))
		return
	}
	result := nn.Result{LossSum: e.LossSum, Counts: e.Counts, Records: int(e.Records)}
	m.step(coordinator.EvaluationPart{Worker: c.Worker, Step: e.Step, Part: int(e.Part), Payload: result})
}

// evaluated records the result of an evaluation and reports it.
func (m *Master) evaluated(step int64) {
	e := &m.evaluations
	measured, sum := evaluation.Measure(step, m.cfg.Job.Metrics, e.parts)
	took := time.Since(e.began)
	e.last, e.took, e.began = sum, e.took+took, time.Time{}
	e.all = append(e.before(step), measured)
	e.all = e.all[max(0, len(e.all)-mostEvaluations):]
	for _, c := range m.conns {
		c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Evaluation{Evaluation: evaluationProto(measured)}})
	}
	message := fmt.Sprintf("step %d of %d, on %d records of validation data: %s", step, m.cfg.Job.Schedule.Steps(), measured.Records, inWords(measured))
	if step == m.cfg.Job.Schedule.Steps() { // the status of the finished job has it
		m.log.Info(message, "seconds", took.Seconds())
		return
	}
	m.notice(coordinator.Notice{Reason: coordinator.ReasonEvaluated, Message: message})
}

// inWords is "loss 0.1234, accuracy 0.9600".
func inWords(e trainingjob.Measurement) string {
	words := []string{fmt.Sprintf("loss %.6g", e.Loss)}
	for _, name := range slices.Sorted(maps.Keys(e.Metrics)) {
		words = append(words, fmt.Sprintf("%s %.4f", name, e.Metrics[name]))
	}
	return strings.Join(words, ", ")
}
