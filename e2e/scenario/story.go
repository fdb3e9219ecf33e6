package scenario

import (
	"context"
	"time"
)

// Story is one of the catalogue: what it promises, what it needs, and how it is told. It does not know its backend.
type Story struct {
	Name     string // of folders and files, and by which it is asked for
	Title    string // of its timeline
	Promises Promises
	Needs    Needs

	order   []chain // what must happen before what
	example string  // the configuration, relative to the examples
	tell    func(context.Context, *telling) error
}

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
			Promises: ElasticSchedulingPromises(),
			Needs:    Needs{Records: true, Rooms: true},
			example:  tutorialExample,
			order:    elasticSchedulingOrder(),
			tell:     elasticScheduling{lowLasts: lowLasts, highLasts: highLasts}.tell,
		},
		{
			Name: "queue-priorities", Title: "Queue priorities: two tasks, four GPUs",
			Promises: QueuePrioritiesPromises(),
			Needs:    Needs{Kueue: true, GPUs: true},
			example:  queueExample,
			order:    queuePrioritiesOrder(),
			tell:     queuePriorities{highLasts: highTaskLasts}.tell,
		},
		{
			Name: "under-a-queue", Title: "An elastic job under a queue",
			Promises: UnderAQueuePromises(),
			Needs:    Needs{Records: true, Rooms: true, Kueue: true},
			example:  underAQueueExample,
			order:    underAQueueOrder(),
			tell:     tellUnderAQueue,
		},
		{
			Name: "chaos", Title: "Chaos: whatever is lost, the same model",
			Promises: ChaosPromises(),
			Needs:    Needs{Records: true, Rooms: true, Faults: true},
			example:  chaosExample,
			order:    chaosOrder(),
			tell:     tellChaos,
		},
	}
}
