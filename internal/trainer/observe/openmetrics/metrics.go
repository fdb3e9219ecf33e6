// Package openmetrics is a run's history as Prometheus reads it, with the names and units that its conventions ask for.
// It is pure: a scrape is a function of the history. It leaves out what a label could make grow without end: there is
// no series for a worker that has gone.
//
// It writes the text format with Prometheus' own encoder. The client library would do the same from registered
// variables, at ten times the size: 0.7 MB of the trainer's image.
package openmetrics

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
)

// ContentType is that of what Write writes.
var ContentType = string(expfmt.NewFormat(expfmt.TypeTextPlain))

const prefix = "elastic_trainer_"

// Write writes a run's metrics in the text format.
func Write(w io.Writer, h *history.History) error {
	for _, f := range Families(h) {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return fmt.Errorf("write metric %s: %w", f.GetName(), err)
		}
	}
	return nil
}

// phases are those that a master knows of itself: none runs while its job is queued or suspended.
func phases() []trainingjob.Phase {
	return slices.DeleteFunc(trainingjob.Phases(), func(p trainingjob.Phase) bool {
		return p == trainingjob.PhaseQueued || p == trainingjob.PhaseSuspended
	})
}

// Families are a run's metrics. Those that are not known yet are absent.
func Families(h *history.History) []*dto.MetricFamily {
	s := h.Status
	all := []*dto.MetricFamily{
		gauge("info", "What is trained; the value is 1.", labelled(1, "job", h.Job.Name, "model", h.Job.Model, "job_digest", h.Job.Digest, "kernel", h.Job.Kernel)),
		gauge("phase", "1 for the job's phase, 0 for the others.", each(phases(), func(p trainingjob.Phase) *dto.Metric {
			return labelled(indicator(s.Phase == p), "phase", string(p))
		})...),
		gauge("step", "Updates of the model so far, those of earlier masters included.", value(float64(s.StepsDone))),
		gauge("steps_planned", "Updates of the whole job.", value(float64(s.StepsTotal))),
		gauge("epoch", "The pass over the data that is under way, counted from 0.", value(float64(s.Epoch))),
		gauge("epochs_planned", "Passes over the data of the whole job.", value(float64(h.Job.Epochs))),
		counter("steps_total", "Updates of the model by this master.", value(float64(h.Steps))),
		counter("records_total", "Records that this master's updates are of.", value(float64(h.Records))),
		histogram("step_duration_seconds", "Time from one update to the next, waits for workers and evaluations left out.", &h.Times),
		gauge("workers", "Workers by state.", each(history.States(), func(state history.State) *dto.Metric {
			return labelled(float64(count(s.Workers, state)), "state", string(state))
		})...),
		counter("preemptions_total", "Workers that were preempted for something more important.", value(float64(h.Preemptions))),
		counter("worker_losses_total", "Workers that were lost, failed or were deleted, and not preempted.", value(float64(h.Losses))),
		gauge("generation", "Number of this master: each restart makes one more.", value(float64(s.Generation))),
		counter("master_restarts_total", "Masters of this job before this one.", value(float64(max(0, s.Generation-1)))),
		counter("received_bytes_total", "Bytes of messages from workers.", value(float64(h.Received))),
		counter("sent_bytes_total", "Bytes of messages to workers.", value(float64(h.Sent))),
		gauge("start_time_seconds", "When this master began, since the Unix epoch.", value(float64(h.Began.UnixMilli())/1000)),
	}
	if s.Loss != nil {
		all = append(all, gauge("loss", "Mean loss of the last update's records; at the end of the validation data's.", value(*s.Loss)))
	}
	if len(s.Metrics) > 0 {
		all = append(all, gauge("metric", "The model's metrics, of the same records as the loss.", each(slices.Sorted(maps.Keys(s.Metrics)), func(name string) *dto.Metric {
			return labelled(s.Metrics[name], "metric", name)
		})...))
	}
	if n := len(s.Evaluations); n > 0 {
		newest := s.Evaluations[n-1]
		all = append(all, gauge("evaluation_step", "Updates of the model when the validation data were evaluated last.", value(float64(newest.Step))),
			gauge("evaluation_loss", "Mean loss of the validation data then.", value(newest.Loss)))
		if len(newest.Metrics) > 0 {
			all = append(all, gauge("evaluation_metric", "The model's metrics on the validation data then.", each(slices.Sorted(maps.Keys(newest.Metrics)), func(name string) *dto.Metric {
				return labelled(newest.Metrics[name], "metric", name)
			})...))
		}
	}
	if len(s.Workers) > 0 {
		all = append(all, counter("gradients_total", "Gradients of virtual workers taken from a worker that is there.", each(s.Workers, func(w trainingjob.WorkerStatus) *dto.Metric {
			return labelled(float64(w.Gradients), "worker", strconv.Itoa(w.ID))
		})...))
	}
	if s.CheckpointStep > 0 {
		all = append(all, gauge("checkpoint_step", "Updates in the newest checkpoint.", value(float64(s.CheckpointStep))))
	}
	if !h.Checkpoint.IsZero() {
		all = append(all, gauge("checkpoint_timestamp_seconds", "When this master wrote the newest checkpoint, since the Unix epoch; its age is time() less this.", value(float64(h.Checkpoint.UnixMilli())/1000)))
	}
	if s.Goodput != nil {
		all = append(all, gauge("goodput_ratio", "Updates done, over those that the same workers would have done undisturbed in the time that they lived.", value(*s.Goodput)))
	}
	if split := s.GoodputSplit; split != nil {
		all = append(all, counter("goodput_seconds_total", "The job's life by what it was spent on, earlier masters included.",
			each(trainingjob.GoodputPhases(), func(p trainingjob.GoodputPhase) *dto.Metric {
				return labelled(split.Seconds[p], "phase", string(p))
			})...))
	}
	return append(all, disruptions(s.Disruptions)...)
}

