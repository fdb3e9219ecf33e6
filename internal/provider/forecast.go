package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// The values of the provider's attribute forecast.
const (
	forecastOff   = "off"
	forecastWarn  = "warn"
	forecastError = "error"
)

// defaultForecastTimeout bounds what forecasts may cost a plan, however slow, far or large the cluster is.
const defaultForecastTimeout = 10 * time.Second

// maxJobsRead bounds how many jobs' own ConfigMaps are read for one forecast.
const maxJobsRead = 16

// forecastConfig is the provider's configuration of forecasts.
type forecastConfig struct {
	mode     string
	timeout  time.Duration
	accepted []forecast.ReasonCode // reasons for being approximate that the mode error lets pass
}

// forecasts is the information of this process about the cluster for its forecasts, and the jobs that it has planned so
// far. It reads the cluster once, even if that fails, and all plans share the result.
type forecasts struct {
	forecastConfig
	cluster sharedRead[*forecast.Snapshot]
	queues  sharedRead[*forecast.Queues]

	mu        sync.Mutex
	jobs      []forecast.Job // in the order in which they were planned; guarded by mu, as what follows
	uncounted []string       // jobs that were planned and are not known well enough to be counted
	warned    bool           // the warning that no forecast is possible was given
	applying  bool           // something is being applied
	spent     time.Duration  // making forecasts: waiting for the cluster and computing
	busy      int            // how many callers make forecasts now
	since     time.Time      // when the first of them began
}

// sharedRead reads something once for all callers.
type sharedRead[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (s *sharedRead[T]) get(read func() (T, error)) (T, error) {
	s.once.Do(func() { s.value, s.err = read() })
	return s.value, s.err
}

// lateError is the error of requests that were not answered within forecast_timeout.
type lateError string

const (
	// errLate is the cause of a context that ended because a forecast may take no longer.
	errLate lateError = "the cluster did not respond within forecast_timeout; raise it, or check the connection"
	// errSpent says that the cluster had next to no time to respond.
	errSpent lateError = "earlier forecasts of this plan used up forecast_timeout; raise it"
)

func (e lateError) Error() string { return string(e) }

// Is makes errors.Is find context.DeadlineExceeded.
func (lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// applies notes that this process changes the cluster: what is planned again then was forecast before, and what was
// planned before is in the cluster already.
func (c *connection) applies() {
	c.forecasts.mu.Lock()
	defer c.forecasts.mu.Unlock()
	c.forecasts.applying = true
}

// forecast adds the forecast for a job to a plan. With "warn" it is a warning; if no forecast is possible, there is one
// warning for the whole process. With "error" it refuses a job that would evict another job's pod, that can never run,
// or that has no certain forecast. problem is the information about the job that is missing; "" if there is enough.
func (c *connection) forecast(ctx context.Context, job forecast.Job, problem string) diag.Diagnostics {
	f := c.forecasts
	if f.mode == forecastOff {
		return nil
	}
	before, uncounted, again := f.addPlanned(job, problem == "")
	if again {
		return nil
	}
	var answer forecast.Answer
	err := error(nil)
	if problem != "" {
		err = errors.New(problem)
	} else {
		answer, err = c.forecastPlan(ctx, before, &job)
		f.remember(job)
	}
	if err != nil {
		return f.noForecast(job, err)
	}
	for _, name := range uncounted {
		answer.Approximate = append(answer.Approximate, notCounted(name))
	}
	return f.diagnostics(answer)
}

// remember keeps what the API server has answered about a planned job's pods, for those that are planned after it.
func (f *forecasts) remember(job forecast.Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.IndexFunc(f.jobs, func(other forecast.Job) bool { return other.Key() == job.Key() }); at >= 0 {
		f.jobs[at] = job
	}
}

// dryRun replaces a job's pods by the API server's answers to dry runs, if it answers in time.
func (c *connection) dryRun(ctx context.Context, job forecast.Job) forecast.Job {
	client, diags := c.cluster()
	if diags.HasError() || c.planned.isUnreachable() {
		return job
	}
	ctx, done := c.forecasts.withTimeBudget(ctx)
	defer done()
	return snapshot.DryRun(ctx, client, []forecast.Job{job})[0]
}

// addPlanned records a job and returns the jobs that were planned before it, and the names of those with too little
// information. again is true for a job that was recorded before, as Terraform plans a replaced job twice, and for all
// jobs during an apply.
func (f *forecasts) addPlanned(job forecast.Job, known bool) (before []forecast.Job, uncounted []string, again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.applying || slices.ContainsFunc(f.jobs, func(other forecast.Job) bool { return other.Key() == job.Key() }) {
		return nil, nil, true
	}
	before, uncounted = slices.Clone(f.jobs), slices.Clone(f.uncounted)
	if known {
		f.jobs = append(f.jobs, job)
	} else {
		f.uncounted = append(f.uncounted, job.String())
	}
	return before, uncounted, false
}

// otherPlanned returns the jobs that were planned so far, except one.
func (f *forecasts) otherPlanned(job forecast.Job) (before []forecast.Job, uncounted []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.applying {
		return nil, nil // they are in the cluster, or soon will be
	}
	for _, other := range f.jobs {
		if other.Key() != job.Key() {
			before = append(before, other)
		}
	}
	return before, slices.Clone(f.uncounted)
}

func notCounted(name string) forecast.Reason {
	return forecast.NewReason(forecast.PlannedUnknown, name, name+" is planned before it, not known until apply, and not counted")
}

// withTimeBudget returns a context with the time that is left for all forecasts of the process, to wait for the cluster and
// to compute. The end of the current plan does not cancel it, as other callers share the reads. The time until done counts,
// that of several callers at once only once.
func (f *forecasts) withTimeBudget(ctx context.Context) (within context.Context, done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy++; f.busy == 1 {
		f.since = time.Now()
	}
	left := f.timeout - f.spent - time.Since(f.since)
	within, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), left, errLate)
	return within, func() {
		cancel()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.busy--; f.busy == 0 {
			f.spent += time.Since(f.since)
		}
	}
}

