package elasticsim

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/jobfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/report"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/terraformplan"
)

// request is the jobs to forecast, and the cluster on which they would run.
type request struct {
	on      *forecast.Snapshot
	jobs    []terraformplan.Job
	skipped []string
}

// contents reads a file or a plan, and applies to the snapshot what it has besides jobs.
func (f forecastFlags) contents(ctx context.Context, of state, text []byte) (request, error) {
	s := of.Snapshot
	given := manifest.Given{Namespace: f.namespace, Nodes: s.Nodes, Runtime: of.runtime}
	if f.plan == "" {
		contents, err := jobfile.Read(f.file, text, jobfile.Given{Flavors: s.Queues.FlavorLabels, Given: given})
		a := request{on: s.With(contents.Objects)}
		for _, job := range contents.Jobs {
			a.jobs = append(a.jobs, terraformplan.Job{Job: job})
		}
		return a, err
	}
	contents, err := terraformplan.Read(text, terraformplan.Given{
		Given: given,
		Elastic: func(resourceType string, attributes []byte) (*forecast.Job, runtime.Object, error) {
			return readPlanned(ctx, resourceType, attributes, s.Queues.FlavorLabels)
		},
	})
	if err != nil {
		return request{}, fmt.Errorf("%s: %w", f.plan, err)
	}
	return request{on: s.Without(contents.Deletions).With(contents.Objects), jobs: contents.Jobs, skipped: contents.Skipped}, nil
}

// dryRun asks the API server what it would make of the jobs that are known.
func (a request) dryRun(ctx context.Context, server asked) {
	var jobs []forecast.Job
	for _, job := range a.jobs {
		if job.Unknown == "" {
			jobs = append(jobs, job.Job)
		}
	}
	jobs = server.dryRun(ctx, jobs)
	for i := range a.jobs {
		if a.jobs[i].Unknown == "" {
			a.jobs[i].Job, jobs = jobs[0], jobs[1:]
		}
	}
}

// report forecasts all jobs that are known. What is not known may come before each of them, and makes it approximate.
func (a request) report(ctx context.Context, of state) (report.Report, error) {
	if of.asks != nil {
		a.dryRun(ctx, of.asks)
	}
	r := report.Report{Skipped: a.skipped}
	var jobs []forecast.Job
	var unknown []forecast.Reason
	for _, job := range a.jobs {
		if job.Unknown == "" {
			jobs = append(jobs, job.Job)
			continue
		}
		unknown = append(unknown, forecast.NewReason(forecast.PlannedUnknown, job.Address, job.Address+" is not known until apply; the forecast ignores it"))
	}
	for _, skipped := range a.skipped {
		unknown = append(unknown, forecast.NewReason(forecast.PlannedUnknown, "", skipped+"; the forecast ignores it"))
	}
	forecasts := func(s *forecast.Snapshot) []forecast.Answer { return forecast.All(ctx, s, jobs) }
	on := a.on
	answers := forecasts(on)
	known, err := of.details(needsDetails(answers))
	if err != nil {
		return report.Report{}, err
	}
	if len(known) > 0 {
		more := *on
		more.Jobs, on = known, &more
		answers = forecasts(on)
	}
	if of.asks != nil {
		answers = of.asks.replacements(ctx, on, answers, forecasts)
	}
	for _, job := range a.jobs {
		entry := report.Entry{Address: job.Address, Action: job.Action, Unknown: job.Unknown}
		if job.Unknown != "" {
			entry.Answer = forecast.Answer{Noun: job.Noun, Namespace: job.Namespace, Name: job.Name}
		} else {
			entry.Answer, answers = answers[0], answers[1:]
			entry.Approximate = append(entry.Approximate, unknown...)
		}
		r.Entries = append(r.Entries, entry)
	}
	return r, nil
}
