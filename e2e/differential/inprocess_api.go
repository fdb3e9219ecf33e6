package differential

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clienttesting "k8s.io/client-go/testing"
)

// bind does what the API server and then a kubelet do with a binding.
func (p *process) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*corev1.Binding)
	return true, binding, p.change(binding.Namespace, binding.Name, func(pod *corev1.Pod) {
		pod.Spec.NodeName = binding.Target.Name
		pod.Status.NominatedNodeName = ""
		pod.Status.Phase = corev1.PodRunning
		started := metav1.NewTime(pod.CreationTimestamp.Add(4 * time.Hour))
		pod.Status.StartTime = &started
	})
}

// delete does what the API server does with a pod that runs: it marks it, and a kubelet stops it by and by.
func (p *process) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	namespace, name := action.GetNamespace(), action.(clienttesting.DeleteAction).GetName()
	err := p.change(namespace, name, func(pod *corev1.Pod) {
		at, grace := metav1.NewTime(epoch.Add(5*time.Hour)), int64(30)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
		p.deleted = append(p.deleted, nameOf(pod).String())
	})
	return true, nil, err
}

// patch does what the API server does with a change of a pod's status.
func (p *process) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	var patched *corev1.Pod
	var problem error
	err := p.change(patch.GetNamespace(), patch.GetName(), func(pod *corev1.Pod) {
		before, err := json.Marshal(pod)
		if err != nil {
			problem = err
			return
		}
		after, err := strategicpatch.StrategicMergePatch(before, patch.GetPatch(), pod)
		if err != nil {
			problem = err
			return
		}
		changed := corev1.Pod{}
		if problem = json.Unmarshal(after, &changed); problem == nil {
			*pod = changed
			patched = pod.DeepCopy()
		}
	})
	return true, patched, errors.Join(problem, err)
}

// change changes a pod, in the API and in the scheduler's cache.
func (p *process) change(namespace, name string, change func(*corev1.Pod)) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	i := p.lookUp(namespace, name)
	if i < 0 { // it is gone, and the scheduler's message about it comes too late
		return apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	pod := p.pods[i]
	change(pod)
	pod.ResourceVersion = p.nextVersion()
	return p.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod.DeepCopy(), namespace)
}

// find is called with the mutex held.
func (p *process) find(namespace, name string) *corev1.Pod { return p.pods[p.index(namespace, name)] }

func (p *process) index(namespace, name string) int {
	i := p.lookUp(namespace, name)
	if i < 0 {
		panic("differential: the scheduler speaks of a pod that there is not: " + namespace + "/" + name)
	}
	return i
}

// lookUp is the index of a pod; -1 if there is none.
func (p *process) lookUp(namespace, name string) int {
	return slices.IndexFunc(p.pods, func(pod *corev1.Pod) bool { return pod.Namespace == namespace && pod.Name == name })
}
