package fakekubelet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// containerVariable marks a container's processes in their environment, so that
// those which left its process group are found at its end.
const containerVariable = "ELASTIC_CONTAINER_ID"

// outputDrain is how long output is still read after a container's processes are gone.
const outputDrain = time.Second

// A processSpec is a command to run as a container's first process.
type processSpec struct {
	id     string
	argv   []string // the first element is a path, or a name on PATH
	env    []string
	dir    string
	view   *fileView // nil: the host's files
	method mountMethod
	// ownProcesses hides all processes but the container's own from it; with a view only.
	ownProcesses bool
	log          *containerLog
	limit        int64 // memory in bytes; MaxInt64 for none
	exited       func(processExit)
}

type processExit struct {
	code int32
	oom  bool
	at   time.Time
}

// A process is a running container: a process group and what it left.
type process struct {
	pid  int
	id   string
	oom  *oomWatch
	mu   sync.Mutex
	over bool // the group's number may be somebody else's by now
}

// startProcess runs spec and returns once its command is executing or could not be.
// spec.exited is called once, after every process of the container is gone and its
// output is in the log.
//
// A goroutine with an OS thread of its own starts and awaits the command. The
// thread may have a mount namespace of its own, which the command inherits. It ends
// with the container, never before: the kernel kills the command (Pdeathsig) when
// the thread that started it ends, and that is to mean that the agent has died.
func startProcess(spec processSpec, watch *oomWatch) (*process, error) {
	type result struct {
		process *process
		err     error
	}
	started := make(chan result, 1)
	onOwnThread(func() {
		cmd, output, err := launch(spec)
		if err != nil {
			started <- result{err: err}
			return
		}
		p := &process{pid: cmd.Process.Pid, id: spec.id, oom: watch}
		watch.add(p.pid, spec.limit)
		started <- result{process: p}
		p.await(cmd, output, spec)
	})
	r := <-started
	return r.process, r.err
}

// onOwnThread runs f on an OS thread that ends with it, so that whatever f makes of
// the thread (namespaces, root directory) is not passed on.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// The main thread cannot end, and its root is what /proc shows as the agent's.
		// While it is held here, f gets another one.
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		onOwnThread(func() {
			defer close(done)
			f()
		})
		<-done
	}()
}

// containerNiceness is added to the niceness of the node agent. Pods that compute without pause would otherwise delay
// the control plane and its clients, which on other clusters have processors of their own.
const containerNiceness = 10

// yield gives the calling thread, and what it starts, the priority of containers.
func yield() error {
	level, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the system call returns 20 less the niceness
	if err == nil {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, min(20-level+containerNiceness, 19))
	}
	if err != nil {
		return fmt.Errorf("lower the priority of the container: %w", err)
	}
	return nil
}

// launch starts the command on the calling thread.
func launch(spec processSpec) (*exec.Cmd, []*os.File, error) {
	if err := yield(); err != nil {
		return nil, nil, err
	}
	var cmd *exec.Cmd
	var failure *os.File // where a shim reports what went wrong; nil without one
	switch {
	case spec.view != nil && spec.method == mountByThread && !spec.ownProcesses:
		if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return nil, nil, fmt.Errorf("enter a mount namespace: %w", err)
		}
		if err := spec.view.enter(); err != nil {
			return nil, nil, err
		}
		path, err := lookPath(spec.argv[0], spec.env, spec.dir)
		if err != nil {
			return nil, nil, err
		}
		cmd = &exec.Cmd{Path: path, Args: spec.argv, Env: spec.env, Dir: spec.dir}
	case spec.view != nil:
		var err error
		if cmd, failure, err = shimCommand(spec); err != nil {
			return nil, nil, err
		}
		defer failure.Close()
	default:
		path, err := lookPath(spec.argv[0], spec.env, spec.dir)
		if err != nil {
			return nil, nil, err
		}
		cmd = &exec.Cmd{Path: path, Args: spec.argv, Env: spec.env, Dir: spec.dir}
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = unix.SIGKILL

	stdout, stdoutWriter, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("pipe for the output: %w", err)
	}
	stderr, stderrWriter, err := os.Pipe()
	if err != nil {
		_ = stdout.Close()
		_ = stdoutWriter.Close()
		return nil, nil, fmt.Errorf("pipe for the output: %w", err)
	}
	cmd.Stdout, cmd.Stderr = stdoutWriter, stderrWriter
	err = cmd.Start()
	_ = stdoutWriter.Close()
	_ = stderrWriter.Close()
	for _, extra := range cmd.ExtraFiles {
		_ = extra.Close()
	}
	if err == nil && failure != nil {
		err = awaitShim(cmd, failure)
	}
	if err != nil {
		_ = stdout.Close()
		_ = stderr.Close()
		return nil, nil, err
	}
	return cmd, []*os.File{stdout, stderr}, nil
}

