// Package supervise is the first process of a master's container: it runs the master as its child, and restarts it
// unless the master ended on purpose. A process restarts in milliseconds, a pod in
// seconds, and the workers are still connected with the newest state.
//
// It only decides when to restart. Which of several masters may work is decided by the Lease.
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

// Config configures a supervisor.
type Config struct {
	Args   []string // with which this program runs as the master
	Stdout io.Writer
	Stderr io.Writer
	// Final are the exit codes with which the master ends on purpose. The supervisor then exits with the same code.
	Final []int
	Log   *slog.Logger
}

// Pauses between restarts: none, 1 s, 2 s, … 10 s. A master that has run for a while restarts without a pause. After
// too many short runs the supervisor gives up, because another node may do better.
const (
	longestPause = 10 * time.Second
	ranWell      = time.Minute
	maxRestarts  = 10
)

// pause is how long to wait before restart number n, from 0, of a series of short runs.
func pause(restart int) time.Duration {
	return min(time.Duration(restart)*time.Second, longestPause)
}

// Run supervises until the master has ended with a final code, or too often with another, or ctx has ended (SIGTERM,
// which it passes on to the master, and waits for its end). It returns the master's last exit code.
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
			return code, fmt.Errorf("the master ended %d times, each within %v; it is not restarted in this container", maxRestarts+1, ranWell)
		}
		wait := pause(restart)
		c.Log.Warn("the master ended; restarting it", "exit_code", code, "in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return code, nil
		}
	}
}

// run runs the master once.
func run(ctx context.Context, c Config) (code int, err error) {
	cmd, err := again(c.Args)
	if err != nil {
		return 0, fmt.Errorf("find this program, to run the master: %w", err)
	}
	cmd.Stdout, cmd.Stderr = c.Stdout, c.Stderr
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the master: %w", err)
	}
	// The master may have got the signal already, as a member of the signalled process group: a second one does no
	// harm.
	cancel := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer cancel()
	_ = cmd.Wait() // ProcessState has the result
	return child.ExitCode(cmd.ProcessState), nil
}
