package forecast_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

var (
	firstSeed = flag.Uint64("forecast.seed", 1, "the first seed of the drawn scenarios")
	seeds     = flag.Int("forecast.seeds", 50, "how many scenarios are drawn")
)

// TestThePlansForecastHappens draws scenarios and plays each on nodes of its own. A seed that fails is played
// again by: go test ./forecast -run WhatThenHappens -forecast.seed=N -forecast.seeds=1.
func TestThePlansForecastHappens(t *testing.T) {
	makeClasses(t)
	var next atomic.Int64
	for lane := range lanes {
		t.Run(laneName(lane), func(t *testing.T) {
			t.Parallel()
			terminal := providertest.NewTerminal(t)
			for {
				i := int(next.Add(1)) - 1
				if i >= *seeds {
					return
				}
				d := draw(*firstSeed + uint64(i)) //nolint:gosec // not negative
				t.Run(fmt.Sprintf("seed %d", d.seed), func(t *testing.T) { play(t, terminal, laneName(lane), d) })
			}
		})
	}
}

// play sets a scenario up, lets terraform plan and apply the job, waits until nothing changes, and compares.
func play(t *testing.T, terminal *providertest.Terminal, lane string, d drawn) {
	ns := fmt.Sprintf("seed-%d", d.seed)
	s := &stage{t: t, ns: ns, lane: lane, d: d}
	s.setUp()
	t.Cleanup(s.tearDown)
	before, admitted := s.residents(), s.admitted()
	terminal.Directory = t.TempDir()
	printed, code := terminal.Run(t, asAdmin(d.config(ns, lane)), "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("%s\napply exited with %d:\n%s", d, code, printed)
	}
	f := parsePrinted(t, printed, ns+"/job")
	nodes := s.rest(f)
	if wrong := f.differs(s.evicted(before, admitted), nodes); wrong != "" {
		t.Errorf("%s\n%s\n%s", d, f.text, wrong)
	}
}

// stage is the cluster and the namespace of one scenario.
type stage struct {
	t        *testing.T
	ns, lane string
	d        drawn
}

// makeClasses makes them once for all tests.
func makeClasses(t *testing.T) {
	t.Helper()
	for name, value := range classes {
		_, err := client(t).SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		_, err = queues(t).WorkloadPriorityClasses().Create(t.Context(), &kueue.WorkloadPriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// setUp creates the objects that exist before the job, and waits until nothing changes.
func (s *stage) setUp() {
	ctx, t, kube := s.t.Context(), s.t, client(s.t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("setting up %s: %v", s.d, err)
		}
	}
	_, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}, metav1.CreateOptions{})
	must(err)
	eventually(t, "Kueue's webhooks know the namespace", func(ctx context.Context) (string, bool) {
		template := s.template(drawnPod{cpu: "1"})
		_, err := kube.CoreV1().Pods(s.ns).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Spec: template.Spec}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), err == nil
	})
	if s.d.kind == aQueuedTask {
		s.makeQueue(must)
	}
	if s.d.budget { // as it is made, its status allows no disruption, which is what the scheduler looks at
		_, err := kube.PolicyV1().PodDisruptionBudgets(s.ns).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "guard"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "true"}}},
		}, metav1.CreateOptions{})
		must(err)
	}
	for _, p := range s.d.pods {
		template := s.template(p)
		if !p.owned {
			_, err := kube.CoreV1().Pods(s.ns).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: template.Labels}, Spec: template.Spec}, metav1.CreateOptions{})
			must(err)
			continue
		}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: map[string]string{"of": "scenario"}}, Spec: batchv1.JobSpec{Template: template, BackoffLimit: new(int32(100))}}
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		job.Spec.PodReplacementPolicy = new(batchv1.Failed)
		// A pod that was taken away is no failure, and is made again at once.
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		}}}
		if p.queued {
			job.Labels = map[string]string{controllerconstants.QueueLabel: "queue", controllerconstants.WorkloadPriorityClassLabel: p.class}
			job.Spec.Suspend = new(true)
		}
		_, err := kube.BatchV1().Jobs(s.ns).Create(ctx, job, metav1.CreateOptions{})
		must(err)
	}
	eventually(t, "the scenario's beginning", s.settled)
}

