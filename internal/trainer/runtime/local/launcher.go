package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
)

// Launcher runs workers as child processes of this one. They die with it.
type Launcher struct {
	args   []string  // of a worker, without its number
	output io.Writer // where workers log
	events chan coordinator.Event

	mu        sync.Mutex
	processes map[int]*os.Process
	running   sync.WaitGroup
	closed    bool
}

// NewLauncher returns a launcher of this program with the given arguments.
func NewLauncher(args []string, output io.Writer) *Launcher {
	return &Launcher{args: args, output: output, events: make(chan coordinator.Event, 256), processes: map[int]*os.Process{}}
}

// Events implements master.Launcher.
func (l *Launcher) Events() <-chan coordinator.Event { return l.events }

// Create implements master.Launcher.
func (l *Launcher) Create(worker int, minimum bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	started := make(chan *os.Process, 1)
	l.running.Go(func() { l.run(worker, minimum, started) })
	if p := <-started; p != nil {
		l.processes[worker] = p
	}
}

// run starts one worker and reports its end. The thread that starts a process must live as long as that, or the
// kernel takes the thread's end for the parent's.
func (l *Launcher) run(worker int, minimum bool, started chan<- *os.Process) {
	child.LockThread()
	event := coordinator.PodChanged{Worker: worker, Minimum: minimum, State: coordinator.PodEnded}
	program, err := os.Executable()
	cmd := exec.Command(program, append(slices.Clone(l.args), "--id", strconv.Itoa(worker))...)
	cmd.Stdout, cmd.Stderr = l.output, l.output
	cmd.SysProcAttr = child.Attributes()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		started <- nil
		event.Reason = fmt.Sprintf("cannot be started: %v", err)
		l.events <- event
		return
	}
	started <- cmd.Process
	running := event
	running.State = coordinator.PodRunning
	l.events <- running
	err = cmd.Wait()
	l.mu.Lock()
	delete(l.processes, worker)
	l.mu.Unlock()
	event.Reason, event.Disrupted = ending(err)
	l.events <- event
}

// ending describes how a process ended, and whether the cause was external: SIGKILL and SIGTERM come from outside, and
// a worker that was signalled to stop exits 143.
func ending(err error) (reason string, disrupted bool) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err == nil {
			return "exit code 0", false
		}
		return err.Error(), false
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		signal := status.Signal()
		return "ended by " + signal.String(), signal == syscall.SIGKILL || signal == syscall.SIGTERM
	}
	return fmt.Sprintf("exit code %d", exit.ExitCode()), exit.ExitCode() == coordinator.ExitInterrupted
}

// Delete implements master.Launcher.
func (l *Launcher) Delete(worker int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.processes[worker]; p != nil {
		_ = p.Signal(syscall.SIGTERM) // it may have ended just now
	}
}

// Close ends the workers that still run and waits for them.
func (l *Launcher) Close() {
	l.mu.Lock()
	l.closed = true
	for _, p := range l.processes {
		_ = p.Signal(syscall.SIGTERM)
	}
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		l.running.Wait()
		close(done)
	}()
	grace := time.NewTimer(graceful)
	defer grace.Stop()
	for {
		select {
		case <-done:
			return
		case <-l.events: // nothing else reads them any more
		case <-grace.C:
			l.mu.Lock()
			for _, p := range l.processes {
				_ = p.Kill()
			}
			l.mu.Unlock()
		}
	}
}

// graceful is how long workers may take to end after SIGTERM: to finish a minibatch and send its gradient.
const graceful = 10 * time.Second
