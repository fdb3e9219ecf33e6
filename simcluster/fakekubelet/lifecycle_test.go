package fakekubelet

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func testPod(policy corev1.RestartPolicy, containers ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u"}, Spec: corev1.PodSpec{RestartPolicy: policy}}
	for _, name := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: "i"})
	}
	return pod
}

func withInit(pod *corev1.Pod, sidecar bool, names ...string) *corev1.Pod {
	for _, name := range names {
		c := corev1.Container{Name: name, Image: "i"}
		if sidecar {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	return pod
}

// run steps l at a time and carries the starts out.
func run(l *lifecycle, now time.Time) (started []int, last plan) {
	for {
		last = l.step(now)
		if len(last.start) == 0 {
			return started, last
		}
		for _, i := range last.start {
			l.ran(i, "id", now)
			started = append(started, i)
		}
	}
}

func phaseOf(l *lifecycle) corev1.PodPhase { return podPhase(l) }

func TestRestartPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		policy  corev1.RestartPolicy
		code    int32
		restart bool
		phase   corev1.PodPhase
	}{
		"Never leaves a success":       {corev1.RestartPolicyNever, 0, false, corev1.PodSucceeded},
		"Never leaves a failure":       {corev1.RestartPolicyNever, 1, false, corev1.PodFailed},
		"OnFailure leaves a success":   {corev1.RestartPolicyOnFailure, 0, false, corev1.PodSucceeded},
		"OnFailure restarts a failure": {corev1.RestartPolicyOnFailure, 1, true, corev1.PodRunning},
		"Always restarts a success":    {corev1.RestartPolicyAlways, 0, true, corev1.PodRunning},
		"Always restarts a failure":    {corev1.RestartPolicyAlways, 1, true, corev1.PodRunning},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLifecycle(testPod(c.policy, "a"), epoch)
			run(l, epoch)
			l.exited(0, c.code, reasonError, "", epoch.Add(time.Second))
			started, _ := run(l, epoch.Add(time.Second))
			if restarted := len(started) == 1; restarted != c.restart || l.over == c.restart || phaseOf(l) != c.phase {
				t.Errorf("restarted %v, over %v, phase %s", restarted, l.over, phaseOf(l))
			}
		})
	}
}

// A time that has passed has the pod looked at at once, and again after that.
func TestThePodIsNotLookedAtForVolumesThatAreNotRefreshedAnyMore(t *testing.T) {
	ended := newLifecycle(testPod(corev1.RestartPolicyNever, "a"), epoch)
	run(ended, epoch)
	ended.exited(0, 0, "", "", epoch.Add(time.Second))
	_, last := run(ended, epoch.Add(time.Second))
	if at := ended.nextLook(last, epoch); !at.IsZero() {
		t.Errorf("a pod that has ended is looked at at %v", at)
	}

	pod := testPod(corev1.RestartPolicyNever, "a")
	ending := newLifecycle(pod, epoch)
	_, last = run(ending, epoch)
	if at := ending.nextLook(last, epoch.Add(time.Minute)); !at.Equal(epoch.Add(time.Minute)) {
		t.Errorf("a pod that runs is looked at at %v", at)
	}
	deleted, grace := pod.DeepCopy(), int64(30)
	deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = &metav1.Time{Time: epoch}, &grace
	ending.updated(deleted, epoch)
	_, last = run(ending, epoch)
	if at := ending.nextLook(last, epoch); !at.Equal(epoch.Add(30 * time.Second)) {
		t.Errorf("a pod that is deleted is looked at at %v, not at the end of its grace period", at)
	}
}

func TestCrashLoopBackOff(t *testing.T) {
	l := newLifecycle(testPod(corev1.RestartPolicyAlways, "a"), epoch)
	now := epoch
	run(l, now)
	for i, delay := range []time.Duration{0, 10, 20, 40, 80, 160, 300, 300} {
		now = now.Add(time.Second)
		l.exited(0, 1, reasonError, "", now)
		started, p := run(l, now)
		if delay > 0 {
			if len(started) != 0 || !p.wake.Equal(now.Add(delay*time.Second)) {
				t.Fatalf("crash %d: started %v, wakes at %v, want a wait of %d s", i, started, p.wake.Sub(now), delay)
			}
			if w := l.containers[0].state.Waiting; w == nil || w.Reason != reasonCrashLoopBackOff {
				t.Fatalf("crash %d: state %+v", i, l.containers[0].state)
			}
			now = p.wake
			started, _ = run(l, now)
		}
		if len(started) != 1 || l.containers[0].restarts != int32(i+1) || l.containers[0].last == nil {
			t.Fatalf("crash %d: started %v, restarts %d", i, started, l.containers[0].restarts)
		}
	}
	t.Run("is forgotten after a long run", func(t *testing.T) {
		now = now.Add(11 * time.Minute)
		l.exited(0, 1, reasonError, "", now)
		if started, _ := run(l, now); len(started) != 1 {
			t.Error("the restart had to wait")
		}
	})
}

