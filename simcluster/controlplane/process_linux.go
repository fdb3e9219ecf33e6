package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const (
	// A component that dies is started again after restartPauseMin, twice that, and so on up to restartPauseMax; one
	// that had lived for restartForgiven starts over at the minimum.
	restartPauseMin = 100 * time.Millisecond
	restartPauseMax = 5 * time.Second
	restartForgiven = 10 * time.Second
)

// A process keeps one component running.
type process struct {
	name       string
	executable string
	arguments  []string
	// environment is added to the supervisor's own.
	environment []string
	log         string
	// stopGrace is the time from SIGTERM to SIGKILL.
	stopGrace time.Duration
	// started and died are called at every start and at every unexpected end, one at a time.
	started func(name string, pid int)
	died    func(name string, lifetime time.Duration, end error)
}

// run starts the component, and starts it again whenever it ends, until ctx ends; it then stops it, by SIGTERM and, if
// need be, SIGKILL, and returns when it is gone. An error means that it could not be executed at all.
func (p *process) run(ctx context.Context) error {
	// The kernel sends the parent-death signal when the *thread* that made the child ends (prctl(2)), so this goroutine
	// keeps its thread for as long as the child may live.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pause := restartPauseMin
	for ctx.Err() == nil {
		begin := time.Now()
		end, err := p.once(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		lifetime := time.Since(begin)
		p.died(p.name, lifetime, end)
		if lifetime >= restartForgiven {
			pause = restartPauseMin
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, restartPauseMax)
	}
	return nil
}

// once runs the component until it ends or ctx does. end says how it ended.
func (p *process) once(ctx context.Context) (end, err error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	defer log.Close() //nolint:errcheck // The child has its own descriptor; nothing was written through this one.
	command := exec.Command(p.executable, p.arguments...)
	command.Env = append(os.Environ(), p.environment...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{
		// A group of its own, so that a terminal's ^C reaches the supervisor alone, which stops everything in order.
		Setpgid: true,
		// Nothing outlives the supervisor, not even when it is killed.
		Pdeathsig: syscall.SIGKILL,
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.started(p.name, command.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case end := <-ended:
		if end == nil {
			end = errors.New("exit status 0")
		}
		return end, nil
	case <-ctx.Done():
	}
	// Errors of Signal and Kill mean that the process has just ended, which is what they are for.
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(p.stopGrace):
		_ = command.Process.Kill()
		<-ended
	}
	return nil, nil
}

const (
	// maxLogBytes is how long a component's log gets before what there is of it becomes NAME.log.1.
	maxLogBytes = 64 << 20
	logPause    = 10 * time.Second // between two looks at their sizes
)

// limitLogs keeps logs from filling the disk until ctx ends.
func limitLogs(ctx context.Context, logs []string) {
	ticker := time.NewTicker(logPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, log := range logs {
			_ = limitLog(log, maxLogBytes) // it is tried again; a log is no reason to end a cluster
		}
	}
}

// limitLog empties a log that is too long, and keeps what it had as NAME.log.1. The component holds the file open, and
// appends, so that it continues at the new beginning; what it writes between the copy and the end of the file is lost.
func limitLog(log string, most int64) error {
	info, err := os.Stat(log)
	if err != nil || info.Size() <= most {
		return err
	}
	from, err := os.Open(log)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // It is only read.
	to, err := os.CreateTemp(filepath.Dir(log), "."+filepath.Base(log)+"-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(to.Name(), log+".1")
	}
	if err != nil {
		return errors.Join(err, os.Remove(to.Name()))
	}
	return os.Truncate(log, 0)
}

// rotate keeps the log of the run before as NAME.log.1.
func rotate(log string) error {
	if err := os.Rename(log, log+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// tail returns the last lines of a log, for an error message: there are few, and they name the cause.
func tail(log string, lines int) string {
	content, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
