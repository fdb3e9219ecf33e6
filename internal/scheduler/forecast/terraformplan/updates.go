package terraformplan

import (
	"reflect"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// changed is an update of an object that creates pods.
func (r *reader) changed(change resourceChange, after forecast.Job) {
	before := objectsOf(change.Type, change.Change.Before)
	set := manifest.NewSet(before, r.given.Given)
	for _, object := range before {
		contents, err := set.Read(object)
		if err != nil {
			continue
		}
		for _, job := range contents.Jobs {
			if job.Noun == after.Noun && job.Key() == after.Key() {
				r.update(change, job, after)
				return
			}
		}
	}
	r.found.Jobs = append(r.found.Jobs, Job{Address: change.Address, Action: change.action(), Job: after})
}

// update is an existing job that changes: it gets more pods, or replaces the pods that it has.
func (r *reader) update(change resourceChange, before, after forecast.Job) {
	had, has := podsOf(before), podsOf(after)
	for i := range min(len(had), len(has)) {
		if !reflect.DeepEqual(had[i].Spec, has[i].Spec) || !reflect.DeepEqual(had[i].Labels, has[i].Labels) {
			after.Approximate = append(after.Approximate, "its pods are replaced one after the other, and run beside the former ones for a while")
			r.found.Deletions = append(r.found.Deletions, forecast.Deletion{Kind: before.Noun, Namespace: before.Namespace, Name: before.Name})
			r.found.Jobs = append(r.found.Jobs, Job{Address: change.Address, Action: change.action(), Job: after})
			return
		}
	}
	switch {
	case len(has) > len(had):
		after.Grows, after.Stages = true, beyond(after.Stages, len(had))
		r.found.Jobs = append(r.found.Jobs, Job{Address: change.Address, Action: change.action(), Job: after})
	case len(has) < len(had):
		r.skip(change, "it gets fewer pods, and which of them end is not known")
	}
}

func podsOf(job forecast.Job) []forecast.Pod {
	var pods []forecast.Pod
	for _, stage := range job.Stages {
		for _, part := range stage {
			pods = append(pods, part.Pods...)
		}
	}
	return pods
}

// beyond are stages without their first n pods.
func beyond(stages []forecast.Stage, n int) []forecast.Stage {
	var rest []forecast.Stage
	for _, stage := range stages {
		var parts forecast.Stage
		for _, part := range stage {
			skip := min(n, len(part.Pods))
			n -= skip
			if part.Pods = part.Pods[skip:]; len(part.Pods) > 0 {
				parts = append(parts, part)
			}
		}
		if len(parts) > 0 {
			rest = append(rest, parts)
		}
	}
	return rest
}