func TestInitContainers(t *testing.T) {
	t.Run("run one after another before the others", func(t *testing.T) {
		l := newLifecycle(withInit(testPod(corev1.RestartPolicyNever, "main"), false, "one", "two"), epoch)
		for want := range 3 {
			if phase := phaseOf(l); phase != corev1.PodPending {
				t.Fatalf("phase %s before container %d", phase, want)
			}
			started, _ := run(l, epoch)
			if !slices.Equal(started, []int{want}) {
				t.Fatalf("started %v, want %d", started, want)
			}
			l.exited(want, 0, reasonCompleted, "", epoch)
		}
		run(l, epoch)
		if !l.over || phaseOf(l) != corev1.PodSucceeded {
			t.Errorf("over %v, phase %s", l.over, phaseOf(l))
		}
	})
	t.Run("that fail end a pod that is never restarted", func(t *testing.T) {
		l := newLifecycle(withInit(testPod(corev1.RestartPolicyNever, "main"), false, "one"), epoch)
		run(l, epoch)
		l.exited(0, 1, reasonError, "", epoch)
		if started, _ := run(l, epoch); len(started) != 0 || !l.over || phaseOf(l) != corev1.PodFailed {
			t.Errorf("started %v, over %v, phase %s", started, l.over, phaseOf(l))
		}
	})
	t.Run("that are sidecars stay, and end after the main container", func(t *testing.T) {
		l := newLifecycle(withInit(testPod(corev1.RestartPolicyNever, "main"), true, "side"), epoch)
		if started, _ := run(l, epoch); !slices.Equal(started, []int{0, 1}) {
			t.Fatalf("started %v", started)
		}
		l.exited(1, 0, reasonCompleted, "", epoch)
		_, p := run(l, epoch)
		if !slices.Equal(p.terminate, []int{0}) || l.over {
			t.Fatalf("plan %+v, over %v", p, l.over)
		}
		l.exited(0, 143, reasonError, "", epoch)
		run(l, epoch)
		if !l.over || phaseOf(l) != corev1.PodSucceeded {
			t.Errorf("over %v, phase %s", l.over, phaseOf(l))
		}
	})
}

func deleted(pod *corev1.Pod, grace int64) *corev1.Pod {
	pod = pod.DeepCopy()
	at := metav1.NewTime(epoch)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
	return pod
}

func TestDeletion(t *testing.T) {
	t.Run("is a SIGTERM, and a SIGKILL when the grace period is over", func(t *testing.T) {
		pod := testPod(corev1.RestartPolicyAlways, "a")
		l := newLifecycle(pod, epoch)
		run(l, epoch)
		l.updated(deleted(pod, 5), epoch)
		_, p := run(l, epoch)
		if !slices.Equal(p.terminate, []int{0}) || !p.wake.Equal(epoch.Add(5*time.Second)) {
			t.Fatalf("plan %+v", p)
		}
		if _, p = run(l, epoch.Add(4*time.Second)); len(p.terminate)+len(p.kill) != 0 {
			t.Fatalf("plan %+v before the end", p)
		}
		if _, p = run(l, epoch.Add(5*time.Second)); !slices.Equal(p.kill, []int{0}) {
			t.Fatalf("plan %+v at the end", p)
		}
		l.exited(0, 137, reasonError, "", epoch)
		run(l, epoch)
		if !l.over || phaseOf(l) != corev1.PodFailed {
			t.Errorf("over %v, phase %s", l.over, phaseOf(l))
		}
	})
	t.Run("may become more urgent", func(t *testing.T) {
		pod := testPod(corev1.RestartPolicyAlways, "a")
		l := newLifecycle(pod, epoch)
		run(l, epoch)
		l.updated(deleted(pod, 30), epoch)
		l.updated(deleted(pod, 1), epoch)
		if _, p := run(l, epoch.Add(time.Second)); !slices.Equal(p.kill, []int{0}) {
			t.Errorf("plan %+v", p)
		}
	})
	t.Run("of a pod that never ran is over at once", func(t *testing.T) {
		pod := testPod(corev1.RestartPolicyAlways, "a")
		l := newLifecycle(pod, epoch)
		l.updated(deleted(pod, 30), epoch)
		run(l, epoch)
		status := podStatus(l, podAddresses{hostIP: hostIP}, nil, epoch)
		if !l.over || status.Phase != corev1.PodFailed || status.ContainerStatuses[0].State.Terminated.Reason != reasonStatusUnknown {
			t.Errorf("over %v, status %+v", l.over, status)
		}
	})
}

func TestAPodFailsAtItsActiveDeadline(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "a")
	seconds := int64(7)
	pod.Spec.ActiveDeadlineSeconds = &seconds
	l := newLifecycle(pod, epoch)
	if _, p := run(l, epoch); !p.wake.Equal(epoch.Add(7 * time.Second)) {
		t.Fatalf("wakes at %v", p.wake)
	}
	if _, p := run(l, epoch.Add(7*time.Second)); !slices.Equal(p.terminate, []int{0}) {
		t.Fatalf("plan %+v", p)
	}
	l.exited(0, 0, reasonCompleted, "", epoch)
	run(l, epoch.Add(8*time.Second))
	status := podStatus(l, podAddresses{hostIP: hostIP}, nil, epoch)
	if status.Phase != corev1.PodFailed || status.Reason != reasonDeadlineExceeded {
		t.Errorf("phase %s, reason %s", status.Phase, status.Reason)
	}
}

