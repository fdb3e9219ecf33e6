package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// The directory that the nodes share with this machine, in pods.
const (
	directoryVolume = "replay"
	directoryMount  = "/replay"
)

// finishedFile is the file in the directory whose existence ends the pods of a gang.
func finishedFile(job string) string { return job + ".finished" }

// needsDirectory reports whether a gang of a file has progress that outlives its pods, or that begins when all of them run.
// All gangs of such a file follow its clock.
func needsDirectory(file *scenariofile.Scenario) bool {
	return slices.ContainsFunc(file.Jobs, func(job scenariofile.Job) bool {
		g := job.Gang
		return g != nil && (g.CheckpointEvery > 0 || g.Restart > 0 || g.Pods > 1 && g.Queue == "")
	})
}

// fileClock is the time of a file. It is safe for concurrent use.
type fileClock struct {
	mu      sync.Mutex
	speedUp int
	start   time.Time // of the file's second 0, moved forward by every pause
	stopped time.Time // zero while the clock runs
}

func (c *fileClock) begin(speedUp int) { c.speedUp, c.start = speedUp, time.Now() }

func (c *fileClock) now() scenariofile.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := time.Since(c.start)
	if !c.stopped.IsZero() {
		passed = c.stopped.Sub(c.start)
	}
	return scenariofile.Duration(passed.Milliseconds() * int64(c.speedUp))
}

func (c *fileClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = time.Now()
}

func (c *fileClock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = c.start.Add(time.Since(c.stopped))
	c.stopped = time.Time{}
}

// gangProgress is the work of a gang that computes while all its pods run, by the rules of the simulator.
type gangProgress struct {
	spec     *scenariofile.Gang
	computes bool
	at       scenariofile.Duration // when it was looked at last
	restart  scenariofile.Duration // left of the time to resume after an interruption
	done     scenariofile.Duration
}

// advance counts the work until now, and reports whether all is done. all is whether all pods run.
func (g *gangProgress) advance(now scenariofile.Duration, all bool) (finished bool) {
	if g.computes {
		passed := now - g.at
		resumes := min(g.restart, passed)
		g.restart -= resumes
		g.done += passed - resumes
	}
	if finished = g.done >= g.spec.Runs; g.computes && !all && !finished {
		kept := scenariofile.Duration(0)
		if every := g.spec.CheckpointEvery; every > 0 {
			kept = g.done - g.done%every
		}
		g.done, g.restart = kept, g.spec.Restart
	}
	g.at, g.computes = now, all
	return finished
}

// gangInterval is the time between two looks at the gangs.
const gangInterval = 50 * time.Millisecond

// runGangs ends the pods of gangs whose work is done, until stop is called. If that fails, it ends the returned context.
func (p *replayRun) runGangs(ctx context.Context) (running context.Context, stop func(), err error) {
	if !needsDirectory(p.File) {
		return ctx, func() {}, nil
	}
	if err := os.MkdirAll(p.cluster.SharedDir, 0o755); err != nil {
		return ctx, nil, fmt.Errorf("make the directory that the nodes share: %w", err)
	}
	gangs := map[string]*gangProgress{}
	for _, job := range p.File.Jobs {
		if job.Gang != nil {
			gangs[job.Name] = &gangProgress{spec: job.Gang}
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		for len(gangs) > 0 {
			select {
			case <-time.After(gangInterval):
			case <-ctx.Done():
				return
			}
			h, now := eventlog.Replay(p.log.Events()), p.clock.now()
			for name, gang := range gangs {
				if !gang.advance(now, allRun(h, name, gang.spec.Pods)) {
					continue
				}
				delete(gangs, name)
				if err := os.WriteFile(filepath.Join(p.cluster.SharedDir, finishedFile(name)), nil, 0o644); err != nil {
					cancel(fmt.Errorf("end the pods of %s: %w", name, err))
					return
				}
			}
		}
	})
	return ctx, func() { cancel(errors.New("the replay has ended")); ended.Wait() }, nil
}

// allRun reports whether so many pods of a gang run, and none of them is being deleted.
func allRun(h *eventlog.History, job string, pods int) bool {
	running := 0
	for _, pod := range h.PodsOf(job, taskRole) {
		if pod.Phase == string(corev1.PodRunning) && pod.Deleting.IsZero() && pod.Disrupted.IsZero() && pod.Ended.IsZero() {
			running++
		}
	}
	return running == pods
}