// forecastPlan makes the forecast. It reads the cluster, once for all plans, and replaces the planned job's pods by the
// API server's answers to dry runs. objects are applied before the jobs.
func (c *connection) forecastPlan(ctx context.Context, before []forecast.Job, planned *forecast.Job, objects ...runtime.Object) (forecast.Answer, error) {
	queued := slices.ContainsFunc(append(slices.Clip(before), *planned), forecast.Job.Queued)
	s, err := c.snapshot(ctx, queued)
	if err != nil {
		return forecast.Answer{}, err
	}
	s = s.With(objects)
	*planned = c.dryRun(ctx, *planned)
	job := *planned
	ctx, done := c.forecasts.withTimeBudget(ctx)
	defer done()
	again := func(s *forecast.Snapshot) []forecast.Answer {
		return []forecast.Answer{forecast.Run(ctx, s, before, job)}
	}
	answer := again(s)[0]
	if len(answer.NeedsConfigMaps)+len(answer.Replacements) == 0 {
		return answer, nil
	}
	client, diags := c.cluster()
	if diags.HasError() {
		return answer, nil
	}
	known := *s
	if len(answer.NeedsConfigMaps) > 0 {
		// Without all of them the forecast says what is unknown, which is better than none in a plan.
		known.Jobs, _ = snapshot.ReadJobs(ctx, client, answer.NeedsConfigMaps[:min(len(answer.NeedsConfigMaps), maxJobsRead)])
		answer = again(&known)[0]
	}
	return snapshot.DryRunReplacements(ctx, client, &known, []forecast.Answer{answer}, again)[0], nil
}

// snapshot is the cluster with the planned objects besides jobs: classes and queues.
func (c *connection) snapshot(ctx context.Context, queued bool) (*forecast.Snapshot, error) {
	f := c.forecasts
	client, diags := c.cluster()
	if diags.HasError() {
		return nil, errors.New(diags.Errors()[0].Summary() + ". " + diags.Errors()[0].Detail())
	}
	var queues *forecast.Queues
	var errQueues error
	var reading sync.WaitGroup
	if queued {
		reading.Go(func() {
			queues, errQueues = f.queues.get(func() (*forecast.Queues, error) { return withinBudget(ctx, c, client, snapshot.ReadQueues) })
		})
	}
	s, err := f.cluster.get(func() (*forecast.Snapshot, error) { return withinBudget(ctx, c, client, snapshot.Read) })
	reading.Wait()
	if err == nil && !errors.Is(errQueues, snapshot.ErrNoKueue) {
		err = errQueues
	}
	if err != nil {
		return nil, err
	}
	whole := *s
	whole.Open = true // other providers of the plan may make classes and namespaces
	whole.Queues = queues
	c.planned.addTo(&whole)
	return &whole, nil
}

// isUnreachable reports whether a failure to read the cluster means that it does not answer, rather than that it
// refuses.
func isUnreachable(err error) bool {
	var forbidden *snapshot.ForbiddenError
	return !errors.As(err, &forbidden) && !errors.Is(err, snapshot.ErrNoKueue)
}

