package rank

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
)

// process is a command of a run, with its child processes.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	code int           // set before done is closed
}

func start(command, env []string, stdout, stderr io.Writer) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // stop signals its group, with a grace period
	cmd.Env, cmd.Stdout, cmd.Stderr = env, stdout, stderr
	cmd.SysProcAttr = child.Attributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the task's command: %w", err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ProcessState has the result
		p.code = child.ExitCode(cmd.ProcessState)
		close(p.done)
	}()
	return p, nil
}

// ended reports whether the process has ended, and its exit code.
func (p *process) ended() (code int, ended bool) {
	select {
	case <-p.done:
		return p.code, true
	default:
		return 0, false
	}
}

// stop asks the process and its children to end, and kills what is left when the grace period is over or the process
// has ended. It returns when the process has ended.
func (p *process) stop(patience time.Duration) {
	if _, ended := p.ended(); !ended {
		child.Signal(p.cmd.Process, syscall.SIGTERM)
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
		}
		child.Signal(p.cmd.Process, syscall.SIGKILL)
	}
	<-p.done
}
