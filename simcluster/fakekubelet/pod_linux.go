package fakekubelet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// How long a pod's owner waits before it asks the API server again after a failed request.
const apiRetry = 500 * time.Millisecond

// An owner is the one goroutine that acts for a pod, from the moment it is bound to a
// running node until its object is gone or the node stops.
type owner struct {
	agent     *agent
	node      *simulatedNode
	events    record.EventRecorder
	uid       types.UID
	namespace string
	podName   string
	rejection *ending     // why the node does not admit it
	active    atomic.Bool // has processes
	uses      references
	dir       string

	// Input from other goroutines; poke signals new input.
	mu      sync.Mutex
	latest  *corev1.Pod
	gone    bool
	changed bool // an object that the pod refers to
	runs    map[string]containerRun
	poke    chan struct{}

	// The rest belongs to run.
	exits          chan containerExit
	life           *lifecycle
	addresses      podAddresses
	processes      map[int]*process
	volumes        podVolumes
	prepared       bool
	lastMountError string    // the last FailedMount, so that it is not repeated
	refreshAt      time.Time // of volumes
	writer         statusWriter
	deleted        bool
}

// A containerRun is where to find the log of a container's latest run.
type containerRun struct {
	attempt int32
	log     *containerLog
}

type containerExit struct {
	container int
	exit      processExit
}

func newOwner(a *agent, node *simulatedNode, pod *corev1.Pod) *owner {
	dir := podDir(a.podsDir, pod.UID)
	return &owner{
		agent:     a,
		node:      node,
		events:    node.events,
		uid:       pod.UID,
		namespace: pod.Namespace,
		podName:   pod.Name,
		uses:      podReferences(pod),
		dir:       dir,
		latest:    pod,
		runs:      map[string]containerRun{},
		poke:      make(chan struct{}, 1),
		exits:     make(chan containerExit, len(pod.Spec.Containers)+len(pod.Spec.InitContainers)),
		processes: map[int]*process{},
		volumes:   podVolumes{dir: filepath.Join(dir, "volumes"), objects: a.objects, now: time.Now},
		writer:    statusWriter{client: a.client},
	}
}

// update takes the pod's newest version.
func (o *owner) update(pod *corev1.Pod) {
	o.mu.Lock()
	o.latest = pod
	o.mu.Unlock()
	o.wake()
}

// forget reports that the pod's object is gone.
func (o *owner) forget() {
	o.mu.Lock()
	o.gone = true
	o.mu.Unlock()
	o.wake()
}

// referenceChanged reports that a config map or secret it uses was made or changed.
func (o *owner) referenceChanged() {
	o.mu.Lock()
	o.changed = true
	o.mu.Unlock()
	o.wake()
}

func (o *owner) wake() {
	select {
	case o.poke <- struct{}{}:
	default: // it will look anyway
	}
}

// run owns the pod until its object is gone or ctx, the node's life, ends. On return
// no process of the pod is left.
func (o *owner) run(ctx context.Context) {
	defer o.killAll()
	if !o.begin(ctx) {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		o.mu.Lock()
		pod, gone, changed := o.latest, o.gone, o.changed
		o.changed = false
		o.mu.Unlock()
		if gone {
			o.killAll()
			o.cleanUp(pod)
			return
		}
		if pod.Generation != o.life.pod.Generation || !sameMetadata(pod, o.life.pod) {
			changed = true
		}
		o.life.updated(pod, time.Now())
		if changed {
			o.life.referenceChanged()
			o.refreshAt = time.Now()
		}
		wake := o.act(ctx)
		o.active.Store(len(o.processes) > 0)
		wake = earlier(wake, o.publish(ctx))
		timer.Stop()
		if !wake.IsZero() {
			timer.Reset(time.Until(wake))
		}
		select {
		case <-ctx.Done():
			return
		case <-o.poke:
		case <-timer.C:
		case e := <-o.exits:
			o.exited(e)
		}
	}
}