// withinBudget reads an object of the cluster within the time budget of forecasts.
func withinBudget[T any](ctx context.Context, c *connection, client *cluster.Client, read func(context.Context, *cluster.Client) (T, error)) (value T, err error) {
	if c.planned.isUnreachable() {
		return value, errSilentCluster
	}
	ctx, done := c.forecasts.withTimeBudget(ctx)
	defer done()
	enough := c.forecasts.hasTime(ctx)
	if value, err = read(ctx, client); err == nil {
		return value, nil
	}
	if !enough && ctx.Err() != nil {
		return value, errSpent // which says nothing about the cluster
	}
	if isUnreachable(err) {
		c.planned.markUnreachable()
	}
	return value, unread(ctx, err)
}

// hasTime reports whether the cluster has time to respond before a context ends, unless it is unreachable.
func (f *forecasts) hasTime(ctx context.Context) bool {
	end, _ := ctx.Deadline()
	return time.Until(end) > min(lookTimeout, f.timeout)/2
}

// unread is the reason why the cluster was not read.
func unread(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errLate) {
		return cause
	}
	if errors.Is(err, snapshot.ErrNoKueue) {
		return err
	}
	var forbidden *snapshot.ForbiddenError
	if errors.As(err, &forbidden) {
		return fmt.Errorf("%w. The ClusterRole elastic-forecaster of examples/rbac/rbac.yaml grants all permissions that forecasts need", forbidden)
	}
	summary, detail := cluster.Explain(err)
	return errors.New(summary + ": " + detail)
}

// noForecast reports that no forecast is possible: once in a process as a warning, and for each job as an error.
func (f *forecasts) noForecast(job forecast.Job, err error) diag.Diagnostics {
	reason := strings.TrimSuffix(err.Error(), ".") + "."
	if f.mode == forecastError {
		return diag.Diagnostics{diag.NewErrorDiagnostic("No forecast for "+job.String(), reason+
			` forecast = "error" rejects a plan whose evictions cannot be predicted. To plan anyway, set "warn" or "off".`)}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	warned := f.warned
	f.warned = true
	if warned {
		return nil
	}
	return diag.Diagnostics{diag.NewWarningDiagnostic("No forecast for the planned jobs", fmt.Sprintf(
		"There is no forecast for %s: %s The plan is otherwise complete. To plan without forecasts, set forecast = \"off\" in the provider's configuration.", job, reason))}
}

// diagnostics converts an answer to a diagnostic.
func (f *forecasts) diagnostics(answer forecast.Answer) diag.Diagnostics {
	if f.mode == forecastError {
		if reasons := answer.Refusals(f.accepted...); len(reasons) > 0 {
			return diag.Diagnostics{diag.NewErrorDiagnostic(answer.Summary(), fmt.Sprintf("%s\n\nRejected because of forecast = \"error\": %s.",
				answer.Text(), strings.Join(reasons, "; ")))}
		}
	}
	return diag.Diagnostics{diag.NewWarningDiagnostic(answer.Summary(), answer.Text())}
}

// resolveForecast reads the provider's attributes about forecasts. A mode that is not known yet is refused: it could be
// the one that refuses.
func resolveForecast(model configModel) (forecastConfig, diag.Diagnostics) {
	var diags diag.Diagnostics
	config := forecastConfig{mode: forecastWarn, timeout: defaultForecastTimeout}
	if model.Forecast.IsUnknown() {
		diags.AddAttributeError(path.Root("forecast"), "Unknown forecast mode", "The plan depends on it. Use a value that is known at plan time: a literal or a variable, not an attribute of a resource.")
	}
	if text := model.Forecast.ValueString(); text != "" {
		config.mode = text
	}
	if model.ForecastAcceptedReasons.IsUnknown() {
		diags.AddAttributeError(path.Root("forecast_accepted_reasons"), "Unknown accepted reasons", "The plan depends on it. Use a value that is known at plan time.")
	}
	accepted, err := forecast.ParseReasonCodes(textsOf(model.ForecastAcceptedReasons))
	if err != nil {
		diags.AddAttributeError(path.Root("forecast_accepted_reasons"), "Invalid reason code", sentenceOf("", err.Error()))
	}
	config.accepted = accepted
	if model.ForecastTimeout.IsNull() || model.ForecastTimeout.IsUnknown() {
		return config, diags
	}
	timeout, err := time.ParseDuration(model.ForecastTimeout.ValueString())
	if err != nil || timeout <= 0 {
		diags.AddAttributeError(path.Root("forecast_timeout"), "Invalid duration", fmt.Sprintf(
			"forecast_timeout is %q; use a number and a unit, such as \"3s\" or \"500ms\".", model.ForecastTimeout.ValueString()))
	}
	config.timeout = timeout
	return config, diags
}
