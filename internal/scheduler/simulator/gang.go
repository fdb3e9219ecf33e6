package simulator

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// gang is a job that computes while all its pods run.
type gang struct {
	*simulation
	job
	spec *scenariofile.Gang

	workload *workload // nil without a queue
	pods     []*pod    // by rank; nil where there is none
	ready    int       // pods that run
	made     int       // pods so far

	done        Time // of the work
	written     Time // when the last checkpoint before the last interruption was written; 0: there was none
	since       Time // when it began to compute, if it is computing
	computes    bool
	interrupted bool
	version     int
}

// The role of a gang's pods, and the name that Kueue gives the only pod set of a Job or a pod.
const (
	taskRole = "task"
	mainSet  = "main"
)

func (g *gang) arrives() {
	g.pods = make([]*pod, g.spec.Pods)
	if g.spec.Queue == "" {
		g.makePods()
		return
	}
	g.workload = g.newWorkload(g, "job-"+g.name, g.spec.Queue, g.spec.WorkloadPriorityClass, g.class(g.spec.PriorityClass),
		[]eventlog.Owner{{Kind: "Job", Name: g.name}}, set{mainSet, g.spec.Pods, &g.spec.Pod, gangAnnotations(g.spec.Topology)})
}

func (g *gang) priority() int32 {
	if g.spec.WorkloadPriorityClass != "" {
		return g.workloadClasses[g.spec.WorkloadPriorityClass]
	}
	return g.class(g.spec.PriorityClass)
}

func (g *gang) admitted(w *workload) {
	g.reports(w)
	g.makePods()
}

// makePods makes the pods that are missing.
func (g *gang) makePods() {
	for rank, p := range g.pods {
		if p == nil {
			g.pods[rank] = g.newPod(g, taskRole, rank, fmt.Sprintf("%s-%d", g.name, g.made), &g.spec.Pod, g.spec.PriorityClass, g.workload)
			g.made++
		}
	}
}

func (g *gang) podRuns(*pod) {
	if g.ready++; g.ready < len(g.pods) {
		return
	}
	g.starts(&g.job)
	g.computes, g.since = true, g.now
	if g.interrupted {
		g.since += Time(g.spec.Restart)
	}
	g.version++
	g.eventQueue.add(event{at: g.since + Time(g.spec.Runs) - g.done, kind: workDone, subject: g.id, version: g.version})
	g.watchAges()
}

func (g *gang) timer(e event) {
	if e.kind != workDone || e.version != g.version {
		return
	}
	g.computes, g.done = false, Time(g.spec.Runs)
	g.stats.useful.add(g.weight(), g.done)
	g.ends(&g.job, g.priority())
	for _, p := range g.pods {
		g.complete(p)
	}
	if g.workload != nil {
		g.finishes(g.workload)
	}
}

// weight is the amount of the counted resource that all pods hold.
func (g *gang) weight() int64 { return int64(g.spec.Pods) * g.weightOf(&g.spec.Pod) }

func (g *gang) checkpointed() (at Time, computes bool) {
	every, worked := Time(g.spec.CheckpointEvery), g.now-g.since
	if !g.computes || every == 0 || worked <= 0 {
		return g.written, g.computes
	}
	if unsaved := (g.done + worked) % every; unsaved < worked {
		return g.now - unsaved, true
	}
	return g.written, true
}

// interrupt returns the work to the last checkpoint.
func (g *gang) interrupt() {
	if !g.computes {
		return
	}
	g.written, _ = g.checkpointed()
	g.computes, g.interrupted = false, true
	g.version++
	kept := g.done
	if worked := g.now - g.since; worked > 0 {
		g.done += worked
	}
	if every := Time(g.spec.CheckpointEvery); every > 0 {
		kept = max(kept, g.done-g.done%every)
	}
	g.stats.lost.add(g.weight(), g.done-kept)
	g.logLost(g.name, 0, g.done-kept)
	g.done = kept
}

func (g *gang) podStopping(*pod) { g.interrupt() }

func (g *gang) podEnded(p *pod) {
	g.pods[p.number] = nil
	if p.ran {
		g.ready--
	}
	if g.over {
		return
	}
	g.interrupt()
	if g.workload == nil || g.workload.holds() {
		g.makePods()
	}
}

func (g *gang) evicted(*workload) {
	g.interrupt()
	for _, p := range g.pods {
		if p != nil {
			g.stop(p, quotaRevoked)
		}
	}
}

func (g *gang) fails(bool) *pod {
	for _, p := range g.pods {
		if p != nil && p.phase == running && !p.leaving {
			return p
		}
	}
	return nil
}

// unfinished is the useful work of a gang that had not ended when the simulation did.
func (g *gang) unfinished() {
	if g.over {
		return
	}
	if g.computes && g.now > g.since {
		g.done += g.now - g.since
	}
	g.stats.useful.add(g.weight(), g.done)
}
