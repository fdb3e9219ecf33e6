package forecast

import (
	"fmt"
	"maps"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

const (
	// maxAttempts bounds the states of the creation of all planned objects that are looked at, and maxCreations the
	// results that are followed.
	maxAttempts  = 2000
	maxCreations = 24
)

// creation is a possible result of the creation of all planned objects, as far as ResourceQuotas decide about it.
type creation struct {
	steps     []step
	apiServer *podadmission.Controller
}

// creations are the results of all orders in which planned objects and their pods may be created, if a quota has room for
// some of them only, or is planned and counted at any time. f.steps is the result of the order of the plan.
func (f *forecast) creations() []creation {
	given := []creation{{f.steps, f.apiServer}}
	uncounted, passing := "", ""
	for _, step := range f.steps {
		for _, one := range step.rejected {
			if one.why.Uncounted != "" {
				uncounted = one.why.Uncounted
			}
			if one.why.Passing && one.why.Quota {
				passing = one.pod.Namespace()
			}
		}
	}
	if uncounted == "" && (passing == "" || len(f.jobs) < 2) {
		return given
	}
	if creators, known := f.creators(); known {
		if found, all := f.ordersOf(creators); all {
			return found
		}
	}
	if uncounted != "" {
		f.notes.add(PlannedUnknown, "ResourceQuota "+uncounted,
			"ResourceQuota %s is planned, and rejects no pods before its controller has counted those that are there", uncounted)
	}
	if passing != "" && len(f.jobs) > 1 {
		f.notes.add(QuotaOrder, "Namespace "+passing,
			"a quota has room for some of the pods only, and which of the jobs create theirs first is not known")
	}
	return given
}

// creator creates the object of a job and then pods of one kind, one after the other. What a quota has rejected once is
// rejected again: the use of a quota grows until victims stop.
type creator struct {
	job       int
	namespace string
	resources []string // by which the object counts in quotas
	pods      []*placement.Pod
	queued    bool
}

// creators are those whose objects or pods count in quotas. known is false if more than quotas decides about the order of
// a job's own pods.
func (f *forecast) creators() (creators []creator, known bool) {
	steps, planned := map[int]int{}, 0
	for _, quota := range f.snapshot.Quotas {
		if quota.Status.Hard == nil {
			planned++
		}
	}
	for _, step := range f.steps {
		steps[step.job]++
	}
	at := map[int]int{}
	for _, step := range f.steps {
		job := f.jobs[step.job]
		offered := slices.DeleteFunc(slices.Clone(step.order), func(pod *placement.Pod) bool { return !f.offered[pod] })
		counts := slices.ContainsFunc(offered, func(pod *placement.Pod) bool { return f.apiServer.Covers(pod.Object()) })
		if counts && (steps[step.job] > 1 || job.Noun == "DaemonSet" || len(f.kinds(offered)) > 1) {
			return nil, false
		}
		i, there := at[step.job]
		if !there {
			i = len(creators)
			at[step.job] = i
			creators = append(creators, creator{
				job: step.job, namespace: job.Key().Namespace, resources: f.objects[step.job], queued: job.Queued(),
			})
		}
		creators[i].pods = append(creators[i].pods, offered...)
	}
	return creators, planned <= 1
}

// attempt is a state of the creation of all planned objects.
type attempt struct {
	apiServer *podadmission.Controller
	counted   bool  // the quota that is planned
	next      []int // of each creator: 0 for its object, or one more than the index of its next pod
	refusals  map[*placement.Pod]*podadmission.Refusal
}

func (a attempt) with(apiServer *podadmission.Controller, creator, next int) attempt {
	a.apiServer, a.next, a.refusals = apiServer, slices.Clone(a.next), maps.Clone(a.refusals)
	a.next[creator] = next
	return a
}

// key is equal for states from which the same follows.
func (a attempt) key(creators []creator) string {
	var rejected []string
	for i, c := range creators {
		for j, pod := range c.pods {
			if a.refusals[pod] != nil {
				rejected = append(rejected, fmt.Sprint(i, "/", j))
			}
		}
	}
	return fmt.Sprint(a.counted, a.next, rejected)
}

// ordersOf follows all orders of creation. all is false if there are too many, or if one is not modelled.
func (f *forecast) ordersOf(creators []creator) (found []creation, all bool) {
	queue := []attempt{{f.quotas.Uncounted(), false, make([]int, len(creators)), map[*placement.Pod]*podadmission.Refusal{}}}
	seen, results := map[string]bool{}, map[string]bool{}
	for len(queue) > 0 {
		a := queue[0]
		queue = queue[1:]
		if key := a.key(creators); seen[key] {
			continue
		} else if seen[key] = true; len(seen) > maxAttempts {
			return nil, false
		}
		if !a.counted {
			counted := a
			counted.counted, counted.apiServer = true, a.apiServer.Counted()
			queue = append(queue, counted)
		}
		next, known := a.successors(creators)
		if queue = append(queue, next...); !known {
			return nil, false
		}
		key := attempt{next: a.next, refusals: a.refusals}.key(creators)
		if len(next) > 0 || results[key] {
			continue
		}
		if results[key] = true; len(results) > maxCreations {
			return nil, false
		}
		found = append(found, creation{f.stepsWith(a.refusals), a.apiServer.Counted()})
	}
	return found, true
}

// successors are the states after one more creation. known is false if the object of a job with a queue is rejected: the
// decisions of the queues take it into account.
func (a attempt) successors(creators []creator) (next []attempt, known bool) {
	for i, c := range creators {
		apiServer := a.apiServer.Clone()
		switch at := a.next[i]; {
		case at == 0:
			then := a.with(apiServer, i, 1)
			for _, resource := range c.resources {
				refusal := apiServer.ChargeObject(c.namespace, resource)
				if refusal == nil {
					continue
				}
				if c.queued {
					return nil, false
				}
				then.next[i] = len(c.pods) + 1
				for _, pod := range c.pods {
					then.refusals[pod] = refusal
				}
				break
			}
			next = append(next, then)
		case at <= len(c.pods):
			refusal := apiServer.Charge(c.pods[at-1].Object())
			then := a.with(apiServer, i, at+1)
			if refusal != nil {
				then.refusals[c.pods[at-1]] = refusal
			}
			next = append(next, then)
		}
	}
	return next, true
}

// stepsWith are the steps with other rejections by quotas.
func (f *forecast) stepsWith(refusals map[*placement.Pod]*podadmission.Refusal) []step {
	steps := slices.Clone(f.steps)
	for i, step := range steps {
		steps[i].pods = nil
		steps[i].rejected = slices.DeleteFunc(slices.Clone(step.rejected), func(one rejection) bool { return f.offered[one.pod] })
		for _, pod := range step.order {
			if why := refusals[pod]; why != nil {
				steps[i].rejected = append(steps[i].rejected, rejection{pod, why})
			} else if f.offered[pod] {
				steps[i].pods = append(steps[i].pods, pod)
			}
		}
	}
	return steps
}