// makeQueue makes a queue for the lane's nodes.
func (s *stage) makeQueue(must func(error)) {
	ctx, q := s.t.Context(), queues(s.t)
	_, err := q.ResourceFlavors().Create(ctx, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: s.ns}, Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"lane": s.lane}}}, metav1.CreateOptions{})
	must(err)
	_, err = q.ClusterQueues().Create(ctx, &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: s.ns}, Spec: kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{},
		Preemption:        &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
		ResourceGroups: []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU}, Flavors: []kueue.FlavorQuotas{{
			Name: kueue.ResourceFlavorReference(s.ns), Resources: []kueue.ResourceQuota{{Name: corev1.ResourceCPU, NominalQuota: *resource.NewQuantity(int64(s.d.quota), resource.DecimalSI)}},
		}}}},
	}}, metav1.CreateOptions{})
	must(err)
	_, err = q.LocalQueues(s.ns).Create(ctx, &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "queue"}, Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(s.ns)}}, metav1.CreateOptions{})
	must(err)
}

func (s *stage) template(p drawnPod) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"guarded": strconv.FormatBool(p.guarded)}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"lane": s.lane}, Tolerations: []corev1.Toleration{{Key: "lane", Operator: corev1.TolerationOpExists}},
			PriorityClassName: p.class, TerminationGracePeriodSeconds: new(int64(3)),
			Containers: []corev1.Container{{
				Name: "main", Image: "host", Command: []string{"sleep", "100000"},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(p.cpu)}},
			}},
		},
	}
}

// settled holds when every Job has its pod, or waits in its queue, and every pod runs or has been found to have no
// room.
func (s *stage) settled(ctx context.Context) (string, bool) {
	pods, err := client(s.t).CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error(), false
	}
	owned := map[string]bool{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		owned[pod.Labels[batchv1.JobNameLabel]] = true
		if pod.DeletionTimestamp != nil || !running(pod) && !roomless(pod) {
			return fmt.Sprintf("pod %s is %s", pod.Name, pod.Status.Phase), false
		}
	}
	for _, p := range s.d.pods {
		switch {
		case !p.owned || owned[p.name]:
		case p.queued && s.waitsInQueue(ctx, p.name):
		default:
			return p.name + " has no pod", false
		}
	}
	return "", true
}

func running(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning
}

// roomless reports whether the scheduler has failed to place a pod.
func roomless(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.Status.NominatedNodeName == "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// waitsInQueue reports whether a Job's workload got no quota, or comes after one that got none.
func (s *stage) waitsInQueue(ctx context.Context, job string) bool {
	list, err := queues(s.t).Workloads(s.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	waits, tried := false, false
	for i := range list.Items {
		w := &list.Items[i]
		c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		tried = tried || c != nil && c.Status == metav1.ConditionFalse
		if slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Name == job }) {
			waits = w.Status.Admission == nil
		}
	}
	return waits && tried
}

// residents are the pods on the lane's nodes before the job, by UID.
func (s *stage) residents() map[string]corev1.Pod {
	pods, err := client(s.t).CoreV1().Pods(s.ns).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string]corev1.Pod{}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" {
			found[string(pod.UID)] = pod
		}
	}
	return found
}

// admitted are the workloads that hold quota before the job.
func (s *stage) admitted() map[string]bool {
	if s.d.kind != aQueuedTask {
		return nil
	}
	list, err := queues(s.t).Workloads(s.ns).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	admitted := map[string]bool{}
	for i := range list.Items {
		admitted[list.Items[i].Name] = list.Items[i].Status.Admission != nil
	}
	return admitted
}

