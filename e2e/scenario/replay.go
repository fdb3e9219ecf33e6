package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// Replay runs a scenario file (package scenariofile) on a real cluster: what `elastic-sim` simulates in virtual time,
// with real pods, masters and queues.
// The file defines when jobs are submitted and resized, what they request and how long they compute; the replay does
// the same, SpeedUp times as fast. How long a pod takes to start, to join and to stop depends on the cluster; the
// replay ignores the file's values, except for a gang's termination time. The file's clock stops while submitted jobs
// settle, that is until each of their pods runs or is known to be pending, so that a slow machine produces the same
// order of events.
type Replay struct {
	File    *scenariofile.Scenario
	SpeedUp int    // at least 1
	Root    string // the repository
	Out     string // an empty directory, for events.jsonl
	Observe func(eventlog.Event)
}

// Run replays the file on an empty cluster that has the file's nodes. It does not delete the objects that it creates.
// It returns the events so far when it fails, too. It refuses a file that cannot be replayed with a
// *scenariofile.NotReplayableError before it creates anything. Random failures are those of the simulation with the
// file's seed.
func (r Replay) Run(ctx context.Context, cluster Cluster) (events []eventlog.Event, err error) {
	if err := r.File.Replayable(); err != nil {
		return nil, err
	}
	if r.File, err = withDrawnFailures(ctx, r.File); err != nil {
		return nil, err
	}
	if needsFaults(r.File) && (cluster.Faults == nil || cluster.Nodes == nil) {
		return nil, &UnsupportedError{Scenario: r.File.Name, Reason: "nodes of this cluster cannot be stopped, nor its API server"}
	}
	if needsDirectory(r.File) && cluster.SharedDir == "" {
		return nil, &UnsupportedError{Scenario: r.File.Name, Reason: "its nodes share no directory with this machine, for the progress of gangs"}
	}
	file, err := os.Create(filepath.Join(r.Out, "events.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("the event log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p := &replayRun{Replay: r, cluster: cluster, log: NewLog(file, r.Observe), sizes: map[string]int{}}
	err = p.run(ctx)
	return p.log.Events(), errors.Join(err, p.log.Err())
}

// replayRun is the state of a running replay.
type replayRun struct {
	Replay
	cluster Cluster
	clients clients
	log     *Log
	model   string         // the source of the model that elastic jobs train
	sizes   map[string]int // the maximum workers of each submitted elastic job, the pods of a gang
	clock   fileClock
}

// action is something that the file schedules.
type action struct {
	at   scenariofile.Duration
	what string
	do   func(context.Context) error
}

func (p *replayRun) run(ctx context.Context) (err error) {
	model, err := os.ReadFile(filepath.Join(p.Root, "examples", tutorialModel))
	if err != nil {
		return fmt.Errorf("read the model of elastic jobs: %w", err)
	}
	p.model = string(model)
	if p.clients, err = connect(p.cluster.Kubeconfig); err != nil {
		return err
	}
	standard := baseline
	if needsDirectory(p.File) {
		standard = privileged // for a directory of the node
	}
	restore, err := enforceStandard(ctx, p.clients.kubernetes, p.cluster.Namespace, standard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, withCleanupTimeout(ctx, restore)) }()
	if err := recordNodes(ctx, p.clients.kubernetes, p.log, p.File.LevelsOf); err != nil {
		return err
	}
	stop, err := p.clients.record(ctx, p.cluster.Namespace, p.log)
	if err != nil {
		return err
	}
	defer stop()
	if err := p.createQueues(ctx); err != nil {
		return err
	}
	p.clock.begin(p.SpeedUp)
	ctx, stopGangs, err := p.runGangs(ctx)
	if err != nil {
		return err
	}
	defer stopGangs()
	for _, d := range p.actions() {
		if err := p.waitUntil(ctx, d.at, d.what); err != nil {
			return err
		}
		if err := d.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", d.what, err)
		}
	}
	if p.File.Until > 0 {
		return p.waitUntil(ctx, p.File.Until, "end the replay")
	}
	for _, job := range p.File.Jobs {
		if err := p.log.Wait(ctx, job.Name+" has ended", finishLimit, jobEnded(job)); err != nil {
			return err
		}
	}
	return nil
}

