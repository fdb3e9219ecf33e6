package differential

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// A judged world is one with its forecasts, and what is wrong with them.
type judged struct {
	world   *Snapshot
	runs    []Run
	answers map[string]forecast.Answer
	wrong   []string
}

// judgeWorld compares two forecasts for the job of a small world with all that may happen there: one that has its time, and
// one that has none and follows one of many runs, so that what it calls certain rests on proofs.
func judgeWorld(ctx context.Context, world *Snapshot) (j judged, err error) {
	j = judged{world: world, answers: map[string]forecast.Answer{}}
	if j.runs, err = Enumerate(ctx, world); err != nil {
		return j, err
	}
	s, job := forForecast(world)
	over, cancel := context.WithCancel(ctx)
	cancel()
	for of, ctx := range map[string]context.Context{"with time": ctx, "without time": over} {
		answer := forecast.Run(ctx, s, nil, job)
		cut := slices.ContainsFunc(answer.Approximate, func(r forecast.Reason) bool { return r.Code == forecast.TooManyChoices })
		for _, why := range judge(answer, j.runs, !cut) {
			j.wrong = append(j.wrong, of+": "+why)
		}
		j.answers[of] = answer
	}
	slices.Sort(j.wrong)
	return j, nil
}

// smallest is the smallest part of a world that is found in which a claim of the same kind is wrong, with what may happen.
func (j judged) smallest(ctx context.Context) string {
	limited, cancel := context.WithTimeout(ctx, smallPatience)
	defer cancel()
	kind := func(why string) string { return strings.Join(strings.Fields(why)[:3], " ") } // with or without time, and the claim
	small := j
	same := func(why string) bool { return kind(why) == kind(j.wrong[0]) }
	planned := nameOf(j.world.Pods[slices.IndexFunc(j.world.Pods, isPlanned)]).String()
	Minimal(limited, j.world, planned, func(part *Snapshot) bool {
		again, err := judgeWorld(limited, part)
		if err != nil || limited.Err() != nil || !slices.ContainsFunc(again.wrong, same) {
			return false
		}
		small = again
		return true
	})
	text := fmt.Sprintf("%s%s\n", small.world, strings.Join(small.wrong, "\n"))
	for _, of := range slices.Sorted(maps.Keys(small.answers)) {
		text += fmt.Sprintf("%s: %s\n%s\n", of, small.answers[of].Summary(), small.answers[of].Text())
	}
	for _, run := range small.runs {
		text += "may happen: " + run.String() + "\n"
	}
	return text
}

// judge compares the certain claims of a forecast with all that may happen, or with some of it: then exact is false, and what
// the forecast calls possible need not be among the runs. It returns what is wrong, a sentence each.
func judge(a forecast.Answer, runs []Run, exact bool) []string {
	j := judgement{Answer: a, runs: runs}
	claims := a.Claims()
	if claims.Outcome.Certain {
		j.claim = "outcome"
		j.outcome(exact)
	}
	if claims.Evictions.Certain {
		j.claim = "evictions"
		j.evictions(claims.Evictions, exact)
	}
	if claims.Placement.Certain {
		j.claim = "placement"
		j.placement(exact)
	}
	return j.wrong
}

type judgement struct {
	forecast.Answer
	runs  []Run
	claim string // that is judged
	wrong []string
}

func (j *judgement) add(format string, args ...any) {
	j.wrong = append(j.wrong, j.claim+": "+fmt.Sprintf(format, args...))
}

// any is the first run that meets a condition.
func (j *judgement) any(meets func(Run) bool) (run Run, found bool) {
	if i := slices.IndexFunc(j.runs, meets); i >= 0 {
		return j.runs[i], true
	}
	return Run{}, false
}

// outcome judges whether the pods that the job needs start, and whether some pod is evicted for it.
func (j *judgement) outcome(exact bool) {
	starts := func(r Run) bool {
		for i, pod := range j.Pods {
			if !pod.Optional && r.Nodes[i] == "" {
				return false
			}
		}
		return true
	}
	evicts := func(r Run) bool { return len(r.Evicted) > 0 }
	waiting, waits := j.any(func(r Run) bool { return !starts(r) })
	evicting, evicted := j.any(evicts)
	started, all := j.any(starts)
	switch j.Outcome {
	case forecast.Fits:
		if waits {
			j.add("it starts, and does not: %s", waiting)
		}
		if evicted {
			j.add("it starts without evictions, and evicts: %s", evicting)
		}
	case forecast.Preempts:
		if waits {
			j.add("it starts after evictions, and does not: %s", waiting)
		}
		if exact && !evicted {
			j.add("it preempts, and never evicts any pod")
		}
	case forecast.Pends:
		if exact && !waits {
			j.add("it waits, and always starts")
		}
	case forecast.Never:
		if all {
			j.add("it can never run, and starts: %s", started)
		}
	}
}

