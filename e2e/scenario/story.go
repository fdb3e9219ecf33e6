package scenario

import (
	"context"
	"path"
	"time"
)

// Story is one of the catalogue: what it promises, what it needs, and how it is told. It does not know its backend.
type Story struct {
	Name     string // of folders and files, and by which it is asked for
	Title    string // of its timeline
	About    string // who is in it and what will happen, and how long that takes where it is not measured: a few lines
	Moral    string // what it has shown when all of its promises are kept
	Guide    string // the document that goes through it, from the repository's root
	Promises Promises
	Needs    Needs

	order   []chain // what must happen before what
	example string  // the configuration, relative to the examples
	tell    func(context.Context, *telling) error
}

// Example is the folder of the configuration that the story applies, from the repository's root.
func (s Story) Example() string { return path.Join("examples", s.example) }

// Needs are what a story asks of its cluster, besides the trainer's image and a node or more for ordinary pods.
type Needs struct {
	// Records: its jobs train on the records of PrepareData, which the nodes have as a directory (Cluster.DataDir).
	Records bool
	// Rooms: there are exactly three nodes for pods, each with room for one worker of 3 CPU and a master of 1 CPU at
	// most besides another worker's: 4 CPU and 15 GiB, of which pods get 3.92 CPU, as managed clusters leave them.
	Rooms bool
	// Kueue: Kueue's v1beta2 API is served, with its integrations for Jobs and for pods.
	Kueue bool
	// GPUs: a node has four nvidia.com/gpu and room for 16 CPU and 60 GiB less what a system takes, the label that GKE
	// gives nodes with T4s (cloud.google.com/gke-accelerator=nvidia-tesla-t4) and the taint nvidia.com/gpu=present:NoSchedule.
	GPUs bool
	// Faults: the cluster can be broken on purpose (Cluster.Faults).
	Faults bool
}

// Tempo is how long the jobs of the stories last.
type Tempo int

// Brief is for tests, where only the order matters; ToWatch is for people.
const (
	Brief Tempo = iota
	ToWatch
)

// Stories is the catalogue, in the order in which a reader would like to know them.
func Stories(tempo Tempo) []Story {
	lowLasts, highLasts, highTaskLasts := 40*time.Second, 10*time.Second, 8*time.Second
	if tempo == ToWatch {
		lowLasts, highLasts, highTaskLasts = time.Minute, 15*time.Second, 20*time.Second
	}
	return []Story{
		{
			Name: "elastic-scheduling", Title: "Elastic scheduling: two jobs, one room",
			About: `low-prio-job trains with two workers, which leave no room for a third on the cluster's three nodes.
high-prio-job comes and needs one: Kubernetes preempts a worker of low-prio-job, which goes on with the other one.
When high-prio-job is done, low-prio-job grows back. Each job has a master besides, which deals the work out.
At the end low-prio-job is trained once more without any of this, and its model must be the same, bit for bit.`,
			Moral:    "A job that lost a worker to a more important one went on, grew back, and ended with the model of an undisturbed run.",
			Guide:    "docs/guides/elastic-scheduling.md",
			Promises: ElasticSchedulingPromises(),
			Needs:    Needs{Records: true, Rooms: true},
			example:  tutorialExample,
			order:    elasticSchedulingOrder(),
			tell:     elasticScheduling{lowLasts: lowLasts, highLasts: highLasts}.tell,
		},
		{
			Name: "queue-priorities", Title: "Queue priorities: two tasks, four GPUs",
			About: `Two tasks want the same four GPUs. Both ask by way of a queue, which admits what its quota has room for.
low comes first and gets them. high comes later and is more important: the queue evicts low and admits high.
When high is done, the queue admits low again, and nobody has to submit it a second time.
The GPUs are declared, not real, and the tasks only wait. This takes about a minute.`,
			Moral:    "The important task did not wait for the other one to end, and the other one came back by itself.",
			Guide:    "docs/guides/queue-priorities.md",
			Promises: QueuePrioritiesPromises(),
			Needs:    Needs{Kueue: true, GPUs: true},
			example:  queueExample,
			order:    queuePrioritiesOrder(),
			tell:     queuePriorities{highLasts: highTaskLasts}.tell,
		},
		{
			Name: "under-a-queue", Title: "An elastic job under a queue",
			About: `Job elastic trains with a master and four workers, in a queue with quota for five CPUs. Its master and its first
worker, the floor, are admitted together; every further worker by itself, at a lower priority.
Job urgent needs two CPUs: elastic shrinks to two workers, and grows back afterwards. Job large needs four: elastic
is evicted as a whole, and comes again when large is done. Its model must be that of an undisturbed run.
This takes about two minutes.`,
			Moral:    "A queue shrank the job, evicted it and admitted it again, and its model is that of an undisturbed run.",
			Guide:    "docs/guides/elastic-jobs-under-kueue.md",
			Promises: UnderAQueuePromises(),
			Needs:    Needs{Records: true, Rooms: true, Kueue: true},
			example:  underAQueueExample,
			order:    underAQueueOrder(),
			tell:     tellUnderAQueue,
		},
		{
			Name: "chaos", Title: "Chaos: whatever is lost, the same model",
			About: `Job survivor trains with a master and three workers on three nodes, and things are broken under it on purpose:
two workers are deleted, a node dies, the master is deleted while the node is gone, and at last the API server
is killed. Each time the job goes on with what is left, and takes back what returns.
Its model must be that of an undisturbed run. This takes about two minutes.`,
			Moral:    "The job lost workers, a node, its master and the API server, and its model is that of an undisturbed run.",
			Guide:    "docs/guides/what-survives-what.md",
			Promises: ChaosPromises(),
			Needs:    Needs{Records: true, Rooms: true, Faults: true},
			example:  chaosExample,
			order:    chaosOrder(),
			tell:     tellChaos,
		},
	}
}
