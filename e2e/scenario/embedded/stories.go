package embedded

import (
	"context"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/e2e/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventlog"
)

// Story is one that can be told on the embedded cluster.
type Story struct {
	Name     string // of its folder below e2e/out
	Title    string // of its timeline
	Promises scenario.Promises

	trains  bool // its jobs need the records of PrepareData
	cluster struct {
		text    string // what it is, for a reader
		options simcluster.Options
	}
	run func(context.Context, scenario.Setting) ([]eventlog.Event, error)
}

// ElasticScheduling is the story of ElasticDL's tutorial, in which the low job trains for about lowLasts and the high one
// for highLasts at most.
func ElasticScheduling(lowLasts, highLasts time.Duration) Story {
	story := Story{
		Name: "elastic-scheduling", Title: "Elastic scheduling: two jobs, one room",
		Promises: scenario.ElasticSchedulingPromises(),
		trains:   true,
		run: func(ctx context.Context, setting scenario.Setting) ([]eventlog.Event, error) {
			told := scenario.ElasticScheduling{Setting: setting, LowLasts: lowLasts, HighLasts: highLasts}
			return told.Run(ctx)
		},
	}
	story.cluster.text = "three nodes of 4 CPU and 15 GB"
	return story
}

// QueuePriorities is the story of Trainy's tutorial, in which the high task takes highLasts.
func QueuePriorities(highLasts time.Duration) Story {
	story := Story{
		Name: "queue-priorities", Title: "Queue priorities: two tasks, four GPUs",
		Promises: scenario.QueuePrioritiesPromises(),
		run: func(ctx context.Context, setting scenario.Setting) ([]eventlog.Event, error) {
			told := scenario.QueuePriorities{Setting: setting, HighLasts: highLasts}
			return told.Run(ctx)
		},
	}
	story.cluster.text = "one node with four declared T4s and one without, our engine in Kueue's place"
	story.cluster.options = simcluster.Options{
		Nodes: []controlplane.NodeGroup{
			{Name: "cpu", Count: 1, CPU: "4", Memory: "15Gi", AllocatableCPU: "3.92"},
			{
				Name: "gpu", Count: 1, CPU: "16", Memory: "60Gi", AllocatableCPU: "15.89",
				Resources: map[string]string{"nvidia.com/gpu": "4"},
				// What GKE puts on its nodes with T4s.
				Labels: map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
				Taints: []string{"nvidia.com/gpu=present:NoSchedule"},
			},
		},
		// The tasks' commands run as processes of this machine.
		Images:   map[string]string{controlplane.AnyImage: controlplane.HostImage},
		Queueing: true,
	}
	return story
}

// How the elastic job under a queue takes its time: long enough to shrink and to grow back before it is evicted.
const (
	underAQueueEpochs = 3
	underAQueuePace   = "50ms"
)

// UnderAQueue is the story of an elastic job under a queue, which shrinks instead of being evicted, and comes again when
// it was evicted after all.
func UnderAQueue() Story {
	story := Story{
		Name: "under-a-queue", Title: "An elastic job under a queue",
		Promises: scenario.UnderAQueuePromises(),
		trains:   true,
		run: func(ctx context.Context, setting scenario.Setting) ([]eventlog.Event, error) {
			told := scenario.UnderAQueue{Setting: setting, Epochs: underAQueueEpochs, Pace: underAQueuePace}
			return told.Run(ctx)
		},
	}
	story.cluster.text = "three nodes of 4 CPU and 15 GB, and a queue controller in Kueue's place"
	story.cluster.options.Queueing = true
	return story
}
