package scenario

import (
	"context"
	"path"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// Scenario is an end-to-end scenario of the catalogue. It does not depend on its backend.
type Scenario struct {
	Name         string // names the output folder, and the scenario on the command line
	Title        string // of its timeline
	About        string // a few lines for a reader: the jobs, what will happen, and the duration where it is not measured
	Summary      string // one sentence: what a run shows whose assertions all hold
	Guide        string // the guide that explains it, relative to the repository's root
	Assertions   Assertions
	Requirements Requirements

	order   []chain // what must happen before what
	example string  // the configuration, relative to the examples
	run     func(context.Context, *runner) error
}

// Example is the folder of the configuration that the scenario applies, relative to the repository's root.
func (s Scenario) Example() string { return path.Join("examples", s.example) }

// Requirements are what a scenario needs of its cluster, besides the trainer's image and a node for ordinary pods.
type Requirements struct {
	// Records: the jobs train on the data of PrepareData, which every node has as a directory (Cluster.DataDir).
	Records bool
	// ThreeNodes: exactly three nodes accept pods. Each has 4 CPU and 15 GiB, of which 3.92 CPU are allocatable, as on
	// managed clusters: enough for one worker of 3 CPU and, except beside a second worker, a master of 1 CPU.
	ThreeNodes bool
	// Kueue: Kueue's v1beta2 API is served, with its integrations for Jobs and for pods.
	Kueue bool
	// GPUs: a node has four nvidia.com/gpu, 16 CPU and 60 GiB less the system's reservation, the label that GKE gives
	// nodes with T4s (cloud.google.com/gke-accelerator=nvidia-tesla-t4) and the taint nvidia.com/gpu=present:NoSchedule.
	GPUs bool
	// PyTorch: the trainer's image has PyTorch (torchtest.Python), and a directory of this machine is the same directory on
	// every node (Cluster.SharedDir).
	PyTorch bool
	// Faults: faults can be injected (Cluster.Faults).
	Faults bool
}

// standard is the Pod Security Standard under which a scenario's pods run. Only jobs that read or write a
// directory of their node need more than baseline.
func (r Requirements) standard() string {
	if r.Records || r.PyTorch {
		return privileged
	}
	return baseline
}

// Speed selects how long the scenarios' jobs run.
type Speed int

// ForTests keeps jobs short, because a test checks only the order of events; ForDemo leaves a person time to watch.
const (
	ForTests Speed = iota
	ForDemo
)

// Scenarios is the catalogue, in the order in which a reader would like to meet them.
func Scenarios(speed Speed) []Scenario {
	lowLasts, highLasts, highTaskLasts := 25*time.Second, 8*time.Second, 8*time.Second
	if speed == ForDemo {
		lowLasts, highLasts, highTaskLasts = time.Minute, 15*time.Second, 20*time.Second
	}
	return []Scenario{
		{
			Name:  "elastic-scheduling",
			Title: "Elastic scheduling: a job shrinks and grows back",
			About: `low-prio-job trains with two workers, which leaves no room for a third on the cluster's three nodes.
Then high-prio-job needs one worker: Kubernetes preempts a worker of low-prio-job, which continues with the other.
When high-prio-job has finished, low-prio-job grows back. Each job also has a master, which assigns the work.
At the end the same training runs once more undisturbed, and its model must be identical, bit for bit.`,
			Summary: "A job that lost a worker to a more important one continued, grew back, and produced the same model " +
				"as an undisturbed run.",
			Guide:        "docs/guides/elastic-scheduling.md",
			Assertions:   ElasticSchedulingAssertions(),
			Requirements: Requirements{Records: true, ThreeNodes: true},
			example:      tutorialExample,
			order:        elasticSchedulingOrder(),
			run:          elasticScheduling{lowLasts: patience.Scaled(lowLasts), highLasts: patience.Scaled(highLasts)}.run,
		},
		{
			Name:  "queue-priorities",
			Title: "Queue priorities: two tasks, four GPUs",
			About: `Two tasks need the same four GPUs. Both are submitted to a Kueue queue, which admits what its quota allows.
Task low is submitted first and admitted. Task high has a higher priority: Kueue evicts low and admits high.
When high has finished, Kueue admits low again; nobody submits it a second time.
The GPUs are declared, not real, and the tasks only sleep. This takes about a minute.`,
			Summary:      "The important task did not wait for the other to finish, and the other was admitted again by itself.",
			Guide:        "docs/guides/queue-priorities.md",
			Assertions:   QueuePrioritiesAssertions(),
			Requirements: Requirements{Kueue: true, GPUs: true},
			example:      queueExample,
			order:        queuePrioritiesOrder(),
			run:          queuePriorities{highLasts: patience.Scaled(highTaskLasts)}.run,
		},
		{
			Name:  "under-a-queue",
			Title: "An elastic job in a Kueue queue",
			About: `Job elastic trains with a master and four workers, in a queue with a quota of five CPUs. Its master and its first
worker, the minimum, are admitted together; every further worker is admitted by itself, at a lower priority.
Job urgent needs two CPUs: elastic shrinks to two workers and grows back later. Job large needs four: Kueue evicts
elastic as a whole, and admits it again when large has finished. Its model must be that of an undisturbed run.
This takes about two minutes.`,
			Summary:      "Kueue shrank the job, evicted it and admitted it again, and its model is that of an undisturbed run.",
			Guide:        "docs/guides/elastic-jobs-under-kueue.md",
			Assertions:   UnderAQueueAssertions(),
			Requirements: Requirements{Records: true, ThreeNodes: true, Kueue: true},
			example:      underAQueueExample,
			order:        underAQueueOrder(),
			run:          runUnderAQueue,
		},
		{
			Name:  "elastic-pytorch",
			Title: "Two PyTorch jobs shrink for an urgent task",
			About: `Jobs loop and ddp train with three workers each, in a queue with a quota of 3.2 CPUs. loop keeps its own loop and its
own collectives; ddp is a script for torchrun that does not know this project. Task urgent needs two CPUs: terraform
plan names the four workers that it evicts, both jobs continue with their minimum of one worker, and grow back.
loop must have used every record once per epoch, and both must end with the weights of an undisturbed run.
This needs PyTorch for /usr/bin/python3 (Debian: python3-torch), and takes about three minutes.`,
			Summary:      "Both jobs gave their workers to the urgent task and got them back; no record was lost, and the forecast named the victims.",
			Guide:        "docs/guides/pytorch.md",
			Assertions:   ElasticPyTorchAssertions(),
			Requirements: Requirements{ThreeNodes: true, Kueue: true, PyTorch: true},
			example:      elasticPyTorchExample,
			order:        elasticPyTorchOrder(),
			run:          runElasticPyTorch,
		},
		{
			Name:  "chaos",
			Title: "Chaos: faults of every kind, the same model",
			About: `Job survivor trains with a master and three workers on three nodes while faults are injected: two workers are
deleted, a node fails, the master is deleted while that node is down, and finally the API server is killed.
Each time the job continues with the remaining pods, and grows back when it can.
Its model must be that of an undisturbed run. This takes about two minutes.`,
			Summary:      "The job lost workers, a node, its master and the API server, and its model is that of an undisturbed run.",
			Guide:        "docs/guides/what-survives-what.md",
			Assertions:   ChaosAssertions(),
			Requirements: Requirements{Records: true, ThreeNodes: true, Faults: true},
			example:      chaosExample,
			order:        chaosOrder(),
			run:          runChaos,
		},
	}
}
