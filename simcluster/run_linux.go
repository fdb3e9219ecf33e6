package simcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// kubeconfigPrefix begins the line by which `simcluster up` says that the cluster is ready.
const kubeconfigPrefix = "KUBECONFIG="

// stopPatience is how long an ordered stop may take before the supervisor is killed, and everything with it. It is
// longer than all of the supervisor's own bounds together.
const stopPatience = 60 * time.Second

// Run starts a cluster and returns when it can be used. ctx bounds the start, not the cluster, which runs until Close
// or until the calling process ends.
func Run(ctx context.Context, options Options) (cluster *Cluster, err error) {
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	binary := options.Binary
	if binary == "" {
		if binary, err = Binary(ctx, options.Progress); err != nil {
			return nil, err
		}
	}
	cluster = &Cluster{Dir: options.Dir}
	if cluster.Dir == "" {
		if cluster.Dir, err = os.MkdirTemp("", "simcluster-"); err != nil {
			return nil, fmt.Errorf("making a state directory: %w", err)
		}
		cluster.temporary = true
	}
	if cluster.layout, err = controlplane.NewLayout(cluster.Dir); err != nil {
		return nil, err
	}
	cluster.Dir = cluster.layout.Dir
	cluster.Kubeconfig, cluster.UserKubeconfig = cluster.layout.AdminKubeconfig(), cluster.layout.UserKubeconfig()
	var output transcript
	cluster.supervisor = startSupervisor(binary, options.arguments(cluster.Dir), io.MultiWriter(&output, options.Progress))
	select {
	case <-cluster.supervisor.ready:
		return cluster, nil
	case <-cluster.supervisor.done:
		err = cluster.Close()
	case <-ctx.Done():
		err = errors.Join(ctx.Err(), cluster.Close())
	}
	return nil, fmt.Errorf("starting a cluster in %q: %w; it said:\n%s", cluster.Dir, err, &output)
}

// Close stops the cluster in order and returns when no process of it is left. A temporary state directory is removed.
// Close may be called again, which does nothing.
func (c *Cluster) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	err := c.supervisor.stop()
	if c.temporary {
		err = errors.Join(err, os.RemoveAll(c.Dir))
	}
	return err
}

// Status returns the state of the components.
func (c *Cluster) Status() (controlplane.Status, error) { return controlplane.ReadStatus(c.layout) }

// KillComponent ends one of controlplane's components as a crash would and returns when it was started again, which is
// before it can be used again: see WaitReady.
func (c *Cluster) KillComponent(ctx context.Context, name string) error {
	return controlplane.Kill(ctx, c.layout, name)
}

// WaitReady waits until API server and scheduler say that they are ready and the named nodes take pods; without names,
// all declared nodes.
func (c *Cluster) WaitReady(ctx context.Context, nodes ...string) error {
	if len(nodes) == 0 {
		config, _, err := controlplane.LoadConfig(c.layout)
		if err != nil {
			return err
		}
		nodes = config.NodeNames()
	}
	return controlplane.WaitReady(ctx, c.layout, nodes)
}

// StopNode lets a node die: its processes are killed and its lease is not renewed; with gone the Node object is deleted
// too, as clouds do.
func (c *Cluster) StopNode(ctx context.Context, name string, gone bool) error {
	return nodeagent.Dial(c.layout.ControlSocket()).Stop(ctx, name, gone)
}

// StartNode starts a node that was stopped.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	return nodeagent.Dial(c.layout.ControlSocket()).Start(ctx, name)
}

// A supervisor is a running `simcluster up --foreground`.
type supervisor struct {
	ready chan struct{} // closed when the cluster can be used
	done  chan struct{} // closed when the process has ended
	quit  chan struct{} // receives when the process is to be stopped
	err   error         // why it ended; valid once done is closed
}

func startSupervisor(binary string, args []string, progress io.Writer) *supervisor {
	s := &supervisor{ready: make(chan struct{}), done: make(chan struct{}), quit: make(chan struct{}, 1)}
	go func() {
		defer close(s.done)
		s.err = s.run(binary, args, progress)
	}()
	return s
}

// run runs the process until it ends or quit receives.
func (s *supervisor) run(binary string, args []string, progress io.Writer) error {
	// The kernel sends the parent-death signal when this thread ends (prctl(2)), so the thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	output, input, err := os.Pipe()
	if err != nil {
		return err
	}
	defer output.Close() //nolint:errcheck // It is only read.
	command := exec.Command(binary, args...)
	command.Stdout, command.Stderr = input, progress
	command.SysProcAttr = &syscall.SysProcAttr{
		Setpgid: true, // a terminal's ^C is for us; we stop the cluster
		// The supervisor stops everything in order when this process is gone. Were it killed, everything would be too.
		Pdeathsig: syscall.SIGTERM,
	}
	err = command.Start()
	if closeErr := input.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	go s.awaitKubeconfig(output)
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case err := <-ended:
		if err == nil {
			err = errors.New("the supervisor stopped without being asked to")
		}
		return err
	case <-s.quit:
	}
	// Errors of Signal and Kill mean that the process has just ended, which is what they are for.
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(stopPatience):
		_ = command.Process.Kill()
		return errors.Join(fmt.Errorf("the cluster did not stop within %s and was killed", stopPatience), <-ended)
	}
}

// awaitKubeconfig reads until the cluster is ready or the process has ended.
func (s *supervisor) awaitKubeconfig(output io.Reader) {
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), kubeconfigPrefix) {
			close(s.ready)
			return
		}
	}
}

// stop ends the process and waits for it. The error is that of a process that had ended before, or did not end well.
func (s *supervisor) stop() error {
	select {
	case s.quit <- struct{}{}:
	default: // it was requested before
	}
	<-s.done
	return s.err
}
