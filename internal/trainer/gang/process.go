package gang

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// process is a command of a run, with all that it starts.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	code int           // set before done is closed
}

func start(command, env []string, stdout, stderr io.Writer) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // it is ended by its group, with patience
	cmd.Env, cmd.Stdout, cmd.Stderr = env, stdout, stderr
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the task's command: %w", err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.code = exitCode(cmd.Wait())
		close(p.done)
	}()
	return p, nil
}

// exitCode is a shell's: 128 and the signal for a process that a signal ended.
func exitCode(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		if err != nil {
			return 1
		}
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// ended says whether it has, and how.
func (p *process) ended() (code int, ended bool) {
	select {
	case <-p.done:
		return p.code, true
	default:
		return 0, false
	}
}

// stop asks the process and its children to end, and kills what is left when patience is at its end or the process
// has ended. It returns when it is gone.
func (p *process) stop(patience time.Duration) {
	if _, ended := p.ended(); !ended {
		signalGroup(p.cmd.Process, syscall.SIGTERM)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
		signalGroup(p.cmd.Process, syscall.SIGKILL)
	}
	<-p.done
}