// awaitShim reads the shim's report. The pipe closes without one when the shim
// becomes the command.
func awaitShim(cmd *exec.Cmd, failure *os.File) error {
	report, err := io.ReadAll(failure)
	if err == nil && len(report) == 0 {
		return nil
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		return fmt.Errorf("container shim: %w", err)
	}
	return errors.New(string(report))
}

// await collects the output and the end of the command, in this order: the first
// process ends, the rest of the container is killed, the output is complete.
func (p *process) await(cmd *exec.Cmd, output []*os.File, spec processSpec) {
	var copying sync.WaitGroup
	for i, name := range []string{"stdout", "stderr"} {
		copying.Go(func() { spec.log.capture(name, output[i]) })
	}
	// The state has more details than the error, which repeats it.
	_ = cmd.Wait()
	at := time.Now()
	p.killGroup()
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	oom := p.oom.remove(p.pid)
	killMarked(p.id)
	for _, file := range output {
		_ = file.SetReadDeadline(time.Now().Add(outputDrain))
	}
	copying.Wait()
	for _, file := range output {
		_ = file.Close()
	}
	spec.log.close()
	spec.exited(processExit{code: exitCode(cmd.ProcessState), oom: oom, at: at})
}

func exitCode(state *os.ProcessState) int32 {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(state.ExitCode())
}

// signal sends a signal to the container's process group.
func (p *process) signal(s unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		_ = unix.Kill(-p.pid, s) // an empty group has what it needs
	}
}

func (p *process) killGroup() { p.signal(unix.SIGKILL) }

// killMarked kills every process that carries the container's mark: children
// that made a session of their own.
func killMarked(id string) {
	mark := []byte(containerVariable + "=" + id)
	for _, pid := range processes() {
		environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
		if err != nil {
			continue // ended, or somebody else's
		}
		for variable := range bytes.SplitSeq(environment, []byte{0}) {
			if bytes.Equal(variable, mark) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

// processes lists the numbers of all processes.
func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// lookPath finds a command as a container runtime does: on the container's
// PATH, and in its working directory if the name has a slash.
func lookPath(name string, env []string, dir string) (string, error) {
	var candidates []string
	switch {
	case filepath.IsAbs(name):
		candidates = []string{name}
	case strings.Contains(name, "/"):
		candidates = []string{filepath.Join(dir, name)}
	default:
		for _, variable := range env {
			if path, ok := strings.CutPrefix(variable, "PATH="); ok {
				for _, d := range filepath.SplitList(path) {
					candidates = append(candidates, filepath.Join(d, name))
				}
			}
		}
	}
	for _, candidate := range candidates {
		info, err := os.Stat(candidate)
		if err == nil && !info.IsDir() && unix.Access(candidate, unix.X_OK) == nil {
			return candidate, nil
		}
		if err == nil && len(candidates) == 1 {
			return "", fmt.Errorf("exec: %q: permission denied", name)
		}
	}
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("exec: %q: stat %s: no such file or directory", name, name)
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", name)
}
