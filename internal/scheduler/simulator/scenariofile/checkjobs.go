package scenariofile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func (c *checker) checkJobs() {
	if len(c.s.Jobs) == 0 && c.s.Trace == nil {
		c.problem("jobs", "is empty; there must be something to run")
	}
	c.jobs = map[string]bool{}
	total := 0
	for i := range c.s.Jobs {
		j := &c.s.Jobs[i]
		path := fmt.Sprintf("jobs[%d]", i)
		c.name(path, j.Name, c.jobs)
		if (j.Elastic == nil) == (j.Gang == nil) {
			c.problem(path, "must be either elastic or a gang")
			continue
		}
		j.Complete()
		pods := 0
		if j.Gang != nil {
			pods = c.gang(below(path, "gang"), j.Gang)
		} else {
			pods = c.elastic(below(path, "elastic"), j.Elastic)
		}
		times := 1
		if r := j.Repeat; r != nil {
			times = r.Count
			if r.Count < 1 || r.Count > MaxJobs {
				c.problem(below(path, "repeat.count"), "is %d; it is 1 to %d", r.Count, MaxJobs)
				return
			}
			if r.Every > (MaxDuration-j.Submit)/Duration(r.Count) {
				c.problem(below(path, "repeat.every"), "makes a stream that lasts longer than a hundred years")
			}
		}
		if total += times; total > MaxJobs {
			c.problem(path, "makes more than %d jobs", MaxJobs)
			return
		}
		if c.pods += times * min(pods, MaxPodsOfJob); c.pods > MaxPods {
			c.problem(path, "makes more than %d pods", MaxPods)
			return
		}
	}
	c.checkRepeatedNames()
}

// checkRepeatedNames rejects a job with a name that another job's repetition makes.
func (c *checker) checkRepeatedNames() {
	repeated := map[string]int{}
	for i, j := range c.s.Jobs {
		if j.Repeat != nil {
			repeated[j.Name] = i
		}
	}
	for i, j := range c.s.Jobs {
		dash := strings.LastIndexByte(j.Name, '-')
		if dash < 0 || j.Repeat != nil {
			continue
		}
		from, there := repeated[j.Name[:dash]]
		if n, err := strconv.Atoi(j.Name[dash+1:]); there && err == nil && n >= 0 && n < c.s.Jobs[from].Repeat.Count {
			c.problem(fmt.Sprintf("jobs[%d].name", i), "is %q, as one of the jobs that jobs[%d] makes", j.Name, from)
		}
	}
}

func (c *checker) pod(path string, p *Pod) {
	c.resources(below(path, "requests"), p.Requests)
	c.known(below(path, "priorityClass"), p.PriorityClass, "priority class", c.classes)
	if p.Stops != nil && *p.Stops > *p.TerminationGracePeriod {
		c.problem(below(path, "stops"), "is longer than the termination grace period of %s", *p.TerminationGracePeriod)
	}
}

// topology checks a job's request, as the provider checks attribute topology, and that its levels exist.
func (c *checker) topology(path string, t *trainingjob.Topology, queued bool, pods int, counted string) {
	if t == nil {
		return
	}
	if !queued {
		c.problem(below(path, "topology"), "counts only in a queue, because only Kueue places pods by a topology; set queue")
	}
	for _, p := range t.Problems(pods, counted) {
		c.problem(below(path, p.Field), "%s", p.Message)
	}
	for name, level := range map[string]string{"required": t.Required, "preferred": t.Preferred, "slice_required": t.SliceRequired} {
		if level != "" && !c.levels[level] {
			c.problem(below(path, "topology."+name), "is %q, which is no level of any topology; add it to topologies", brief(level))
		}
	}
}

func (c *checker) gang(path string, g *Gang) (pods int) {
	if g.Pods < 1 || g.Pods > MaxPodsOfJob {
		c.problem(below(path, "pods"), "is %d; it is 1 to %d", g.Pods, MaxPodsOfJob)
	}
	if g.Runs == 0 {
		c.problem(below(path, "runs"), "must be more than 0")
	}
	c.pod(path, &g.Pod)
	c.known(below(path, "queue"), g.Queue, "local queue", c.queues)
	c.known(below(path, "workloadPriorityClass"), g.WorkloadPriorityClass, "workload priority class", c.workloadClasses)
	c.topology(path, g.Topology, g.Queue != "", g.Pods, "pods")
	if g.WorkloadPriorityClass != "" && g.Queue == "" {
		c.problem(below(path, "workloadPriorityClass"), "counts only in a queue; set queue")
	}
	return g.Pods
}

func (c *checker) elastic(path string, e *Elastic) (pods int) {
	w := &e.Workers
	if w.Min < 1 || w.Max < w.Min || w.Max >= MaxPodsOfJob {
		c.problem(below(path, "workers"), "must have 1 ≤ min ≤ max < %d", MaxPodsOfJob)
		w.Min, w.Max = 1, 1
	}
	if e.Steps < 1 || e.Steps > maxSteps {
		c.problem(below(path, "steps"), "is %d; it is 1 to %d", e.Steps, maxSteps)
	}
	c.speed(below(path, "speed"), &e.Speed)
	c.pod(below(path, "master"), &e.Master)
	c.pod(below(path, "workers"), &w.Pod)
	c.known(below(path, "workers.minPriorityClass"), w.MinPriorityClass, "priority class", c.classes)
	c.topology(path, e.Topology, e.Queue != nil, w.Min, "workers.min")
	if q := e.Queue; q != nil {
		if q.Name == "" {
			c.problem(below(path, "queue"), "names no local queue")
		}
		c.known(below(path, "queue.name"), q.Name, "local queue", c.queues)
		c.known(below(path, "queue.priorityClass"), q.PriorityClass, "workload priority class", c.workloadClasses)
		c.known(below(path, "queue.minPriorityClass"), q.MinPriorityClass, "workload priority class", c.workloadClasses)
	}
	for i, r := range e.Resize {
		at := fmt.Sprintf("%s.resize[%d]", path, i)
		if r.Min < 1 || r.Max < r.Min || r.Max >= MaxPodsOfJob {
			c.problem(at, "must have 1 ≤ min ≤ max < %d", MaxPodsOfJob)
		}
		if e.Queue != nil && r.Min != w.Min {
			c.problem(at, "changes the minimum, which is admitted as a whole under a queue; leave min at %d", w.Min)
		}
	}
	return 1 + w.Max
}

func (c *checker) speed(path string, s *Speed) {
	computed := s.GradsToWait != 0 || s.Gradient != 0 || s.Overhead != 0
	switch measured := len(s.StepsPerSecond) > 0; {
	case measured == computed:
		c.problem(path, "needs either stepsPerSecond by number of workers, or gradsToWait and gradient")
	case measured:
		for n := range s.StepsPerSecond {
			if n < 1 || n > MaxPodsOfJob {
				c.problem(below(path, "stepsPerSecond"), "is for %d workers; the number is 1 to %d", n, MaxPodsOfJob)
			}
		}
	case s.GradsToWait < 1 || s.GradsToWait > maxGrads || s.Gradient == 0:
		c.problem(path, "needs gradsToWait from 1 to %d, and a gradient that takes time", maxGrads)
	case s.Gradient > MaxDuration/maxGrads || s.Overhead > MaxDuration/maxGrads:
		c.problem(path, "makes a step that lasts longer than a hundred years")
	}
}
