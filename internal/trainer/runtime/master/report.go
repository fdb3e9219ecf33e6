package master

import (
	"context"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/page"
)

// reportTimeout bounds the writing of the report: the end of a job should not wait for it.
const reportTimeout = 5 * time.Second

// SaveReport saves the page of a run that has ended, beside the model if there is one, and returns the page's path. A
// failure does no harm.
func SaveReport(ctx context.Context, cfg Config, reason string) string {
	cfg.History.OnFinish(reason)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	name := ReportName{Job: cfg.Job.Identity.Job, Generation: cfg.Fence.Generation()}
	file, err := cfg.Store.SaveReport(ctx, name, page.Report(cfg.History.Snapshot(), time.Now()), cfg.Fence.Check)
	switch {
	case err != nil:
		cfg.Log.Warn("the report of the run cannot be written", "error", err)
	case file != "":
		cfg.Log.Info("wrote the report of the run", "file", file)
	}
	return file
}