func TestAConditionIsAsOldAsItsLastChange(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "a")
	l := newLifecycle(pod, epoch)
	ready := func(after time.Duration) corev1.PodCondition {
		pod.Status = podStatus(l, podAddresses{hostIP: hostIP, podIP: "127.0.1.1"}, pod.Status.Conditions, epoch.Add(after))
		at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
		return pod.Status.Conditions[at]
	}
	if c := ready(0); c.Status != corev1.ConditionFalse || !c.LastTransitionTime.Time.Equal(epoch) {
		t.Fatalf("before its container runs: %+v", c)
	}
	run(l, epoch.Add(5*time.Second))
	for _, after := range []time.Duration{5 * time.Second, 9 * time.Second} {
		if c := ready(after); c.Status != corev1.ConditionTrue || !c.LastTransitionTime.Time.Equal(epoch.Add(5*time.Second)) {
			t.Errorf("after %s: %+v; want ready since 5s", after, c)
		}
	}
}

func TestReboot(t *testing.T) {
	ran := func(policy corev1.RestartPolicy) *corev1.Pod {
		pod := testPod(policy, "a")
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(epoch)}}}}
		return pod
	}
	t.Run("fails what is never restarted", func(t *testing.T) {
		l := newLifecycle(ran(corev1.RestartPolicyNever), epoch)
		if started, _ := run(l, epoch); len(started) != 0 || phaseOf(l) != corev1.PodFailed {
			t.Errorf("started %v, phase %s", started, phaseOf(l))
		}
	})
	t.Run("restarts the others", func(t *testing.T) {
		l := newLifecycle(ran(corev1.RestartPolicyOnFailure), epoch)
		started, _ := run(l, epoch)
		c := l.containers[0]
		if len(started) != 1 || c.restarts != 3 || c.last.ExitCode != exitCodeLost || phaseOf(l) != corev1.PodRunning {
			t.Errorf("started %v, container %+v", started, c)
		}
	})
	t.Run("leaves what has ended", func(t *testing.T) {
		pod := ran(corev1.RestartPolicyAlways)
		pod.Status.Phase = corev1.PodSucceeded
		l := newLifecycle(pod, epoch)
		if started, _ := run(l, epoch); len(started) != 0 || phaseOf(l) != corev1.PodSucceeded {
			t.Errorf("started %v, phase %s", started, phaseOf(l))
		}
	})
}

func TestAnImageThatCannotBeHadIsTriedAgainAfterABackOff(t *testing.T) {
	l := newLifecycle(testPod(corev1.RestartPolicyAlways, "a"), epoch)
	if p := l.step(epoch); !slices.Equal(p.start, []int{0}) {
		t.Fatalf("plan %+v", p)
	}
	l.notPulled(0, "no such image", epoch)
	p := l.step(epoch)
	if l.containers[0].state.Waiting.Reason != reasonErrImagePull || len(p.start) != 0 {
		t.Fatalf("state %+v, plan %+v", l.containers[0].state, p)
	}
	p = l.step(p.wake)
	if l.containers[0].state.Waiting.Reason != reasonImagePullBackOff || !p.wake.Equal(epoch.Add(initialBackOff)) {
		t.Fatalf("state %+v, plan %+v", l.containers[0].state, p)
	}
	if p = l.step(p.wake); !slices.Equal(p.start, []int{0}) {
		t.Errorf("plan %+v", p)
	}
}

// Whatever happens, nothing is started after the end began, and every pod that is
// deleted ends.
func TestEveryDeletedPodEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}).Draw(t, "policy")
		pod := withInit(testPod(policy, "a", "b"), rapid.Bool().Draw(t, "sidecar"), "init")
		l := newLifecycle(pod, epoch)
		now := epoch
		events := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 30).Draw(t, "events")
		for _, event := range events {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
			_, p := run(l, now)
			for _, i := range p.kill {
				l.exited(i, 137, reasonError, "", now)
			}
			if event < 3 && l.containers[event].running() {
				l.exited(event, int32(rapid.IntRange(0, 1).Draw(t, "code")), "x", "", now)
			}
		}
		l.updated(deleted(pod, 5), now)
		for range 20 {
			started, p := run(l, now)
			if len(started) > 0 {
				t.Fatalf("started %v after the deletion", started)
			}
			for _, i := range p.kill {
				l.exited(i, 137, reasonError, "", now)
			}
			now = now.Add(5 * time.Second)
		}
		if !l.over {
			t.Fatalf("not over: %+v", l.containers)
		}
		if phase := phaseOf(l); phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			t.Fatalf("phase %s", phase)
		}
	})
}
