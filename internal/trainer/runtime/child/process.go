package child

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// Process is a command that runs as a child of this one, with its own children.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// outputDelay is how long children of a command that has ended may hold its output open.
const outputDelay = 2 * time.Second

// Start runs a command with an environment. The error names the command.
func Start(command, env []string, stdout, stderr io.Writer) (*Process, error) {
	p := &Process{cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{})} //nolint:noctx // Stop signals its group, with a grace period
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = env, stdout, stderr
	p.cmd.SysProcAttr = Attributes()
	p.cmd.WaitDelay = outputDelay
	started := make(chan error)
	go func() {
		LockThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // ProcessState has the result
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %q: %w", command[0], err)
	}
	return p, nil
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether the process has ended, and its exit code.
func (p *Process) Ended() (code int, ended bool) {
	select {
	case <-p.done:
		return ExitCode(p.cmd.ProcessState), true
	default:
		return 0, false
	}
}

// Stop asks the process and its children to end, and kills what is left when the grace period is over or the process
// has ended. It returns when the process has ended.
func (p *Process) Stop(grace time.Duration) {
	if _, ended := p.Ended(); !ended {
		Signal(p.cmd.Process, syscall.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
		Signal(p.cmd.Process, syscall.SIGKILL)
	}
	<-p.done
}