// actions are the file's actions in the order of their times.
func (p *replayRun) actions() []action {
	var all []action
	for _, stage := range p.File.Stages {
		all = append(all, action{stage.At, "stage " + stage.Name, func(context.Context) error {
			p.log.Add(eventlog.Event{Stage: &eventlog.Stage{Name: stage.Name, Text: stage.Text}})
			return nil
		}})
	}
	for _, fault := range p.File.Faults {
		switch {
		case fault.APIServer:
			all = append(all, action{fault.At, "kill the API server", p.killAPIServer})
			continue
		case fault.Job != "":
			all = append(all, action{fault.At, "lose a pod of " + fault.Job, func(ctx context.Context) error { return p.losePod(ctx, fault) }})
			continue
		}
		all = append(all, action{fault.At, "lose node " + fault.Node, func(ctx context.Context) error { return p.loseNode(ctx, fault.Node) }})
		if fault.Returns > 0 {
			all = append(all, action{fault.At + fault.Returns, "start node " + fault.Node, func(ctx context.Context) error { return p.startNode(ctx, fault.Node) }})
		}
	}
	for _, job := range p.File.Jobs {
		if job.Gang != nil {
			all = append(all, action{job.Submit, "submit " + job.Name, func(ctx context.Context) error { return p.submitGang(ctx, job) }})
			continue
		}
		all = append(all, action{job.Submit, "submit " + job.Name, func(ctx context.Context) error { return p.submitElastic(ctx, job) }})
		for _, size := range job.Elastic.Resize {
			what := fmt.Sprintf("resize %s to %s", job.Name, wording.Number(size.Max, "worker"))
			all = append(all, action{size.At, what, func(ctx context.Context) error { return p.resize(ctx, job, size) }})
		}
	}
	slices.SortStableFunc(all, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	return all
}

// waitUntil waits for a time of the file, and then until all submitted jobs are settled, during which the file's clock
// stops.
func (p *replayRun) waitUntil(ctx context.Context, at scenariofile.Duration, what string) error {
	select {
	case <-time.After(p.real(at - p.clock.now())):
	case <-ctx.Done():
		return fmt.Errorf("waiting for the time %s to %s: %w", at, what, context.Cause(ctx))
	}
	p.clock.stop()
	defer p.clock.resume()
	for _, job := range p.File.Jobs {
		if workers, submitted := p.sizes[job.Name]; submitted {
			if err := p.log.Wait(ctx, job.Name+" is settled, before: "+what, startLimit, isSettled(job, workers)); err != nil {
				return err
			}
		}
	}
	return nil
}

// real converts a duration of the file to real time.
func (p *replayRun) real(d scenariofile.Duration) time.Duration {
	return d.Std() / time.Duration(p.SpeedUp)
}

// isSettled waits until every pod that a job should have exists and runs or is known to be pending, or the job has
// ended.
func isSettled(job scenariofile.Job, workers int) func(*eventlog.History) (bool, error) {
	ended := jobEnded(job)
	return func(h *eventlog.History) (bool, error) {
		if done, err := ended(h); done || err != nil {
			return done, err
		}
		queued := job.Gang != nil && job.Gang.Queue != "" || job.Elastic != nil && job.Elastic.Queue != nil
		if queued && ownWorkload(h, job.Name).Waits != "" {
			return true, nil
		}
		wanted := workers
		if job.Elastic != nil {
			wanted++ // the master
		}
		for _, pod := range h.Pods {
			switch {
			case pod.Job != job.Name || !pod.Ended.IsZero():
			case !pod.Deleting.IsZero(), !pod.Bound.IsZero() && pod.Running.IsZero():
				return false, nil
			case pod.Bound.IsZero() && pod.Unschedulable.IsZero() && !queued: // a queued job's pods may have a scheduling gate
				return false, nil
			default:
				wanted--
			}
		}
		return wanted == 0, nil
	}
}

// jobEnded waits until a job has finished, and its pods and its workload have finished too.
func jobEnded(job scenariofile.Job) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		done := false
		if job.Gang != nil {
			succeeded := 0
			for _, pod := range h.PodsOf(job.Name, taskRole) {
				if pod.Phase == "Succeeded" {
					succeeded++
				}
			}
			done = succeeded >= job.Gang.Pods
		}
		if job.Elastic != nil {
			var err error
			if done, err = succeeded(job.Name)(h); err != nil {
				return false, err
			}
		}
		idle, err := nothingRuns(job.Name)(h)
		if err != nil || !done || !idle {
			return false, err
		}
		return workloadFinished(job.Name)(h)
	}
}
