package forecast

import (
	"maps"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// waves are the steps of a stage's later waves; see Pod.Wave.
type waves map[int]*step

func (w waves) step(job, wave int) *step {
	if w[wave] == nil {
		w[wave] = &step{job: job}
	}
	return w[wave]
}

// after are the steps in their order. A pod that has to end before the next wave has ended when that wave begins.
func (w waves) after(first step, planned map[*placement.Pod]planned) []step {
	steps := []step{first}
	for _, wave := range slices.Sorted(maps.Keys(w)) {
		next := *w[wave]
		for _, pod := range steps[len(steps)-1].pods {
			if planned[pod].Ends {
				next.ends = append(next.ends, pod)
			}
		}
		steps = append(steps, next)
	}
	return steps
}

// end removes pods that ran and have ended from their nodes.
func (r *run) end(pods []*placement.Pod) {
	for _, pod := range pods {
		if f := r.outcomes[pod]; f != nil && f.bound != "" {
			r.cluster.RemovePod(pod, f.bound)
			f.bound = ""
		}
	}
}
