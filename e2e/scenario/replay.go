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

// Replay is a scenario file on a real scheduler: what `elastic-sim` runs in virtual time, with real pods, masters and queues.
//
// The file says when jobs are submitted and resized, what they ask for, and how long they compute; this is as it says,
// SpeedUp times as fast. How long a pod takes to start, to join and to stop is the cluster's affair, and what the file says
// about that is not used, except for how long a gang goes on once it was asked to end. So that a slow machine tells the same
// story, the file's clock stands still while something that was submitted is being taken up: every pod of it that has room
// runs, and of the others is known that they wait.
type Replay struct {
	File    *scenariofile.Scenario
	SpeedUp int    // at least 1
	Root    string // the repository
	Out     string // an empty directory, for events.jsonl
	Observe func(eventlog.Event)
}

// Run replays the file in a cluster that has its nodes and nothing in it, and leaves there what it made. It returns the
// events so far when it fails, too. A file with something in it that a cluster cannot be given is refused with a
// *NotReplayableError, before anything is made.
func (r Replay) Run(ctx context.Context, cluster Cluster) (events []eventlog.Event, err error) {
	if err := Replayable(r.File); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(r.Out, "events.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("the event log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p := &replaying{Replay: r, cluster: cluster, log: NewLog(file, r.Observe), sizes: map[string]int{}}
	err = p.run(ctx)
	return p.log.Events(), errors.Join(err, p.log.Err())
}

// replaying is a replay while it runs.
type replaying struct {
	Replay
	cluster Cluster
	clients clients
	log     *Log
	model   string         // the text of the model that elastic jobs train
	sizes   map[string]int // workers that each submitted elastic job wants, 1 for a gang
	began   time.Time      // when the file's time was 0, later by all the time for which the clock stood still
}

// deed is something that the file has done at a time.
type deed struct {
	at   scenariofile.Duration
	what string
	do   func(context.Context) error
}

func (p *replaying) run(ctx context.Context) (err error) {
	model, err := os.ReadFile(filepath.Join(p.Root, "examples", tutorialModel))
	if err != nil {
		return fmt.Errorf("the model of elastic jobs: %w", err)
	}
	p.model = string(model)
	if p.clients, err = connect(p.cluster.Kubeconfig); err != nil {
		return err
	}
	if err := recordNodes(ctx, p.clients.kubernetes, p.log); err != nil {
		return err
	}
	stop, err := p.clients.record(ctx, p.cluster.Namespace, p.log)
	if err != nil {
		return err
	}
	defer stop()
	if err := p.furnish(ctx); err != nil {
		return err
	}
	p.began = time.Now()
	for _, d := range p.deeds() {
		if err := p.reach(ctx, d.at, d.what); err != nil {
			return err
		}
		if err := d.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", d.what, err)
		}
	}
	if p.File.Until > 0 {
		return p.reach(ctx, p.File.Until, "end the replay")
	}
	for _, job := range p.File.Jobs {
		if err := p.log.Wait(ctx, job.Name+" has ended", finishLimit, jobEnded(job)); err != nil {
			return err
		}
	}
	return nil
}

// deeds are what the file has done, in the order of time.
func (p *replaying) deeds() []deed {
	var all []deed
	for _, stage := range p.File.Stages {
		all = append(all, deed{stage.At, "stage " + stage.Name, func(context.Context) error {
			p.log.Add(eventlog.Event{Stage: &eventlog.Stage{Name: stage.Name, Text: stage.Text}})
			return nil
		}})
	}
	for _, job := range p.File.Jobs {
		if job.Gang != nil {
			all = append(all, deed{job.Submit, "submit " + job.Name, func(ctx context.Context) error { return p.submitGang(ctx, job) }})
			continue
		}
		all = append(all, deed{job.Submit, "submit " + job.Name, func(ctx context.Context) error { return p.submitElastic(ctx, job) }})
		for _, size := range job.Elastic.Resize {
			what := fmt.Sprintf("resize %s to %s", job.Name, wording.Number(size.Max, "worker"))
			all = append(all, deed{size.At, what, func(ctx context.Context) error { return p.resize(ctx, job, size) }})
		}
	}
	slices.SortStableFunc(all, func(a, b deed) int { return cmp.Compare(a.at, b.at) })
	return all
}

// reach waits for a time of the file, and then for everything that was submitted to be taken up, during which the file's
// clock stands still.
func (p *replaying) reach(ctx context.Context, at scenariofile.Duration, what string) error {
	select {
	case <-time.After(time.Until(p.began.Add(p.real(at)))):
	case <-ctx.Done():
		return fmt.Errorf("waiting for the time %s to %s: %w", at, what, context.Cause(ctx))
	}
	stopped := time.Now()
	for _, job := range p.File.Jobs {
		if workers, submitted := p.sizes[job.Name]; submitted {
			if err := p.log.Wait(ctx, job.Name+" is taken up, to "+what, startLimit, takenUp(job, workers)); err != nil {
				return err
			}
		}
	}
	p.began = p.began.Add(time.Since(stopped))
	return nil
}

// real is how long a time of the file is here.
func (p *replaying) real(d scenariofile.Duration) time.Duration {
	return d.Std() / time.Duration(p.SpeedUp)
}

// takenUp waits until every pod that a job should have is there, and runs or is known to wait, unless the job has ended.
func takenUp(job scenariofile.Job, workers int) func(*eventlog.History) (bool, error) {
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
		for _, life := range h.Pods {
			switch {
			case life.Job != job.Name || !life.Ended.IsZero():
			case !life.Deleting.IsZero(), !life.Bound.IsZero() && life.Running.IsZero():
				return false, nil
			case life.Bound.IsZero() && life.Unschedulable.IsZero() && !queued: // a queue's may be gated
				return false, nil
			default:
				wanted--
			}
		}
		return wanted == 0, nil
	}
}

// jobEnded waits until a job has done all its work, and its pods and its workload say so too.
func jobEnded(job scenariofile.Job) func(*eventlog.History) (bool, error) {
	return func(h *eventlog.History) (bool, error) {
		done := slices.ContainsFunc(h.PodsOf(job.Name, taskRole), func(life *eventlog.Life) bool { return life.Phase == "Succeeded" })
		if job.Elastic != nil {
			var err error
			if done, err = succeeded(job.Name)(h); err != nil {
				return false, err
			}
		}
		rests, err := nothingRuns(job.Name)(h)
		if err != nil || !done || !rests {
			return false, err
		}
		return workloadFinished(job.Name)(h)
	}
}
