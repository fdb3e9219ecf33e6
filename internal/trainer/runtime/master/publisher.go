package master

import (
	"log/slog"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/disruption"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

const (
	// statusEvery is how often a status that changes is published.
	statusEvery = 2 * time.Second
	// statusAtLeast is how often a status is published while nothing changes: the time from the last one to the death of
	// a master is not observed.
	statusAtLeast = 30 * time.Second
)

// Publisher publishes the status and the notices of a job.
type Publisher struct {
	Newest trainingjob.Status // last recorded

	history  *history.Recorder
	reporter Reporter
	log      *slog.Logger
	changed  bool // since the last record in the history
	stale    bool // Newest has not been reported
	reported time.Time
}

// NewPublisher returns the publisher of a master with this configuration.
func NewPublisher(cfg Config) *Publisher {
	return &Publisher{history: cfg.History, reporter: cfg.Reporter, log: cfg.Log}
}

// Changed notes that the status may have changed.
func (p *Publisher) Changed() { p.changed = true }

// Publish publishes the status if it has changed: to the history at once, to the reporter at once if now is set, and
// otherwise at most every two seconds.
func (p *Publisher) Publish(now bool, status func() trainingjob.Status) {
	if p.changed || now || time.Since(p.reported) >= statusAtLeast {
		p.changed, p.stale = false, true
		p.Newest = p.history.OnStatus(status())
		for _, d := range p.history.TakeRecovered() {
			p.Notice(disruption.Notice(d))
		}
	}
	if now || (p.stale && time.Since(p.reported) >= statusEvery) {
		p.stale, p.reported = false, time.Now()
		p.reporter.Status(p.Newest)
	}
}

// Notice logs and publishes a message for users.
func (p *Publisher) Notice(n coordinator.Notice) {
	if n.Warning {
		p.log.Warn(n.Message, "event", n.Reason)
	} else {
		p.log.Info(n.Message, "event", n.Reason)
	}
	p.publishNotice(n)
}

// WorkerProblem publishes the problem of a worker, which has been logged.
func (p *Publisher) WorkerProblem(message string) {
	p.publishNotice(coordinator.Notice{Warning: true, Reason: "WorkerProblem", Message: message})
}

func (p *Publisher) publishNotice(n coordinator.Notice) {
	p.history.OnNotice(n)
	p.reporter.Notice(n)
}
