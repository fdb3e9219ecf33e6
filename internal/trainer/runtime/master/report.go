package master

import (
	"context"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/page"
)

// reportTimeout bounds the writing of the report: the end of a job should not wait for it.
const reportTimeout = 5 * time.Second

// saveReport saves the page of the run, beside the model if there is one. A failure does no harm.
func (m *Master) saveReport(ctx context.Context) {
	m.cfg.History.OnFinish(m.result.Reason)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	name := ReportName{Job: m.cfg.Job.Identity.Job, Generation: m.cfg.Fence.Generation()}
	file, err := m.cfg.Store.SaveReport(ctx, name, page.Report(m.cfg.History.Snapshot(), time.Now()), m.cfg.Fence.Check)
	switch {
	case err != nil:
		m.log.Warn("the report of the run cannot be written", "error", err)
	case file != "":
		m.log.Info("wrote the report of the run", "file", file)
	}
	m.result.Report = file
}
