package embedded

import (
	"context"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/e2e/simcluster"
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
