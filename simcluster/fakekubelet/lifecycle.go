package fakekubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An ending is why and until when a pod's containers are being stopped.
type ending struct {
	deadline time.Time // SIGKILL at the latest then
	reason   string    // status.reason, "" for a deletion
	message  string
}

// A lifecycle is a pod's state machine: it receives events and returns
// what is to be done now. It has no I/O, no clock and no goroutine; time comes with
// each call.
type lifecycle struct {
	pod        *corev1.Pod
	startedAt  time.Time        // status.startTime
	containers []containerState // init containers first, in the pod's order
	// initialized is set once the main containers may run.
	initialized bool
	ending      *ending
	// rejected is set where the node has not admitted the pod.
	rejected bool
	// over is set once nothing runs and nothing will be started again.
	over bool
}

// A plan is what to do now. The indices are those of lifecycle.containers.
type plan struct {
	start     []int
	terminate []int // SIGTERM
	kill      []int // SIGKILL
	// wake is when to ask again even if nothing happens; zero for never.
	wake time.Time
}

func (p *plan) wakeAt(t time.Time) {
	if p.wake.IsZero() || t.Before(p.wake) {
		p.wake = t
	}
}

// newLifecycle begins the life of a pod on its node. What the pod's status says
// was running is dead: its processes ended with the node or the agent. As after a
// reboot, such containers have failed, and their restart policy decides.
func newLifecycle(pod *corev1.Pod, now time.Time) *lifecycle {
	l := &lifecycle{pod: pod, startedAt: now, over: finished(pod)}
	if pod.Status.StartTime != nil {
		l.startedAt = pod.Status.StartTime.Time
	}
	for i := range pod.Spec.InitContainers {
		kind := initContainer
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			kind = sidecarContainer
		}
		l.adopt(&pod.Spec.InitContainers[i], kind, pod.Status.InitContainerStatuses, now)
	}
	for i := range pod.Spec.Containers {
		l.adopt(&pod.Spec.Containers[i], mainContainer, pod.Status.ContainerStatuses, now)
	}
	// The init containers run again when a new sandbox is needed, which is so
	// unless all is over.
	for i := range l.containers {
		c := &l.containers[i]
		if c.kind == initContainer && c.succeeded() && l.willRunAgain() {
			c.last, c.state = c.state.Terminated, corev1.ContainerState{}
			c.attempts = c.restarts + 1
		}
	}
	return l
}

func (l *lifecycle) adopt(spec *corev1.Container, kind containerKind, statuses []corev1.ContainerStatus, now time.Time) {
	c := containerState{spec: spec, kind: kind}
	for i := range statuses {
		status := &statuses[i]
		if status.Name != spec.Name {
			continue
		}
		c.id, c.restarts = status.ContainerID, status.RestartCount
		c.last = status.LastTerminationState.Terminated
		switch {
		case status.State.Running != nil:
			c.state.Terminated = &corev1.ContainerStateTerminated{
				ExitCode:    exitCodeLost,
				Reason:      reasonUnknown,
				Message:     "the node stopped while the container was running",
				StartedAt:   status.State.Running.StartedAt,
				FinishedAt:  metav1.NewTime(now),
				ContainerID: status.ContainerID,
			}
			c.attempts = c.restarts + 1
		case status.State.Terminated != nil:
			c.state.Terminated = status.State.Terminated
			c.attempts = c.restarts + 1
		case c.last != nil:
			c.attempts = c.restarts + 1
		}
	}
	l.containers = append(l.containers, c)
}

// willRunAgain reports whether some main container is to be started.
func (l *lifecycle) willRunAgain() bool {
	if l.over {
		return false
	}
	for i := range l.containers {
		c := &l.containers[i]
		if c.kind == mainContainer && (!c.terminated() || l.restartable(c)) {
			return true
		}
	}
	return false
}

// restartable reports whether a terminated container is to be started again.
func (l *lifecycle) restartable(c *containerState) bool {
	policy := l.pod.Spec.RestartPolicy
	switch {
	case c.kind == sidecarContainer:
		return true
	case c.kind == initContainer:
		return !c.succeeded() && policy != corev1.RestartPolicyNever
	case policy == corev1.RestartPolicyNever:
		return false
	case policy == corev1.RestartPolicyOnFailure:
		return !c.succeeded()
	default:
		return true
	}
}

// updated takes the pod's newest version. Deletion begins here; a later version
// may shorten the grace period.
func (l *lifecycle) updated(pod *corev1.Pod, now time.Time) {
	l.pod = pod
	if pod.DeletionTimestamp == nil {
		if finished(pod) && l.ending == nil && !l.over {
			// Somebody else declared it ended, as an eviction does.
			l.ending = &ending{deadline: now.Add(gracePeriod(pod))}
		}
		return
	}
	grace := gracePeriod(pod)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	deadline := now.Add(grace)
	if l.ending == nil {
		l.ending = &ending{deadline: deadline}
	} else if deadline.Before(l.ending.deadline) {
		l.ending.deadline = deadline
	}
}

