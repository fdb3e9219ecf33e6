package forecast

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// explore follows what may happen to the jobs after the decisions of their queues: everything, or one run where late is
// true.
func (f *forecast) explore(late func() bool) []*run {
	f.proof = f.displaced()
	start := &run{
		splitter: splitter{&budget{most: mostRuns(len(f.snapshot.Nodes)), proved: f.proof != nil && !f.proof.Guarded, late: late}, f.merged, f.history, f.distinct, kinds(), f.early, f.ends, f.begin}, cluster: f.cluster, outcomes: map[*placement.Pod]*podOutcome{},
		lost: f.stopping, competitors: f.competitors(), lesser: f.lesser(), apiServer: f.apiServer,
	}
	start.independent = start.findNow(slices.Concat(start.competitors, start.lesser))
	var runs []*run
	for _, created := range f.creations() {
		one := start.fork()
		one.apiServer = created.apiServer
		runs = append(runs, f.follow(one, created.steps)...)
	}
	return f.merged(runs)
}

// follow executes steps in a run, one after the other and, where they are of several jobs, at the same time: Terraform
// creates the jobs of one plan in either way.
func (f *forecast) follow(start *run, steps []step) []*run {
	first, rest := simultaneous(steps)
	if len(first) == 1 && len(rest) == 0 {
		return f.through([]*run{start}, steps)
	}
	together, interleaved := start.fork(), start.fork()
	interleaved.drop() // until it is known to be needed
	runs := f.through([]*run{start}, steps)
	if len(first) > 1 && (len(rest) == 0 || !slices.ContainsFunc(runs, (*run).moves)) {
		runs = append(runs, f.through(f.take(together, first...), rest)...)
	} else {
		together.drop()
	}
	if len(rest) == 0 || !slices.ContainsFunc(runs, (*run).moves) {
		return runs
	}
	// Later pods of a job may come while pods are stopping, or before others that wait have been tried.
	interleaved.followed++
	interleaved.later = rest
	for _, r := range f.take(interleaved, first...) {
		blocked := r.later
		r.later = nil
		runs = append(runs, f.through([]*run{r}, blocked)...)
	}
	return f.merged(runs)
}

// moves reports whether pods of others stop, or found a node, after the jobs were created.
func (r *run) moves() bool { return len(r.lost) > 0 || len(r.scheduled) > 0 }

// begin adds the pods of later steps to the queues of a run as soon as the pods of the steps before them have started,
// which may be while victims of other jobs are stopping.
func (f *forecast) begin(r *run) {
	var waiting []step
	waits := map[int]bool{} // by the number of the job
	for _, next := range r.later {
		if waits[next.job] || f.blocked(r, next) {
			waits[next.job] = true
			waiting = append(waiting, next)
			continue
		}
		for _, pods := range f.kinds(f.prepare(r, next)) {
			r.queues = append(r.queues, byPriority(pods))
		}
	}
	r.later = waiting
}

// through executes steps, one after the other.
func (f *forecast) through(runs []*run, steps []step) []*run {
	for _, step := range steps {
		var next []*run
		for _, r := range runs[0].inTime(runs) {
			next = append(next, f.take(r, step)...)
		}
		runs = f.merged(next)
	}
	return runs
}

// simultaneous returns the first steps of the jobs, and all other steps.
func simultaneous(steps []step) (first, rest []step) {
	seen := map[int]bool{}
	for _, step := range steps {
		if seen[step.job] {
			rest = append(rest, step)
		} else {
			first = append(first, step)
		}
		seen[step.job] = true
	}
	return first, rest
}
