package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	// readyTimeout bounds a start. It takes seconds; a machine under heavy load takes a minute.
	readyTimeout = 3 * time.Minute
	// A component that dies this often before the cluster is ready will not become ready by trying again.
	startFailures = 3
	// lockPatience is how long a start waits for the lock, which those that merely ask for the status hold for an
	// instant.
	lockTimeout = 500 * time.Millisecond
)

// ErrRunning is returned by Supervise when the cluster is running already.
var ErrRunning = errors.New("the cluster is running already")

// Options are what a supervisor needs to know.
type Options struct {
	Layout Layout
	Config Config
	// Executable is the binary that runs a component when it is given its name as first argument.
	Executable string
	// Addons is the folder of the add-ons that are built (addon.Find).
	Addons string
	// Progress receives a line for everything that a user may want to know, during the start and later.
	Progress io.Writer
}

// A supervisor runs the components of one cluster.
type supervisor struct {
	Options
	addons    []installable
	begin     time.Time
	processes []*running

	output sync.Mutex // guards Progress

	mutex    sync.Mutex // guards what follows
	status   Status
	failures map[string]int
	failed   context.CancelCauseFunc // ends the start, for good
}

type running struct {
	name string
	stop context.CancelFunc
	done chan struct{}
}

// Supervise starts the cluster, calls ready once when it can be used, keeps its components running until ctx ends, and
// then stops them in order. It returns when no process is left: with nil when it was signalled to stop, with ErrRunning
// when there is a supervisor already, and with an error that says what was missing when the cluster did not become
// ready.
func Supervise(ctx context.Context, options Options, ready func()) (err error) {
	if err := options.Config.Validate(); err != nil {
		return fmt.Errorf("the cluster's declaration: %w", err)
	}
	addons, err := readAddons(options)
	if err != nil {
		return err
	}
	layout := options.Layout
	if err := layout.Create(); err != nil {
		return err
	}
	lock := flock.New(layout.lockFile(), flock.SetPermissions(0o600))
	lockCtx, cancel := context.WithTimeout(ctx, lockTimeout)
	locked, err := lock.TryLockContext(lockCtx, pollPause)
	cancel()
	if !locked {
		if ctx.Err() != nil { // signalled to stop before it began
			return nil
		}
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			return ErrRunning
		}
		return fmt.Errorf("locking the state directory %q: %w", layout.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	s := &supervisor{Options: options, addons: addons, begin: time.Now(), failures: map[string]int{}}
	ports, reserved, err := choosePorts(ctx, options.Config, lastPorts(layout))
	if err != nil {
		return err
	}
	defer reserved.release()
	if err := s.prepare(ports); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), layout.RemoveSockets()) }()
	var limiting sync.WaitGroup
	defer limiting.Wait()
	limited, cancelLimits := context.WithCancel(ctx)
	defer cancelLimits()
	limiting.Go(func() { limitLogs(limited, s.logs()) })
	if err := s.start(ctx, ports); err != nil {
		if ctx.Err() != nil { // signalled to stop while it was starting
			return nil
		}
		return err
	}
	ready()
	<-ctx.Done()
	return nil
}

func lastPorts(layout Layout) Ports {
	status, err := ReadStatus(layout)
	if err != nil { // no status, or a damaged one: nothing to resume from
		return Ports{}
	}
	return status.Ports
}

// prepare writes everything that the components read.
func (s *supervisor) prepare(ports Ports) error {
	for _, name := range s.Config.Addons {
		if err := os.MkdirAll(s.Layout.addonDir(name), 0o700); err != nil {
			return err
		}
	}
	if err := saveJSON(s.Layout.configFile(), s.Config); err != nil {
		return fmt.Errorf("keeping the cluster's declaration: %w", err)
	}
	if err := writePKI(s.Layout, time.Now()); err != nil {
		return err
	}
	if err := writeKubeconfigs(s.Layout, ports.APIServer); err != nil {
		return err
	}
	agent, err := agentConfig(s.Layout, s.Config, ports)
	if err != nil {
		return err
	}
	if err := saveJSON(s.Layout.agentConfigFile(), agent); err != nil {
		return fmt.Errorf("writing the node agent's configuration: %w", err)
	}
	if s.Config.PodSecurity != "" {
		if err := saveJSON(s.Layout.admissionConfigFile(), admissionConfig(s.Config.PodSecurity)); err != nil {
			return fmt.Errorf("writing the configuration of admission: %w", err)
		}
	}
	for _, name := range s.Config.Components() {
		if err := rotate(s.Layout.Log(name)); err != nil {
			return fmt.Errorf("keeping the log of the run before: %w", err)
		}
	}
	s.status = Status{Phase: PhaseStarting, SupervisorPID: os.Getpid(), Started: s.begin, Ports: ports}
	return s.saveStatus()
}

// logs are the files that the components and, in the background, the supervisor write to.
func (s *supervisor) logs() []string {
	var logs []string
	for _, name := range append(s.Config.Components(), "supervisor") {
		logs = append(logs, s.Layout.Log(name))
	}
	return logs
}