// rest waits until the job's pods have the places that they will have, and returns them by role.
func (s *stage) rest(f printedForecast) map[string]string {
	var nodes map[string]string
	wanted := len(f.starts) + len(f.waits)
	eventually(s.t, fmt.Sprintf("%s\nto rest after\n%s", s.d, f.text), func(ctx context.Context) (string, bool) {
		pods, err := client(s.t).CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		nodes = map[string]string{}
		seen, moving := 0, s.lacking(ctx, pods.Items)
		for i := range pods.Items {
			pod := &pods.Items[i]
			role := roleOf(pod)
			switch {
			case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed && role != "":
				moving = fmt.Sprintf("pod %s is going", pod.Name)
			case pod.Spec.NodeName == "" && !roomless(pod):
				moving = fmt.Sprintf("pod %s is not decided about", pod.Name)
			}
			if role != "" {
				seen++
				if pod.Spec.NodeName != "" {
					nodes[role] = pod.Spec.NodeName
				}
			}
		}
		switch {
		case moving != "":
			return moving, false
		case f.queued:
			return "the task is not in its queue", s.waitsInQueue(ctx, "job")
		default: // what is made by a master that waits is not there
			return fmt.Sprintf("%d of %d pods are there", seen, wanted), seen == wanted || seen > 0 && len(f.waits) > 0 && len(nodes) >= len(f.starts)
		}
	})
	return nodes
}

// lacking names a Job whose pod is missing, though its queue has not suspended the Job.
func (s *stage) lacking(ctx context.Context, pods []corev1.Pod) string {
	for _, p := range s.d.pods {
		isIts := func(pod corev1.Pod) bool {
			return pod.Labels[batchv1.JobNameLabel] == p.name && pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil
		}
		if p.owned && !slices.ContainsFunc(pods, isIts) && (!p.queued || !s.waitsInQueue(ctx, p.name)) {
			return "Job " + p.name + " has no pod"
		}
	}
	return ""
}

// roleOf is the name of a pod of the job in a forecast; "" for any other pod.
func roleOf(pod *corev1.Pod) string {
	index := pod.Labels[batchv1.JobCompletionIndexAnnotation]
	switch {
	case pod.Labels[task.LabelTask] != "" && index != "":
		return "pod " + index
	case pod.Labels[task.LabelTask] != "":
		return "the pod"
	case pod.Labels[trainingjob.LabelRole] == trainingjob.RoleWorker:
		return "worker " + pod.Labels[trainingjob.LabelWorkerID]
	default:
		return pod.Labels[trainingjob.LabelRole]
	}
}

// evicted are the pods that have lost their nodes since, and workloads instead of their pods.
func (s *stage) evicted(before map[string]corev1.Pod, admitted map[string]bool) []string {
	ctx, t := s.t.Context(), s.t
	pods, err := client(t).CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	gone := maps.Clone(before)
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			delete(gone, string(pod.UID))
		}
	}
	var evicted []string
	workloads := map[string]string{} // of evicted Jobs, by the Job's name
	if s.d.kind == aQueuedTask {
		list, err := queues(t).Workloads(s.ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if w := &list.Items[i]; admitted[w.Name] && meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted) {
				workloads[w.OwnerReferences[0].Name] = "workload " + s.ns + "/" + w.Name
			}
		}
		evicted = slices.Collect(maps.Values(workloads))
	}
	for _, pod := range gone {
		if workloads[pod.Labels[batchv1.JobNameLabel]] == "" {
			evicted = append(evicted, s.ns+"/"+pod.Name)
		}
	}
	return evicted
}

// tearDown removes everything at once, and waits until the lane is free.
func (s *stage) tearDown() {
	ctx := context.WithoutCancel(s.t.Context())
	kube := client(s.t)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground)}
	if err := kube.BatchV1().Jobs(s.ns).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil {
		s.t.Error(err)
	}
	if err := kube.CoreV1().Namespaces().Delete(ctx, s.ns, metav1.DeleteOptions{}); err != nil {
		s.t.Error(err)
	}
	if s.d.kind == aQueuedTask {
		if err := queues(s.t).ClusterQueues().Delete(ctx, s.ns, metav1.DeleteOptions{}); err != nil {
			s.t.Error(err)
		}
	}
	deadline, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	err := await.Until(deadline, "the pods of "+s.ns+" are gone", pause, func(ctx context.Context) error {
		if err := kube.CoreV1().Pods(s.ns).DeleteCollection(ctx, now, metav1.ListOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		pods, err := kube.CoreV1().Pods(s.ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d are left (%s)", len(pods.Items), strings.TrimSpace(s.d.String()))
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}
