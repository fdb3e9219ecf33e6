package fakekubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type containerKind int

const (
	initContainer containerKind = iota
	sidecarContainer
	mainContainer
)

// A containerState is one container of a pod: what its status will say, and
// when what is to be done with it.
type containerState struct {
	spec *corev1.Container
	kind containerKind

	id       string // of the last start, as the status has it
	state    corev1.ContainerState
	last     *corev1.ContainerStateTerminated // the run before
	restarts int32
	started  bool // at least once in this life of the pod
	attempts int32

	restart  backOff
	pull     backOff
	retryAt  time.Time // no start before
	pulledAt time.Time // when the image was found missing
	signaled bool      // SIGTERM was sent to this run
	killed   bool      // SIGKILL too
}

func (c *containerState) running() bool    { return c.state.Running != nil }
func (c *containerState) terminated() bool { return c.state.Terminated != nil }
func (c *containerState) succeeded() bool  { return c.terminated() && c.state.Terminated.ExitCode == 0 }

// Reasons as a kubelet and its container runtime write them.
const (
	reasonCompleted         = "Completed"
	reasonError             = "Error"
	reasonOOMKilled         = "OOMKilled"
	reasonStartError        = "StartError"
	reasonUnknown           = "Unknown"
	reasonStatusUnknown     = "ContainerStatusUnknown"
	reasonErrImagePull      = "ErrImagePull"
	reasonErrImageNever     = "ErrImageNeverPull"
	reasonImagePullBackOff  = "ImagePullBackOff"
	reasonConfigError       = "CreateContainerConfigError"
	reasonCreateError       = "CreateContainerError"
	reasonCrashLoopBackOff  = "CrashLoopBackOff"
	reasonContainerCreating = "ContainerCreating"
	reasonPodInitializing   = "PodInitializing"
	reasonDeadlineExceeded  = "DeadlineExceeded"
)

// Exit codes that no process gave.
const (
	exitCodeNotStarted = 128 // runc's for a command that could not be executed
	exitCodeLost       = 255 // containerd's for a container that died with its machine
	exitCodeNeverRan   = 137 // the kubelet's for a container without a status at its pod's end
)

// Times of a kubelet (v1.36 with default settings).
const (
	initialBackOff = 10 * time.Second
	maximumBackOff = 5 * time.Minute
	// A container that ran for twice the maximum is forgiven its earlier crashes.
	backOffForgottenAfter = 2 * maximumBackOff
	// A missing reference is looked up again when the object appears, and after
	// this long in case of other trouble.
	configRetry = 5 * time.Second
	// How long ErrImagePull is shown before it becomes ImagePullBackOff.
	pullErrorShown = time.Second
)

// A backOff grows with every use, as the kubelet's do: none at first, then 10 s
// doubling to 5 min.
type backOff struct{ last time.Duration }

// next returns how long to wait after a failure, given how long things went
// well before it.
func (b *backOff) next(ranFor time.Duration) time.Duration {
	if ranFor > backOffForgottenAfter {
		b.last = 0
	}
	current := b.last
	b.last = min(max(initialBackOff, 2*b.last), maximumBackOff)
	return current
}

// attempt is the number of container i's next run, from 0; its log has this name.
func (l *lifecycle) attempt(i int) int32 { return l.containers[i].attempts }

// ran notes that container i was started.
func (l *lifecycle) ran(i int, id string, now time.Time) {
	c := &l.containers[i]
	c.id, c.started, c.signaled, c.killed = id, true, false, false
	c.restarts = c.attempts
	c.attempts++
	c.pull = backOff{}
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
}

// exited notes that container i's process ended, or never began (StartError).
func (l *lifecycle) exited(i int, code int32, reason, message string, now time.Time) {
	c := &l.containers[i]
	began := metav1.NewTime(now)
	if c.state.Running != nil {
		began = c.state.Running.StartedAt
	}
	c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:    code,
		Reason:      reason,
		Message:     message,
		StartedAt:   began,
		FinishedAt:  metav1.NewTime(now),
		ContainerID: c.id,
	}}
}

// notPulled notes that container i's image cannot be had.
func (l *lifecycle) notPulled(i int, message string, now time.Time) {
	c := &l.containers[i]
	reason := reasonErrImagePull
	if pullPolicyNever(c.spec) {
		reason = reasonErrImageNever
	}
	c.pulledAt = now
	c.retryAt = now.Add(max(initialBackOff, c.pull.next(0)))
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// notCreated notes that container i cannot be made for now, for one of the
// reasons CreateContainerConfigError and CreateContainerError.
func (l *lifecycle) notCreated(i int, reason, message string, now time.Time) {
	c := &l.containers[i]
	c.retryAt = now.Add(configRetry)
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// referenceChanged lets containers that wait for a config map or secret try again.
func (l *lifecycle) referenceChanged() {
	for i := range l.containers {
		if w := l.containers[i].state.Waiting; w != nil && w.Reason == reasonConfigError {
			l.containers[i].retryAt = time.Time{}
		}
	}
}