// disruptions are those of the job's life. Who was taken away, and for whom, would make a new series each time: the
// status and the page have it.
func disruptions(d *trainingjob.Disruptions) []*dto.MetricFamily {
	if d == nil {
		d = &trainingjob.Disruptions{}
	}
	all := []*dto.MetricFamily{
		counter("disruptions_total", "Pods of the job that were taken away before their work was done, earlier masters included.", value(float64(d.Count))),
		counter("lost_steps_total", "Updates that were done and had to be repeated after disruptions, earlier masters included.", value(float64(d.LostSteps))),
		counter("lost_seconds_total", "Time after disruptions in which no new update was computed, earlier masters included.", value(d.LostSeconds)),
	}
	for _, one := range slices.Backward(d.Newest) {
		if one.Recovered != nil {
			return append(all, gauge("recovery_seconds", "Time until the first new update after the newest disruption that has recovered.", value(*one.Recovered)))
		}
	}
	return all
}

func count(workers []trainingjob.WorkerStatus, state history.State) (n int) {
	for _, w := range workers {
		if history.State(w.State) == state {
			n++
		}
	}
	return n
}

func each[T any](all []T, metric func(T) *dto.Metric) []*dto.Metric {
	out := make([]*dto.Metric, len(all))
	for i, t := range all {
		out[i] = metric(t)
	}
	return out
}

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// value is a sample whose kind its family decides.
func value(v float64) *dto.Metric { return &dto.Metric{Gauge: &dto.Gauge{Value: &v}} }

// labelled is a sample with labels, as names and values in turn.
func labelled(v float64, labels ...string) *dto.Metric {
	m := value(v)
	for i := 0; i < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	return m
}

func family(name, help string, kind dto.MetricType, metrics []*dto.Metric) *dto.MetricFamily {
	return &dto.MetricFamily{Name: new(prefix + name), Help: &help, Type: &kind, Metric: metrics}
}

func gauge(name, help string, metrics ...*dto.Metric) *dto.MetricFamily {
	return family(name, help, dto.MetricType_GAUGE, metrics)
}

func counter(name, help string, metrics ...*dto.Metric) *dto.MetricFamily {
	for _, m := range metrics {
		m.Counter, m.Gauge = &dto.Counter{Value: m.Gauge.Value}, nil
	}
	return family(name, help, dto.MetricType_COUNTER, metrics)
}

func histogram(name, help string, times *history.Times) *dto.MetricFamily {
	h := &dto.Histogram{SampleCount: new(uint64(times.Count)), SampleSum: new(times.Sum.Seconds())}
	var cumulative uint64
	for i, bound := range history.StepBounds {
		cumulative += uint64(times.Counts[i])
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: new(bound), CumulativeCount: new(cumulative)})
	}
	return family(name, help, dto.MetricType_HISTOGRAM, []*dto.Metric{{Histogram: h}})
}
