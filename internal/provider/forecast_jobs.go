package provider

import (
	"context"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// forecast adds the forecast for a new job, and for the workers that an update adds or replaces because the maximum or
// the workers' requests grow.
func (r *trainingJob) forecast(ctx context.Context, planRaw tftypes.Value, state *trainingJobModel, d trainingjob.Definition, made bool) diag.Diagnostics {
	if r.connection.forecasts.mode == forecastOff || len(d.Problems()) > 0 {
		return nil // validation has reported the problem
	}
	if problem := unknownOf(planRaw, trainingJobNotForecast); problem != "" {
		return r.connection.forecast(ctx, forecast.Job{Noun: "training job", Namespace: d.Job.Namespace, Name: d.Job.Name}, problem)
	}
	var job forecast.Job
	var err error
	if made {
		job, err = forecast.OfTrainingJob(d)
	} else {
		from, grows := workersToCome(ctx, state, d)
		if !grows {
			return nil
		}
		job, err = forecast.WorkersToCome(d, from)
	}
	if err != nil {
		return nil // validation has reported it
	}
	return r.connection.forecast(ctx, job, "")
}

// workersToCome is the number of the first worker that a change adds: the former maximum or, if workers request more
// than before, the number of the next worker.
func workersToCome(ctx context.Context, state *trainingJobModel, d trainingjob.Definition) (from int, grows bool) {
	was, diags := state.definition(ctx)
	phase := trainingjob.Phase(state.Phase.ValueString())
	switch {
	case diags.HasError() || phase.Finished():
		return 0, false
	case d.Max > was.Max:
		return was.Max, true
	default:
		return d.Max - 1, d.Max > 0 && requestsMore(was, d)
	}
}

// requestsMore reports whether workers request more of any resource than before.
func requestsMore(was, will trainingjob.Definition) bool {
	before, errBefore := was.WorkerTemplate()
	after, errAfter := will.WorkerTemplate()
	if errBefore != nil || errAfter != nil {
		return false
	}
	requests := scheduler.PodRequests(&before.Spec)
	for name, amount := range scheduler.PodRequests(&after.Spec) {
		if had := requests[name]; amount.Cmp(had) > 0 {
			return true
		}
	}
	return false
}

// forecast adds the forecast for a new task, which may replace another one.
func (r *taskResource) forecast(ctx context.Context, planRaw tftypes.Value, plan *taskModel) diag.Diagnostics {
	if r.connection.forecasts.mode == forecastOff {
		return nil
	}
	a, problems := plan.spec(ctx)
	if problems.HasError() {
		return nil // validation has reported the problem
	}
	t := a.complete(r.version)
	job := forecast.Job{Noun: "task", Namespace: t.Namespace, Name: t.Name}
	if problem := unknownOf(planRaw, taskNotForecast); problem != "" {
		return r.connection.forecast(ctx, job, problem)
	}
	if len(t.Problems()) > 0 {
		return nil
	}
	job, err := forecast.OfTask(t, r.connection.plannedFlavors(ctx, t.Namespace, t.Queue))
	if err != nil {
		return nil
	}
	return r.connection.forecast(ctx, job, "")
}

// trainingJobNotForecast and taskNotForecast are the attributes on which no forecast depends: neither the admission nor
// the placement of a pod reads what they set. Any other attribute that is unknown makes the forecast unknown.
var (
	trainingJobNotForecast = append([]string{
		"checkpoint", "data", "evaluation", "loss", "master_priority_check", "message", "metrics", "model", "model_sha256", "output", "output_files", "steps_done", "steps_total",
		"training", "workers_pending", "workers_running",
	}, jobNotForecast...)
	taskNotForecast = append([]string{
		"env", "logs", "reason", "recovery", "restarts", "run", "secrets", "secrets_wo", "secrets_wo_version", "setup", "supervisor_image",
		"termination_grace_period_seconds", "workdir", "workload",
	}, jobNotForecast...)
	jobNotForecast = []string{
		"active_deadline_seconds", "changed_fields", "fail_on_error", "generate_name", "image", "image_pull_policy", "image_pull_secrets",
		"missing_objects", "on_finished", "phase", "preemptions", "timeouts", "ttl_seconds_after_finished", "uid", "wait_for",
	}
)

// unknownOf names the attributes that are not known yet, except some; "" when all are known.
func unknownOf(plan tftypes.Value, except []string) string {
	var unknown []string
	var attributes map[string]tftypes.Value
	if !plan.IsKnown() || plan.As(&attributes) != nil {
		return ""
	}
	for name, value := range attributes {
		if !value.IsFullyKnown() && !slices.Contains(except, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	if len(unknown) == 0 {
		return ""
	}
	verb := " is"
	if len(unknown) > 1 {
		verb = " are"
	}
	return "its " + strings.Join(unknown, ", ") + verb + " not known until apply"
}

// plannedFlavors are the node labels of the flavors of a queue, as far as they are in the cluster or planned.
func (c *connection) plannedFlavors(ctx context.Context, namespace, queue string) []map[string]string {
	if queue == "" {
		return nil
	}
	s, err := c.snapshot(ctx, true)
	if err != nil {
		return nil
	}
	return s.Queues.FlavorLabels(namespace, queue)
}