func gracePeriod(pod *corev1.Pod) time.Duration {
	if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// step decides what to do now.
func (l *lifecycle) step(now time.Time) plan {
	var p plan
	if l.over {
		return p
	}
	l.checkDeadline(now, &p)
	if l.ending != nil {
		l.stop(now, &p)
		return p
	}
	if l.initialized = l.initialize(now, &p); !l.initialized {
		return p
	}
	for i := range l.containers {
		if c := &l.containers[i]; c.kind != initContainer {
			l.keepRunning(i, now, &p)
		}
	}
	if l.mainsEnded() {
		// Nothing is left for the sidecars to serve.
		p.start = nil
		l.ending = &ending{deadline: now.Add(gracePeriod(l.pod))}
		l.stop(now, &p)
	}
	return p
}

// nextLook is when to look at the pod again if nothing happens; zero for never. The volumes of a pod that ends are not
// refreshed any more: their time, once passed, would have it looked at without end.
func (l *lifecycle) nextLook(p plan, refresh time.Time) time.Time {
	if l.over || l.ending != nil {
		return p.wake
	}
	return earlier(p.wake, refresh)
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func (l *lifecycle) checkDeadline(now time.Time, p *plan) {
	seconds := l.pod.Spec.ActiveDeadlineSeconds
	if seconds == nil || l.ending != nil {
		return
	}
	end := l.startedAt.Add(time.Duration(*seconds) * time.Second)
	if now.Before(end) {
		p.wakeAt(end)
		return
	}
	l.ending = &ending{
		deadline: now.Add(gracePeriod(l.pod)),
		reason:   reasonDeadlineExceeded,
		message:  "Pod was active on the node longer than the specified deadline",
	}
}

// initialize brings the init containers up one after another, and reports
// whether the main containers may run.
func (l *lifecycle) initialize(now time.Time, p *plan) bool {
	if l.initialized {
		return true
	}
	for i := range l.containers {
		c := &l.containers[i]
		switch {
		case c.kind == mainContainer:
			return true
		case c.kind == sidecarContainer:
			l.keepRunning(i, now, p)
			if !c.started {
				return false
			}
		case c.succeeded():
		case c.terminated() && !l.restartable(c):
			// A failed init container of a pod that is never restarted.
			l.ending = &ending{deadline: now.Add(gracePeriod(l.pod))}
			l.stop(now, p)
			return false
		default:
			l.keepRunning(i, now, p)
			return false
		}
	}
	return true
}

// keepRunning starts container i if it should run and may be started now.
func (l *lifecycle) keepRunning(i int, now time.Time, p *plan) {
	c := &l.containers[i]
	if c.running() || (c.terminated() && !l.restartable(c)) {
		return
	}
	if ended := c.state.Terminated; ended != nil {
		delay := c.restart.next(ended.FinishedAt.Sub(ended.StartedAt.Time))
		c.retryAt = ended.FinishedAt.Add(delay)
		c.last = ended
		c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason:  reasonCrashLoopBackOff,
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", delay, c.spec.Name, l.pod.Name, l.pod.Namespace, l.pod.UID),
		}}
	}
	if now.Before(c.retryAt) {
		p.wakeAt(c.retryAt)
		if c.state.Waiting != nil && c.state.Waiting.Reason == reasonErrImagePull {
			if shown := c.pulledAt.Add(pullErrorShown); now.Before(shown) {
				p.wakeAt(shown)
			} else {
				c.state.Waiting = &corev1.ContainerStateWaiting{
					Reason:  reasonImagePullBackOff,
					Message: fmt.Sprintf("Back-off pulling image %q: %s: %s", c.spec.Image, reasonErrImagePull, c.state.Waiting.Message),
				}
			}
		}
		return
	}
	p.start = append(p.start, i)
}

// stop ends what runs: the main and init containers at once, then the sidecars
// from the last to the first, all within the grace period.
func (l *lifecycle) stop(now time.Time, p *plan) {
	late := !now.Before(l.ending.deadline)
	servingMains := false
	lastSidecar := -1
	for i := range l.containers {
		c := &l.containers[i]
		switch {
		case !c.running():
		case c.kind == sidecarContainer:
			lastSidecar = i
		default:
			servingMains = true
			l.stopOne(i, late, p)
		}
	}
	switch {
	case lastSidecar >= 0 && late:
		for i := range l.containers {
			if l.containers[i].running() && l.containers[i].kind == sidecarContainer {
				l.stopOne(i, late, p)
			}
		}
	case lastSidecar >= 0 && !servingMains:
		l.stopOne(lastSidecar, late, p)
	}
	if !servingMains && lastSidecar < 0 {
		l.over = true
		p.wake = time.Time{}
		return
	}
	if !late {
		p.wakeAt(l.ending.deadline)
	}
}

func (l *lifecycle) stopOne(i int, late bool, p *plan) {
	c := &l.containers[i]
	if late && !c.killed {
		c.killed = true
		p.kill = append(p.kill, i)
	}
	if !late && !c.signaled {
		c.signaled = true
		p.terminate = append(p.terminate, i)
	}
}

func (l *lifecycle) mainsEnded() bool {
	for i := range l.containers {
		if c := &l.containers[i]; c.kind == mainContainer && (!c.terminated() || l.restartable(c)) {
			return false
		}
	}
	return true
}