// begin gives the pod its address and directory.
func (o *owner) begin(ctx context.Context) bool {
	o.mu.Lock()
	pod := o.latest
	o.mu.Unlock()
	o.life = newLifecycle(pod, time.Now())
	o.addresses = podAddresses{hostIP: hostIP, podIP: pod.Status.PodIP}
	o.reject()
	if o.life.over {
		return true
	}
	if pod.Spec.HostNetwork {
		o.addresses.podIP = hostIP
	} else {
		address, err := o.agent.addresses.take()
		if err != nil {
			o.agent.log.ErrorContext(ctx, "no address for a pod", "pod", o.name(), "error", err)
			return false
		}
		o.addresses.podIP = address
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		o.agent.log.ErrorContext(ctx, "no directory for a pod", "pod", o.name(), "error", err)
		return false
	}
	return true
}

func (o *owner) name() string { return o.life.pod.Namespace + "/" + o.life.pod.Name }

// act does what the lifecycle asks for, until it asks for nothing more now.
func (o *owner) act(ctx context.Context) (wake time.Time) {
	for ctx.Err() == nil {
		now := time.Now()
		if !o.life.over && o.life.ending == nil {
			o.prepareVolumes(ctx, now)
		}
		if !o.prepared && o.life.ending == nil && !o.life.over {
			return o.refreshAt
		}
		p := o.life.step(now)
		for _, i := range p.terminate {
			c := &o.life.containers[i]
			o.events.Eventf(o.life.pod, corev1.EventTypeNormal, "Killing", "Stopping container %s", c.spec.Name)
			if process := o.processes[i]; process != nil {
				process.signal(unix.SIGTERM)
			}
		}
		for _, i := range p.kill {
			if process := o.processes[i]; process != nil {
				process.killGroup()
			}
		}
		if len(p.start) == 0 {
			return o.life.nextLook(p, o.refreshAt)
		}
		// And another look: a start that failed has a time to be tried again, and a
		// sidecar that was started lets the next container begin.
		for _, i := range p.start {
			o.start(ctx, i)
		}
	}
	return time.Time{}
}

func (o *owner) prepareVolumes(ctx context.Context, now time.Time) {
	if o.prepared && (o.refreshAt.IsZero() || now.Before(o.refreshAt)) {
		return
	}
	next, err := o.volumes.prepare(ctx, o.view())
	if err != nil {
		if message := err.Error(); message != o.lastMountError && ctx.Err() == nil {
			o.lastMountError = message
			o.events.Event(o.life.pod, corev1.EventTypeWarning, "FailedMount", message)
		}
		o.refreshAt = now.Add(configRetry)
		return
	}
	o.prepared, o.refreshAt, o.lastMountError = true, next, ""
}

func (o *owner) view() podView {
	return podView{pod: o.life.pod, podIP: o.addresses.podIP, hostIP: o.addresses.hostIP, allocatable: o.node.spec.Allocatable}
}

