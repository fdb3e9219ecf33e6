// Package torchrun runs a command on one node as torchrun does: some processes with the environment from which
// torch.distributed.init_process_group reads its rank and the others' address. Who the others are, and when the command is
// started again, is decided elsewhere: here one run starts, ends or is stopped.
//
// The variables are those of torch/distributed/elastic/agent/server/local_elastic_agent.py. There is no store of an agent
// (TORCHELASTIC_USE_AGENT_STORE=False): the process of rank 0 listens at MASTER_ADDR:MASTER_PORT.
package torchrun

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/child"
)

// Command is what every process runs.
type Command struct {
	// Line is the program and its arguments. With a Script its path is the last one.
	Line []string
	// Name and Script are the name and text of a script that the job brings; "" and nil if it is in the image.
	Name   string
	Script []byte
	// Beside is the folder of the script where it was submitted, if it is here: what it imports. "" otherwise.
	Beside string
	// Processes is how many processes run on this node, LOCAL_WORLD_SIZE; at least 1.
	Processes int
	Job       string        // TORCHELASTIC_RUN_ID
	Grace     time.Duration // between SIGTERM and SIGKILL
	Output    io.Writer     // receives what the processes print, with their ranks; nil discards it
}

// Place is where the node is in a run.
type Place struct {
	Rank, World int    // of the node, among all nodes
	Master      string // host:port of the process of rank 0
	Restarts    int    // earlier runs
}

// MaxRestarts is TORCHELASTIC_MAX_RESTARTS: failed runs in a row after which a job fails.
const MaxRestarts = 6

// Run is the processes of one run on this node. It ends when all have ended; when one fails, the others are stopped.
type Run struct {
	grace     time.Duration
	dir       *child.Workdir // nil without a script
	processes []*child.Process
	stopOnce  sync.Once
	stop      chan struct{}
	done      chan struct{}
	err       error // set before done is closed
}

// Start starts the processes of a run.
func Start(c Command, p Place) (_ *Run, err error) {
	r := &Run{grace: c.Grace, stop: make(chan struct{}), done: make(chan struct{})}
	line := slices.Clone(c.Line)
	if len(c.Script) > 0 {
		if r.dir, err = child.NewWorkdir(); err != nil {
			return nil, fmt.Errorf("make a directory for %s: %w", c.Name, err)
		}
		script := filepath.Join(r.dir.Path, filepath.Base(c.Name))
		line = append(line, script)
		if err := os.WriteFile(script, c.Script, 0o600); err != nil {
			return nil, errors.Join(err, r.dir.Remove())
		}
	}
	outputs := make([]*child.Lines, c.Processes)
	for local := range c.Processes {
		env, err := environment(os.Environ(), c, p, local)
		if err == nil {
			outputs[local] = &child.Lines{To: c.Output, Prefix: fmt.Sprintf("rank %d: ", p.Rank*c.Processes+local)}
			var process *child.Process
			process, err = child.Start(line, env, outputs[local], outputs[local])
			r.processes = append(r.processes, process)
		}
		if err != nil {
			r.processes = slices.DeleteFunc(r.processes, func(p *child.Process) bool { return p == nil })
			r.Stop()
			r.watch(p, nil)
			return nil, err
		}
	}
	go r.watch(p, outputs)
	return r, nil
}

// watch waits until all processes have ended, stops them when one has failed or Stop was called, and notes the first
// failure.
func (r *Run) watch(p Place, outputs []*child.Lines) {
	defer close(r.done)
	var once sync.Once
	var all sync.WaitGroup
	for local, process := range r.processes {
		all.Go(func() {
			select {
			case <-process.Done():
			case <-r.stop:
				process.Stop(r.grace)
				return
			}
			code, _ := process.Ended()
			if code == 0 {
				return
			}
			once.Do(func() {
				words := ""
				if outputs != nil {
					outputs[local].Flush()
					words = outputs[local].LastLines()
				}
				r.err = &FailedError{Rank: p.Rank*len(r.processes) + local, Code: code, LastLines: words}
			})
			r.Stop()
		})
	}
	all.Wait()
	for _, o := range outputs {
		o.Flush()
	}
	if r.dir != nil {
		if err := r.dir.Remove(); err != nil && r.err == nil {
			r.err = err
		}
	}
}

// Stop asks the processes to end; those that take longer than the grace period are killed. It does not wait.
func (r *Run) Stop() { r.stopOnce.Do(func() { close(r.stop) }) }

// Done is closed when all processes have ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// Err is the first failure of a process, once Done is closed: a *FailedError. It is nil if all have ended with exit code 0,
// and if they were stopped.
func (r *Run) Err() error { return r.err }

// FailedError is a process that ended with another exit code than 0 and was not stopped.
type FailedError struct {
	Rank      int
	Code      int    // 128 plus its number for a signal
	LastLines string // of its output, for the end of a sentence
}

func (e *FailedError) Error() string {
	how := ""
	if e.Code == 128+9 {
		how = " (SIGKILL, perhaps out of memory)"
	}
	return fmt.Sprintf("rank %d ended with exit code %d%s%s", e.Rank, e.Code, how, e.LastLines)
}

// environment is base and the variables of one process. Variables of base that have other names stay.
func environment(base []string, c Command, p Place, local int) ([]string, error) {
	host, port, err := net.SplitHostPort(p.Master)
	if err != nil {
		return nil, fmt.Errorf("the address of rank 0: %w", err)
	}
	rank, world := p.Rank*c.Processes+local, p.World*c.Processes
	set := map[string]string{
		"RANK": strconv.Itoa(rank), "WORLD_SIZE": strconv.Itoa(world),
		"LOCAL_RANK": strconv.Itoa(local), "LOCAL_WORLD_SIZE": strconv.Itoa(c.Processes),
		"GROUP_RANK": strconv.Itoa(p.Rank), "GROUP_WORLD_SIZE": strconv.Itoa(p.World),
		"ROLE_NAME": "default", "ROLE_RANK": strconv.Itoa(rank), "ROLE_WORLD_SIZE": strconv.Itoa(world),
		"MASTER_ADDR": host, "MASTER_PORT": port,
		"TORCHELASTIC_RESTART_COUNT": strconv.Itoa(p.Restarts), "TORCHELASTIC_MAX_RESTARTS": strconv.Itoa(MaxRestarts),
		"TORCHELASTIC_RUN_ID": c.Job, "TORCHELASTIC_USE_AGENT_STORE": "False",
	}
	defaults := map[string]string{
		"PYTHONUNBUFFERED":                "1", // lines appear when they are printed
		"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", // a lost rank ends the others' collectives
		"NCCL_ASYNC_ERROR_HANDLING":       "1", // the same, before torch 2.2
		"USE_LIBUV":                       "0", // torch asks for it also where it is not compiled in, as in Debian, and then ends
	}
	if c.Processes > 1 {
		defaults["OMP_NUM_THREADS"] = "1" // as torchrun: the processes share the cores
	}
	if c.Beside != "" {
		set["PYTHONPATH"] = c.Beside
	}
	env := make([]string, 0, len(base)+len(set))
	for _, v := range base {
		name, value, _ := strings.Cut(v, "=")
		if name == "PYTHONPATH" && c.Beside != "" && value != "" {
			set[name] = c.Beside + string(filepath.ListSeparator) + value
		}
		delete(defaults, name)
		if _, ours := set[name]; !ours {
			env = append(env, v)
		}
	}
	maps.Copy(set, defaults)
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env, nil
}