// start starts the components and waits until the cluster can be used.
func (s *supervisor) start(ctx context.Context, ports Ports) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	ctx, s.failed = context.WithCancelCause(ctx)
	defer s.failed(nil)

	probe, err := probeClient(s.Layout)
	if err != nil {
		return err
	}
	client, err := adminClient(s.Layout)
	if err != nil {
		return err
	}
	s.progress("keys, certificates and kubeconfigs are written")
	s.launch(Etcd, ports)
	if err := s.await(ctx, etcdListens(s.Layout)); err != nil {
		return err
	}
	s.launch(APIServer, ports)
	if err := s.await(ctx, answersReady(probe, APIServer, serverURL(ports.APIServer))); err != nil {
		return err
	}
	for _, name := range s.Config.Components() {
		if name != Etcd && name != APIServer && !slices.Contains(s.Config.Addons, name) {
			s.launch(name, ports)
		}
	}
	conditions := append(clusterConditions(client, s.Config, s.Config.NodeNames()), serversReady(probe, s.Config, ports)...)
	// The first is what add-ons are installed into.
	if err := s.await(ctx, conditions[0]); err != nil {
		return err
	}
	for _, a := range s.addons {
		if err := a.install(ctx, s.Layout, ports.Addons[a.Name]); err != nil {
			return fmt.Errorf("installing %s: %w", a.Name, err)
		}
		s.progress("%s is installed", a.Name)
		s.launch(a.Name, ports)
	}
	for _, condition := range conditions[1:] {
		if err := s.await(ctx, condition); err != nil {
			return err
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.failures = nil
	s.status.Phase = PhaseReady
	return s.saveStatus()
}

func (s *supervisor) await(ctx context.Context, c condition) error {
	if err := c.await(ctx); err != nil {
		return err
	}
	s.progress("%s", c.what)
	return nil
}

// launch keeps the component running until stop.
func (s *supervisor) launch(name string, ports Ports) {
	s.mutex.Lock()
	s.status.Components = append(s.status.Components, ComponentStatus{Name: name})
	s.mutex.Unlock()
	p := &process{
		name:      name,
		log:       s.Layout.Log(name),
		stopGrace: stopGrace(name),
		started:   s.componentStarted,
		died:      s.componentDied,
	}
	if i := slices.IndexFunc(s.addons, func(a installable) bool { return a.Name == name }); i >= 0 {
		p.executable, p.arguments, p.environment = s.addons[i].command(s.Layout, ports.Addons[name])
	} else {
		p.executable, p.arguments = s.Executable, append([]string{name}, arguments(name, s.Layout, s.Config, ports)...)
	}
	// Not a child of the supervisor's context: components are stopped one after the other.
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{name: name, stop: cancel, done: make(chan struct{})}
	s.processes = append(s.processes, r)
	go func() {
		defer close(r.done)
		if err := p.run(ctx); err != nil {
			s.progress("%v", err)
			s.failed(err)
		}
	}()
}

// stopGrace is how long a component may take to stop by itself.
func stopGrace(name string) time.Duration {
	if name == NodeAgent {
		return 15 * time.Second // it stops every container
	}
	// The API server would wait for its clients' open requests for a minute; the state is in etcd.
	return 5 * time.Second
}

// stop stops the components in the reverse order of their start.
func (s *supervisor) stop() error {
	s.setPhase(PhaseStopping)
	for i := len(s.processes) - 1; i >= 0; i-- {
		begin := time.Now()
		s.processes[i].stop()
		<-s.processes[i].done
		s.progress("%s stopped in %.1f s", s.processes[i].name, time.Since(begin).Seconds())
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.status.Phase, s.status.SupervisorPID = PhaseStopped, 0
	for i := range s.status.Components {
		s.status.Components[i].PID = 0
	}
	return s.saveStatus()
}

func (s *supervisor) setPhase(phase string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.status.Phase = phase
	s.reportStatus()
}

func (s *supervisor) componentStarted(name string, pid int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	component := s.component(name)
	if !component.Started.IsZero() {
		component.Restarts++
	}
	component.PID, component.Started = pid, time.Now()
	s.reportStatus()
}

func (s *supervisor) componentDied(name string, lifetime time.Duration, end error) {
	s.progress("%s died after %.1f s (%v) and is started again; its log is %s", name, lifetime.Seconds(), end, s.Layout.Log(name))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.component(name).PID = 0
	s.reportStatus()
	if s.status.Phase != PhaseStarting {
		return
	}
	s.failures[name]++
	if s.failures[name] == startFailures {
		s.failed(fmt.Errorf("%s ended %d times (%w); the last lines of %s:\n%s", name, startFailures, end, s.Layout.Log(name), tail(s.Layout.Log(name), 5)))
	}
}

// component is called with the mutex held.
func (s *supervisor) component(name string) *ComponentStatus {
	for i := range s.status.Components {
		if s.status.Components[i].Name == name {
			return &s.status.Components[i]
		}
	}
	panic("controlplane: component " + name + " was never launched")
}

// saveStatus is called with the mutex held, or before anybody else can have it.
func (s *supervisor) saveStatus() error {
	if err := saveJSON(s.Layout.statusFile(), s.status); err != nil {
		return fmt.Errorf("writing the cluster's status: %w", err)
	}
	return nil
}

// reportStatus is saveStatus where a cluster that runs is worth more than a file about it.
func (s *supervisor) reportStatus() {
	if err := s.saveStatus(); err != nil {
		s.progress("%v", err)
	}
}

// progress writes a line with the wall clock, to compare with the components' logs, and the time since the start.
func (s *supervisor) progress(format string, args ...any) {
	now := time.Now()
	s.output.Lock()
	defer s.output.Unlock()
	// A reader that went away must not stop the cluster.
	_, _ = fmt.Fprintf(s.Progress, "%s %7.2fs  %s\n", now.Format("15:04:05.000"), now.Sub(s.begin).Seconds(), fmt.Sprintf(format, args...))
}
