// Package rank supervises one rank of a multi-node task. It runs the rank's command when all ranks are
// present, stops it when one of them fails or is gone, and restarts it with the others. A command that can rejoin
// continues. internal/api/task/gang decides what to do; this package does it.
package rank

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/gang"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/kube"
)

// ExitStopped is the exit code of a supervisor that was signalled to stop: its Job does not count it as a failure.
const ExitStopped = 143

// retryPause is the time between an error of the API server and the next attempt.
const retryPause = time.Second

// Config configures a supervisor.
type Config struct {
	Gang    *kube.Gang
	Pod     types.UID // this rank's
	Address string    // this rank's, for the others
	Rank    int       // from 0
	Nodes   int
	Command []string
	// Rejoin is true if the command of one rank may start anew while those of the others continue.
	Rejoin bool
	Env    []string
	Stdout io.Writer
	Stderr io.Writer
	// Patience is the grace period between asking a command to stop and killing it.
	Patience time.Duration
	Log      *slog.Logger
}

// Run supervises until all ranks have succeeded (0), this rank's command has failed (its exit code), or ctx ends
// (ExitStopped). An error is one of starting the command. While the API server cannot be reached the command continues.
func Run(ctx context.Context, c Config) (code int, err error) {
	// The kernel ends the command with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := &supervisor{Config: c}
	defer s.stop()
	for {
		if ctx.Err() != nil {
			c.Log.Info("asked to stop")
			return ExitStopped, nil
		}
		exit, wait, err := s.step(ctx)
		if exit != nil || err != nil {
			return value(exit), err
		}
		if wait {
			s.wait(ctx)
		}
	}
}

func value(code *int) int {
	if code == nil {
		return 1
	}
	return *code
}

type supervisor struct {
	Config
	process     *child.Process // of the newest run; nil before the first
	run         int            // the run of process
	running     bool           // according to the newest view
	retry       <-chan time.Time
	lastWaiting string // the last logged message, which is not repeated
}

// step does the next action. wait reports that there is none until something changes.
func (s *supervisor) step(ctx context.Context) (exit *int, wait bool, err error) {
	s.retry = nil
	view, version, err := s.view()
	if err != nil {
		s.later(err)
		return nil, true, nil
	}
	a := gang.Decide(view)
	if a.Write != nil && a.Write.Failure != nil && a.Write.Failure.Code == 0 {
		// The watch of the pods may be behind that of the board, and miss a pod that has just been created.
		if view.Living, err = s.Gang.ListLiving(ctx); err != nil {
			s.later(err)
			return nil, true, nil
		}
		view.Living[s.Pod] = true
		if a = gang.Decide(view); a.Write == nil || a.Write.Failure == nil {
			s.retry = time.After(retryPause) // by then the watch may have caught up
		}
	}
	switch {
	case a.Exit != nil:
		s.Log.Info("the rank ends", "run", s.run, "code", *a.Exit)
		return a.Exit, false, nil
	case a.Stop:
		s.Log.Info("the run is over", "run", s.run, "why", why(view.Board.Run))
		s.stop()
	case a.Start != 0:
		s.Log.Info("the run begins", "run", a.Start, "addresses", view.Board.Run.Addresses())
		env := append(slices.Clone(s.Env), "SKYPILOT_NODE_IPS="+strings.Join(view.Board.Run.Addresses(), "\n"))
		if s.process, err = child.Start(s.Command, env, s.Stdout, s.Stderr); err != nil {
			return nil, false, err
		}
		s.run = a.Start
	case a.Say != nil:
		if _, err := s.Gang.Write(ctx, gang.RankKey(s.Rank), a.Say, ""); err != nil {
			s.later(err)
			return nil, true, nil
		}
	case a.Write != nil:
		if written, err := s.Gang.Write(ctx, gang.RunKey, a.Write, version); err != nil {
			s.later(err)
			return nil, true, nil
		} else if written && a.Write.Failure != nil {
			s.Log.Info("the run has failed", "run", a.Write.Number, "why", why(*a.Write))
		} else if written && a.Write.Number == view.Board.Run.Number {
			s.Log.Info("the rank rejoins the run", "run", a.Write.Number)
		}
	default:
		if waiting := view.Board.Waiting(s.Nodes); waiting != "" && !view.Command.Running && waiting != s.lastWaiting {
			s.Log.Info(waiting)
			s.lastWaiting = waiting
		}
		return nil, true, nil
	}
	return nil, false, nil
}

// later schedules another attempt. The command continues meanwhile.
func (s *supervisor) later(err error) {
	s.Log.Warn("cannot agree with the other ranks; trying again", "error", err)
	s.retry = time.After(retryPause)
}

func (s *supervisor) view() (v gang.View, version string, err error) {
	data, version, err := s.Gang.Board()
	if err != nil {
		return gang.View{}, "", err
	}
	v = gang.View{Rank: s.Rank, Nodes: s.Nodes, Pod: s.Pod, Address: s.Address, Living: s.Gang.Living(), Rejoin: s.Rejoin}
	if v.Board, err = gang.Decode(data, s.Nodes); err != nil {
		return gang.View{}, "", fmt.Errorf("the ConfigMap by which the ranks agree: %w", err)
	}
	// The watch of the pods may be behind the board, which this rank's own pod has written.
	v.Living[s.Pod] = true
	if s.process != nil {
		code, ended := s.process.Ended()
		v.Command = gang.Command{Run: s.run, Running: !ended, Code: code}
	}
	s.running = v.Command.Running
	return v, version, nil
}

// wait returns when something may have changed since the newest view, or the command has ended since.
func (s *supervisor) wait(ctx context.Context) {
	var ended <-chan struct{}
	if s.running {
		ended = s.process.Done()
	}
	select {
	case <-ctx.Done():
	case <-s.Gang.Changed():
	case <-ended:
	case <-s.retry:
	}
}

func (s *supervisor) stop() {
	if s.process != nil {
		s.process.Stop(s.Patience)
	}
}

func why(r gang.Run) string {
	if r.Failure == nil {
		return "another has begun"
	}
	return fmt.Sprintf("rank %d: %s", r.Failure.Rank, r.Failure.Reason)
}