// evictions judges who is evicted, and how many.
func (j *judgement) evictions(claim forecast.Evicted, exact bool) {
	var named, certain []string
	for _, e := range j.Evicts {
		if name := e.Namespace + "/" + e.Name; !e.Own {
			if named = append(named, name); e.Certain {
				certain = append(certain, name)
			}
		}
	}
	spares := func(r Run) bool {
		return !slices.ContainsFunc(r.Evicted, func(name string) bool { return !slices.Contains(certain, name) })
	}
	fewest, most, spared := len(named), 0, false
	for _, r := range j.runs {
		fewest, most, spared = min(fewest, len(r.Evicted)), max(most, len(r.Evicted)), spared || spares(r)
		for _, name := range r.Evicted {
			if !slices.Contains(named, name) {
				j.add("%s is evicted, and not named: %s", name, r)
			}
		}
		for _, name := range certain {
			if !slices.Contains(r.Evicted, name) {
				j.add("%s is evicted for certain, and is not: %s", name, r)
			}
		}
		if count := len(r.Evicted); count < claim.Pods.Min || count > claim.Pods.Max {
			j.add("%d to %d pods are evicted, and %d are: %s", claim.Pods.Min, claim.Pods.Max, count, r)
		}
		if len(named) > len(certain) && !j.MaySpareAll && spares(r) {
			j.add("one of several pods is evicted, and none is: %s", r)
		}
	}
	if !exact {
		return
	}
	for _, name := range named {
		isEvicted := func(r Run) bool { return slices.Contains(r.Evicted, name) }
		if _, ever := j.any(isEvicted); !ever {
			j.add("%s may be evicted, and never is", name)
		} else if _, ever := j.any(func(r Run) bool { return !isEvicted(r) }); !ever && !slices.Contains(certain, name) {
			j.add("%s may be evicted, and always is", name)
		}
	}
	if fewest != claim.Pods.Min || most != claim.Pods.Max {
		j.add("%d to %d pods are evicted, and it are %d to %d", claim.Pods.Min, claim.Pods.Max, fewest, most)
	}
	if len(named) > len(certain) && j.MaySpareAll && !spared {
		j.add("it is possible that none of several pods is evicted, and one always is")
	}
}

// placement judges which pods start, and where.
func (j *judgement) placement(exact bool) {
	for _, r := range j.runs {
		if !j.assigns(r) {
			j.add("the pods go otherwise: %s", r)
		}
	}
	if !exact {
		return
	}
	for i, pod := range j.Pods {
		of := j.alikes(i)
		goes := func(node string) bool {
			_, ever := j.any(func(r Run) bool { return slices.ContainsFunc(of, func(k int) bool { return r.Nodes[k] == node }) })
			return ever
		}
		for _, node := range pod.Nodes {
			if !goes(node) {
				j.add("%s may start on %s, and never does", pod.Role, node)
			}
		}
		if pod.State != forecast.Starts && !goes("") {
			j.add("%s may wait, and always starts", pod.Role)
		}
	}
}

// alikes are the pods that may exchange places with one, itself included.
func (j *judgement) alikes(i int) []int {
	of := []int{i}
	for _, row := range j.Alike {
		if !slices.Contains(row, j.Pods[i].Role) {
			continue
		}
		for k, other := range j.Pods {
			if k != i && slices.Contains(row, other.Role) {
				of = append(of, k)
			}
		}
	}
	return of
}

// assigns reports whether each pod can have its place in a run, or that of a pod which is alike.
func (j *judgement) assigns(r Run) bool {
	owner := make([]int, len(j.Pods)) // of each place
	for k := range owner {
		owner[k] = -1
	}
	fits := func(i, k int) bool {
		pod, node := j.Pods[i], r.Nodes[k]
		if node == "" {
			return pod.State != forecast.Starts
		}
		return len(pod.Nodes) > 0 && (pod.Others > 0 || slices.Contains(pod.Nodes, node))
	}
	var assign func(i int, tried map[int]bool) bool
	assign = func(i int, tried map[int]bool) bool {
		for _, k := range j.alikes(i) {
			if tried[k] || !fits(i, k) {
				continue
			}
			tried[k] = true
			if owner[k] < 0 || assign(owner[k], tried) {
				owner[k] = i
				return true
			}
		}
		return false
	}
	for i := range j.Pods {
		if !assign(i, map[int]bool{}) {
			return false
		}
	}
	return true
}
