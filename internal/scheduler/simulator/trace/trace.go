// Package trace turns recorded clusters into scenarios: their jobs, and their nodes if a trace has them, by the
// policy that the scenario states. The files are read where the user has put them; none are here.
//
// The formats, as published:
//
//   - alibaba-gpu-v2023 (alibaba/clusterdata, cluster-trace-gpu-v2023): openb_pod_list_*.csv, and openb_node_list_*.csv as nodes. GPUs are counted in
//     thousandths (alibabacloud.com/gpu-milli), because pods share them; that a share must be of one GPU is not modelled. gpu_spec becomes
//     required node affinity. Latency-sensitive and guaranteed pods are the important ones.
//   - alibaba-spot-v2026 (cluster-trace-v2026-spot-gpu): job_info_df.csv, and node_info_df.csv. cpu_request and gpu_request are of each worker; HP jobs
//     are the important ones; the group is the organization.
//   - philly (msr-fiddle/philly-traces): cluster_job_log, JSON, and cluster_machine_list. A job has as many equal pods as its last attempt had servers,
//     and runs as long as all its attempts did together; the group is the virtual cluster.
//   - helios (S-Lab HeliosData): cluster_log.csv, and cluster_gpu_number.csv, whose last day's total makes nodes of eight GPUs. That file knows no
//     CPUs, so that jobs ask for CPUs only where the scenario lists the nodes. The group is the virtual cluster.
//   - synthetic: jobs like Philly's in number, size and length, drawn from the scenario's seed.
//
// It guarantees that memory is bounded by what it keeps, a job a row, at most scenario.MaxJobs of them; and that errors
// are reported with file, line and column. Rows without a start or an end cannot be simulated; they are counted and
// left out.
package trace

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// gpu is the resource of whole GPUs.
const gpu corev1.ResourceName = "nvidia.com/gpu"

// Omitted is how many rows were left out, and why.
type Omitted struct {
	Rows   int
	Reason string
}

// Into adds the jobs of a scenario's trace, and its nodes where the scenario lists none. A scenario without a trace
// stays as it is. The error names file, line and column.
func Into(s *scenariofile.Scenario) ([]Omitted, error) {
	t := s.Trace
	if t == nil {
		return nil, nil
	}
	b := &builder{
		scenario: s, trace: t, names: map[string]bool{}, queues: map[string]bool{}, nodesGiven: len(s.Nodes) > 0,
		intervals: rand.New(rand.NewPCG(s.Seed, 0x69_6e_74_65_72_76_61_6c)),
	}
	for _, q := range s.LocalQueues {
		b.queues[q.Name] = true
	}
	var err error
	switch t.Format {
	case scenariofile.AlibabaGPU2023:
		err = b.alibaba2023()
	case scenariofile.AlibabaSpot2026:
		err = b.alibaba2026()
	case scenariofile.Philly:
		err = b.philly()
	case scenariofile.Helios:
		err = b.helios()
	case scenariofile.Synthetic:
		err = b.synthetic()
	}
	if err != nil {
		return nil, err
	}
	if len(b.jobs) == 0 {
		return nil, fmt.Errorf("trace %s: no job in it can be simulated%s", t.Jobs, b.omittedText())
	}
	b.finish()
	return b.omitted, b.checkFaults()
}

// builder makes a scenario of rows.
type builder struct {
	scenario   *scenariofile.Scenario
	trace      *scenariofile.Trace
	names      map[string]bool
	queues     map[string]bool
	nodesGiven bool
	intervals  *rand.Rand // of checkpoints
	omitted    []Omitted

	jobs []scenariofile.Job
	// from is the first row's submission, in seconds of whatever epoch the trace has: the smallest so far.
	from int64
	at   []int64 // submissions
}

// row is one job of a trace.
type row struct {
	name      string
	group     string
	important bool
	submitted int64 // seconds
	runs      int64 // seconds
	pods      int
	requests  scenariofile.Resources
	selector  map[string]string
	affinity  *corev1.Affinity
}

// full reports whether no more jobs are wanted.
func (b *builder) full() bool { return b.trace.Limit > 0 && len(b.jobs) >= b.trace.Limit }

func (b *builder) omit(reason string) {
	if at := slices.IndexFunc(b.omitted, func(o Omitted) bool { return o.Reason == reason }); at >= 0 {
		b.omitted[at].Rows++
		return
	}
	b.omitted = append(b.omitted, Omitted{1, reason})
}

