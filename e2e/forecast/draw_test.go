package forecast_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
)

// drawn is a scenario: pods that are there, and a job that is planned.
type drawn struct {
	seed   uint64
	pods   []drawnPod
	budget bool // a PodDisruptionBudget keeps the pods labelled guarded
	kind   jobKind
	cpu    string // of each pod of the job
	class  string
	nodes  int // pods of a gang, workers of a training job
	quota  int // CPUs, of a queued task
}

// drawnPod exists before the job is planned.
type drawnPod struct {
	name, cpu, class string
	owned            bool // by a Job, which makes it again
	guarded          bool
	queued           bool // with its Job
}

type jobKind string

const (
	aTask        jobKind = "task"
	aQueuedTask  jobKind = "queued task"
	aGang        jobKind = "gang"
	aTrainingJob jobKind = "training job"
)

// classes are PriorityClasses, and WorkloadPriorityClasses, by their value.
var classes = map[string]int32{"p10": 10, "p100": 100, "p1000": 1000, "p10000": 10000}

// draw makes a scenario of a seed; the same one every time.
func draw(seed uint64) drawn {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it has to be the same every time
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	d := drawn{seed: seed, kind: aTask, cpu: pick("1", "2", "3", "3900m"), class: pick("p100", "p1000", "p10000", "p10000"), nodes: 1}
	switch n := random.IntN(10); {
	case n < 2:
		d.kind, d.quota = aQueuedTask, 4+random.IntN(4)
	case n < 3:
		d.kind, d.nodes, d.cpu = aGang, 2, pick("1", "2", "3")
	case n < 5:
		d.kind, d.nodes, d.cpu, d.class = aTrainingJob, 1+random.IntN(2), pick("2", "3"), pick("p1000", "p10000")
	}
	for i := range 2 + random.IntN(5) {
		pod := drawnPod{
			name: fmt.Sprintf("pod-%d", i), cpu: pick("500m", "1", "1500m", "2", "3"), class: pick("p10", "p10", "p100", "p1000"),
			owned: random.IntN(3) == 0, guarded: random.IntN(3) == 0,
		}
		if d.kind == aQueuedTask && random.IntN(2) == 0 {
			pod.owned, pod.queued, pod.cpu = true, true, pick("1", "2", "3")
		}
		d.pods = append(d.pods, pod)
	}
	d.budget = random.IntN(4) == 0
	return d
}

func (d drawn) String() string {
	var pods []string
	for _, p := range d.pods {
		pods = append(pods, fmt.Sprintf("%s %s of %s%s", p.name, p.cpu, p.class, map[bool]string{true: ", owned"}[p.owned]+map[bool]string{true: ", queued"}[p.queued]+map[bool]string{true: ", guarded"}[p.guarded]))
	}
	return fmt.Sprintf("seed %d: %s of %d × %s of %s (quota %d, budget %t) after\n  %s", d.seed, d.kind, d.nodes, d.cpu, d.class, d.quota, d.budget, strings.Join(pods, "\n  "))
}

// config is the planned job in HCL.
func (d drawn) config(ns, lane string) string {
	place := fmt.Sprintf("node_selector = { lane = %q }\n  tolerations = [{ key = \"lane\", operator = \"Exists\" }]", lane)
	if d.kind == aTrainingJob {
		pod := func(cpu string) string {
			return fmt.Sprintf("priority_class_name = %q\n  %s\n  resources = { requests = { cpu = %q, memory = \"16Mi\" }, limits = { memory = \"256Mi\" } }", d.class, place, cpu)
		}
		return fmt.Sprintf(`
resource "elastic_training_job" "job" {
  name      = "job"
  namespace = %q
  image     = "elastic-trainer:test"
  model     = { content = file(%q) }
  data      = { training = "synthetic://digits?records=2000&seed=1", records_per_task = 100 }
  training  = { minibatch_size = 10, grads_to_wait = %d, epochs = 10000 }
  master    = { %s }
  workers   = { min = 1, max = %d
  %s }
}`, ns, modelFile(), d.nodes, pod("500m"), d.nodes, pod(d.cpu))
	}
	queue := ""
	if d.kind == aQueuedTask {
		queue = fmt.Sprintf("queue = { name = \"queue\", workload_priority_class = %q }", d.class)
	}
	return fmt.Sprintf(`
resource "elastic_task" "job" {
  name                = "job"
  namespace           = %q
  image               = "host"
  supervisor_image       = "elastic-trainer:test"
  run                 = "exec sleep 100000"
  num_nodes           = %d
  cpus                = %q
  priority_class_name = %q
  termination_grace_period_seconds = 3
  %s
  %s
}`, ns, d.nodes, d.cpu, d.class, place, queue)
}

// modelFile is the tutorial's.
func modelFile() string {
	path, err := filepath.Abs("../../examples/models/mnist_functional_api.py")
	if err != nil {
		panic(err) // there is always a working directory
	}
	return path
}
