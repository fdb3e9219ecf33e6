package framework

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
	"github.com/elastic-training/terraform-provider-elastic/python"
)

// launch holds everything that starts a script's process. A master sends it to the container that runs its script.
type launch struct {
	Command []string `json:"command"`
	Name    string   `json:"name"`   // of the script's file
	Script  []byte   `json:"script"` // its text
	Threads int      `json:"threads,omitempty"`
	Beside  string   `json:"-"` // see Options

	LocalRank  int `json:"-"`
	LocalWorld int `json:"-"`

	Socket string `json:"socket"`
}

// command is a script that runs as a child of this process.
type command struct {
	cmd    *exec.Cmd
	dir    *child.Workdir // holds the script and the Python module
	output *child.Lines
	ended  chan struct{} // closed when it has
	err    error         // the error of Wait; set before ended is closed
}

// startCommand runs a script. The command owns the directory from then on, also after an error.
func startCommand(l launch, dir *child.Workdir, output io.Writer) (_ *command, err error) {
	prefix := l.Name + ": "
	if l.LocalWorld > 1 {
		prefix = fmt.Sprintf("%s, local rank %d: ", l.Name, l.LocalRank)
	}
	c := &command{dir: dir, output: &child.Lines{To: output, Prefix: prefix}, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.end(0))
		}
	}()
	script := filepath.Join(dir.Path, "script", filepath.Base(l.Name))
	if err := os.Mkdir(filepath.Dir(script), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(script, l.Script, 0o600); err != nil {
		return nil, err
	}
	modules := filepath.Join(dir.Path, "python")
	if err := python.Install(modules); err != nil {
		return nil, err
	}
	return c, c.start(append(slices.Clone(l.Command), script), l.environment(modules))
}

// start runs the command. The thread that starts a process must live as long as that, or the kernel takes the
// thread's end for the parent's.
func (c *command) start(line, env []string) error {
	if len(line) < 2 {
		return errors.New("the job has no command")
	}
	c.cmd = exec.Command(line[0], line[1:]...) //nolint:noctx // it ends when its connection is closed, or is killed
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = env, c.output, c.output
	c.cmd.SysProcAttr = child.Attributes()
	c.cmd.WaitDelay = endTimeout // its own children may hold its output open
	started := make(chan error)
	go func() {
		defer close(c.ended)
		child.LockThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			c.output.Flush()
		}
	}()
	if err := <-started; err != nil {
		c.cmd = nil
		return fmt.Errorf("start the job's command %q: %w", strings.Join(line, " "), err)
	}
	return nil
}

func (c *command) done() <-chan struct{} { return c.ended }

// ending describes how the script has ended.
func (c *command) ending() ending {
	how := "ended with exit code 0"
	var exit *exec.ExitError
	switch {
	case errors.As(c.err, &exit):
		how = fmt.Sprintf("ended with exit code %d", exit.ExitCode())
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			how = fmt.Sprintf("was ended by signal %q", status.Signal())
			if status.Signal() == syscall.SIGKILL {
				how += " (perhaps out of memory)"
			}
		}
	case c.err != nil:
		how = "ended: " + c.err.Error()
	}
	return ending{How: how, LastWords: c.output.LastLines()}
}

func (c *command) lastLines() string { return c.output.LastLines() }

// end waits until the script has ended, kills it if that takes too long, and removes its directory.
func (c *command) end(timeout time.Duration) error {
	if c.cmd != nil {
		select {
		case <-c.ended:
		case <-time.After(timeout):
			child.Signal(c.cmd.Process, syscall.SIGKILL)
			<-c.ended
		}
	}
	return c.dir.Remove()
}

// environment is that of this process and the variables by which the script finds its work. What the user has set
// stays.
func (l launch) environment(modules string) []string {
	defaults := map[string]string{
		"PYTHONUNBUFFERED": "1", // its last lines are reported when it dies
		"PYTHONHASHSEED":   "0", // the order of sets, from which models are built, is the same in every process
	}
	if l.Threads > 0 {
		defaults["OMP_NUM_THREADS"] = strconv.Itoa(l.Threads)
	}
	env := os.Environ()
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		if _, set := os.LookupEnv(name); !set {
			env = append(env, name+"="+defaults[name])
		}
	}
	path := []string{modules}
	if l.Beside != "" {
		path = append(path, l.Beside)
	}
	if before := os.Getenv("PYTHONPATH"); before != "" {
		path = append(path, before)
	}
	if l.LocalWorld > 0 {
		env = append(env, "LOCAL_RANK="+strconv.Itoa(l.LocalRank), "LOCAL_WORLD_SIZE="+strconv.Itoa(l.LocalWorld))
	}
	return append(env, "ELASTIC_SOCKET="+l.Socket, "PYTHONPATH="+strings.Join(path, string(filepath.ListSeparator)))
}