func (b *builder) omittedText() string {
	var parts []string
	for _, o := range b.omitted {
		parts = append(parts, fmt.Sprintf("%d rows %s", o.Rows, o.Reason))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// maxSeconds is the longest time that a row may name.
const maxSeconds = int64(scenariofile.MaxDuration / 1000)

// add makes a job of a row, or says what is wrong with it.
func (b *builder) add(r row) error {
	name := objectName(r.name)
	switch {
	case b.names[name]:
		return fmt.Errorf("job %q is here twice", r.name)
	case len(b.jobs) >= scenariofile.MaxJobs:
		return fmt.Errorf("the trace has more than %d jobs; set a limit", scenariofile.MaxJobs)
	case r.pods < 1 || r.pods >= scenariofile.MaxPodsOfJob:
		return fmt.Errorf("job %q has %d pods; they are 1 to %d", r.name, r.pods, scenariofile.MaxPodsOfJob-1)
	case r.runs > maxSeconds:
		return fmt.Errorf("job %q runs for %d s; a hundred years are the most", r.name, r.runs)
	}
	if r.runs < 1 {
		b.omit("of jobs that ran for no time")
		return nil
	}
	b.names[name] = true
	queue := b.trace.Queue
	if b.trace.QueueOf != "" {
		queue += "-" + objectName(r.group)
		if !b.queues[queue] {
			return fmt.Errorf("job %q is of group %q, and the scenario has no local queue %s for it", r.name, r.group, queue)
		}
	}
	class, workloadClass := b.trace.Low, b.trace.WorkloadLow
	if r.important {
		class, workloadClass = b.trace.High, b.trace.WorkloadHigh
	}
	if queue == "" {
		workloadClass = ""
	}
	pod := scenariofile.Pod{
		Requests: r.requests, PriorityClass: class, NodeSelector: r.selector, Affinity: r.affinity,
		TerminationGracePeriod: b.trace.TerminationGracePeriod, Stops: b.trace.Stops,
	}
	job := scenariofile.Job{Name: name}
	if b.trace.Elastic && r.pods > 1 {
		job.Elastic = b.elastic(r, pod, queue, workloadClass)
	} else {
		job.Gang = &scenariofile.Gang{
			Pods: r.pods, Pod: pod, Runs: scenariofile.Duration(r.runs * 1000), CheckpointEvery: b.interval(), Restart: b.trace.Restart,
			Queue: queue, WorkloadPriorityClass: workloadClass,
		}
	}
	b.jobs = append(b.jobs, job)
	b.at = append(b.at, r.submitted)
	if len(b.jobs) == 1 || r.submitted < b.from {
		b.from = r.submitted
	}
	return nil
}

// interval is the time between two checkpoints of the next job.
func (b *builder) interval() scenariofile.Duration {
	least, most := b.trace.CheckpointEvery, b.trace.CheckpointUpTo
	if most <= least {
		return least
	}
	return least + scenariofile.Duration(b.intervals.Int64N(int64(most-least)+1))
}

// maxSteps bounds the steps of an elastic job, as in a scenario file.
const maxSteps = 1_000_000_000

// elastic makes an elastic job of a gang: as long with all workers, and in proportion with fewer. A step is a second of
// one worker, or where that would be too many steps, of so many as make them few enough.
func (b *builder) elastic(r row, pod scenariofile.Pod, queue, class string) *scenariofile.Elastic {
	steps, slowness := r.runs*int64(r.pods), int64(1)
	for steps/slowness > maxSteps {
		slowness *= 10
	}
	perWorker := max(scenariofile.Rate(1_000_000/slowness), 1)
	master := scenariofile.Pod{PriorityClass: b.trace.High, TerminationGracePeriod: pod.TerminationGracePeriod, Stops: pod.Stops}
	master.PriorityClass = cmp.Or(master.PriorityClass, pod.PriorityClass)
	e := &scenariofile.Elastic{
		Master: master, Workers: scenariofile.Workers{Min: 1, Max: r.pods, Pod: pod},
		Steps:           max(1, steps/slowness),
		Speed:           scenariofile.Speed{StepsPerSecond: map[int]scenariofile.Rate{1: perWorker, r.pods: perWorker * scenariofile.Rate(r.pods)}},
		CheckpointEvery: b.interval(),
	}
	if queue != "" {
		e.Queue = &scenariofile.ElasticQueue{Name: queue, PriorityClass: class, MinPriorityClass: class}
	}
	return e
}

// finish gives the jobs their times, since the first one's, and what the scenario's own jobs would have got by default.
func (b *builder) finish() {
	for i := range b.jobs {
		b.jobs[i].Submit = scenariofile.Duration((b.at[i] - b.from) * 1000)
		b.jobs[i].Complete()
	}
	b.scenario.Jobs = append(b.scenario.Jobs, b.jobs...)
}

func (b *builder) checkFaults() error {
	nodes := map[string]bool{}
	for _, g := range b.scenario.Nodes {
		count := 1
		if g.Count != nil {
			count = *g.Count
		}
		for n := range count {
			nodes[g.NodeName(n)] = true
		}
	}
	for i, f := range b.scenario.Faults {
		if !nodes[f.Node] {
			return fmt.Errorf("faults[%d].node is %q; the trace %s has no such node", i, f.Node, b.trace.Nodes)
		}
	}
	return nil
}

// node adds a node of the trace.
func (b *builder) node(name string, allocatable scenariofile.Resources, labels map[string]string) error {
	name = objectName(name)
	switch {
	case b.names["node "+name]:
		return fmt.Errorf("node %q is here twice", name)
	case len(b.scenario.Nodes) >= scenariofile.MaxNodes:
		return fmt.Errorf("the trace has more than %d nodes", scenariofile.MaxNodes)
	}
	b.names["node "+name] = true
	group := scenariofile.NodeGroup{Name: name, Allocatable: allocatable, Labels: labels}
	group.Complete()
	b.scenario.Nodes = append(b.scenario.Nodes, group)
	return nil
}

// objectName makes an object's name of an identifier.
func objectName(id string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, id)
	return strings.Trim(name, "-.")
}

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

func milli(n int64) resource.Quantity { return *resource.NewMilliQuantity(n, resource.DecimalSI) }

// mebibytes are at most what 2⁶³ bytes hold; table.amount bounds them.
func mebibytes(n int64) resource.Quantity { return *resource.NewQuantity(n<<20, resource.BinarySI) }