// start starts container i, or notes why it could not.
func (o *owner) start(ctx context.Context, i int) {
	c := &o.life.containers[i]
	now := time.Now()
	program, err := resolveImage(o.agent.config.Images, c.spec.Image)
	if err != nil {
		if c.state.Waiting == nil || c.state.Waiting.Reason != reasonErrImagePull {
			o.events.Eventf(o.life.pod, corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %v", c.spec.Image, err)
		}
		o.life.notPulled(i, err.Error(), now)
		return
	}
	if program.host {
		o.events.Eventf(o.life.pod, corev1.EventTypeNormal, "Pulled", "Image %q is not used: its command is run by the host", c.spec.Image)
	} else {
		o.events.Eventf(o.life.pod, corev1.EventTypeNormal, "Pulled", "Container image %q already present on machine", c.spec.Image)
	}
	id := containerID(o.uid, c.spec.Name, o.life.attempt(i))
	spec, reason, err := o.container(ctx, c.spec, program, id)
	if err != nil {
		if ctx.Err() == nil {
			o.events.Eventf(o.life.pod, corev1.EventTypeWarning, "Failed", "Error: %v", err)
		}
		o.life.notCreated(i, reason, err.Error(), now)
		return
	}
	attempt := o.life.attempt(i)
	path := logFile(o.agent.logsDir, o.life.pod.Namespace, o.life.pod.Name, o.uid, c.spec.Name, attempt)
	if spec.log, err = createContainerLog(path); err != nil {
		o.life.notCreated(i, reasonCreateError, err.Error(), now)
		return
	}
	o.events.Eventf(o.life.pod, corev1.EventTypeNormal, "Created", "Created container: %s", c.spec.Name)
	spec.exited = func(exit processExit) { o.exits <- containerExit{i, exit} }
	p, err := startProcess(spec, o.agent.memory)
	o.mu.Lock()
	o.runs[c.spec.Name] = containerRun{attempt, spec.log}
	o.mu.Unlock()
	began := time.Now()
	o.life.ran(i, "simulated://"+id, began)
	if err != nil {
		spec.log.close()
		o.events.Eventf(o.life.pod, corev1.EventTypeWarning, "Failed", "Error: failed to start container %q: %v", c.spec.Name, err)
		o.life.exited(i, exitCodeNotStarted, reasonStartError, "failed to start container: "+err.Error(), began)
		return
	}
	o.processes[i] = p
	o.events.Eventf(o.life.pod, corev1.EventTypeNormal, "Started", "Started container %s", c.spec.Name)
}

// exited notes a container's end.
func (o *owner) exited(e containerExit) {
	delete(o.processes, e.container)
	reason := reasonCompleted
	switch {
	case e.exit.oom:
		reason = reasonOOMKilled
	case e.exit.code != 0:
		reason = reasonError
	}
	c := &o.life.containers[e.container]
	message := o.terminationMessage(c.spec, e.exit.code != 0)
	o.life.exited(e.container, e.exit.code, reason, message, e.exit.at)
}

// publish writes the status if it changed, and deletes the object once a pod that
// is being deleted is over. It returns when to try again after a failure.
func (o *owner) publish(ctx context.Context) (retry time.Time) {
	if ctx.Err() != nil {
		return time.Time{}
	}
	if err := o.writer.write(ctx, o.life, o.addresses, time.Now()); err != nil {
		if ctx.Err() == nil {
			o.agent.log.WarnContext(ctx, "status of a pod not written, trying again", "pod", o.name(), "error", err)
		}
		return time.Now().Add(apiRetry)
	}
	if !o.life.over || o.life.pod.DeletionTimestamp == nil || o.deleted {
		return time.Time{}
	}
	if err := o.agent.deletePod(ctx, o.life.pod); err != nil {
		if ctx.Err() == nil {
			o.agent.log.WarnContext(ctx, "pod not deleted, trying again", "pod", o.name(), "error", err)
		}
		return time.Now().Add(apiRetry)
	}
	o.deleted = true
	return time.Time{}
}

// killAll kills every container and waits until their processes are gone.
func (o *owner) killAll() {
	for _, p := range o.processes {
		p.killGroup()
	}
	for len(o.processes) > 0 {
		e := <-o.exits
		delete(o.processes, e.container)
	}
	if ip := o.addresses.podIP; ip != "" && ip != hostIP {
		o.agent.addresses.release(ip)
		o.addresses.podIP = ""
	}
}

// cleanUp removes what the pod had on this machine, once its object is gone.
func (o *owner) cleanUp(pod *corev1.Pod) {
	o.agent.removePodDirs(o.uid, podLogDir(o.agent.logsDir, pod.Namespace, pod.Name, o.uid))
}

// removeAll removes dir, even where the container left directories that its user
// may not write.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// currentRun finds the log of a container's latest run in this life of the pod.
func (o *owner) currentRun(container string) (containerRun, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	run, ok := o.runs[container]
	return run, ok
}

func containerID(uid types.UID, container string, attempt int32) string {
	return fmt.Sprintf("%s/%s/%d", uid, container, attempt)
}

func sameMetadata(a, b *corev1.Pod) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// references names the config maps and secrets that a pod depends on.
type references struct{ configMaps, secrets map[string]bool }

func podReferences(pod *corev1.Pod) references {
	r := references{map[string]bool{}, map[string]bool{}}
	podutil.VisitPodConfigmapNames(pod, func(name string) bool { r.configMaps[name] = true; return true })
	podutil.VisitPodSecretNames(pod, func(name string) bool { r.secrets[name] = true; return true })
	return r
}
