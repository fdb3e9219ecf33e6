// Package supervise is the first process of a master's container: it runs the master as its child, and runs it again
// when it ends otherwise than the master ends on purpose. A process is restarted in milliseconds, where a pod takes
// Kubernetes seconds, and its workers are still there with the newest state.
//
// It decides when to restart, and nothing about the job: which master may work is decided by the Lease.
package supervise

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
)

// Config of a supervisor.
type Config struct {
	Args   []string // of this program, with which it is the master
	Stdout io.Writer
	Stderr io.Writer
	// Final are the exit codes that the master ends with on purpose. They are the supervisor's own then.
	Final []int
	Log   *slog.Logger
}

// Between two restarts: none, 1 s, 2 s, … 10 s. A master that has run for a while begins again without a pause. One
// that never does is given up: another node may do better.
const (
	longestPause = 10 * time.Second
	ranWell      = time.Minute
	maxRestarts  = 10
)

// pause is how long to wait before the restart with that number, from 0, after so many in a row.
func pause(restart int) time.Duration {
	return min(time.Duration(restart)*time.Second, longestPause)
}

// Run supervises until the master has ended with a final code, or too often with another, or ctx has ended (SIGTERM,
// which the master is told of and its end awaited). It returns the master's last exit code.
func Run(ctx context.Context, c Config) (code int, err error) {
	// The kernel ends the master with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for restart := 0; ; restart++ {
		began := time.Now()
		code, err := run(ctx, c)
		if err != nil || slices.Contains(c.Final, code) || ctx.Err() != nil {
			return code, err
		}
		if time.Since(began) >= ranWell {
			restart = 0
		}
		if restart == maxRestarts {
			return code, fmt.Errorf("the master has ended %d times, each within %v: it is not started again here", maxRestarts+1, ranWell)
		}
		wait := pause(restart)
		c.Log.Warn("the master has ended and is started again", "exit_code", code, "in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return code, nil
		}
	}
}

// run is one life of the master.
func run(ctx context.Context, c Config) (code int, err error) {
	cmd, err := again(c.Args)
	if err != nil {
		return 0, fmt.Errorf("find this program, to run the master: %w", err)
	}
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the master: %w", err)
	}
	// It may have been told already, as a member of the group that was: being told twice does no harm.
	told := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer told()
	_ = cmd.Wait() // how it ended is in its state
	return child.ExitCode(cmd.ProcessState), nil
}
