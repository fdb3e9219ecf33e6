// Package worker computes virtual workers for a master. A worker holds the whole state and applies every update
// itself; what it computes is decided by (step, virtual worker) alone, so it may be killed, replaced or computed
// twice without any effect on the result.
//
// It decides nothing about membership: it reports its state, computes what it is assigned, and sends the results.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/allreduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// Config configures a worker.
type Config struct {
	Master      string // host:port
	ID          int
	Credentials wire.Credentials
	Node        string // for messages
	Build       string
	Job         job.Options
	// Elastic is trainingjob.Job.Elastic: with ElasticCollectives and ElasticRestart the worker is a member of a group,
	// and the script exchanges gradients itself.
	Elastic string
	// StopGrace is how long a command of ElasticRestart may take to end after SIGTERM.
	StopGrace time.Duration
	// MasterTimeout is how long a worker without a master tries to find one. 120 s suit a master that is re-created
	// by its Job.
	MasterTimeout time.Duration
	// Pace makes every gradient last at least as long, so that N workers on a few processors behave as on N. 0 is
	// full speed.
	Pace time.Duration
	// PeerHost is the address under which other workers reach this one for all-reduce. "" is the address from which it
	// reaches the master.
	PeerHost string
	// At is called at each point of an all-reduce; tests end the process there. It may be nil.
	At  func(p allreduce.Point, step int64)
	Log *slog.Logger
}

// Errors with which a worker ends, unless the master dismisses it.
var (
	// ErrLeft reports that the worker was signalled to stop (SIGTERM) and has sent its results. Its process exits 143.
	ErrLeft = errors.New("stopped as requested, after sending its results")
	// ErrMasterGone reports that no master answered for Config.MasterTimeout. Its process exits 143 too.
	ErrMasterGone = errors.New("the master is gone")
)

// RefusedError is a master's refusal of this worker.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "the master rejected this worker: " + e.Reason }

// errDismissed ends a session whose master has no more work.
var errDismissed = errors.New("dismissed")

// Pauses between attempts to reach a master: doubled each time, with jitter, so that a thousand workers do not connect
// at once.
const (
	firstRetry   = 20 * time.Millisecond
	longestRetry = time.Second
)

// Run works for a master until it dismisses the worker (nil), refuses it, or ctx ends.
func Run(ctx context.Context, cfg Config) error {
	w := &worker{cfg: cfg, log: cfg.Log.With("worker", cfg.ID), planned: -1}
	defer w.close()
	defer w.closeMember()
	defer func() { w.ranks.close() }()
	alone, retry := time.Now(), firstRetry
	for {
		began := time.Now()
		met, err := w.session(ctx)
		if met {
			alone = time.Now()
		}
		if time.Since(began) > longestRetry {
			retry = firstRetry // the attempt did not fail at once
		}
		var refused *RefusedError
		var broken *brokenError
		switch {
		case errors.Is(err, errDismissed):
			return nil
		case errors.As(err, &refused), errors.As(err, &broken), errors.Is(err, ErrLeft):
			return err
		case ctx.Err() != nil:
			return ErrLeft
		case time.Since(alone) > cfg.MasterTimeout:
			return fmt.Errorf("%w: %s did not respond for %v: %w", ErrMasterGone, cfg.Master, cfg.MasterTimeout, err)
		}
		level := slog.LevelDebug
		if errors.Is(err, errSuperseded) {
			level = slog.LevelWarn
		}
		w.log.Log(ctx, level, "the stream to the master ended; trying again", "master", cfg.Master, "error", err)
		select {
		case <-time.After(retry/2 + rand.N(retry)):
		case <-ctx.Done():
			return ErrLeft
		}
		retry = min(2*retry, longestRetry)
	}
}

// brokenError is a fault of this worker or of its input: another attempt would fail in the same way.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }
