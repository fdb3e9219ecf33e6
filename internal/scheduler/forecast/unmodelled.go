package forecast

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
)

// settings are Kueue's configuration as it is known: what could not be read has Kueue's defaults.
func (q *Queues) settings() *configuration.Configuration {
	if q.Configuration == nil {
		return &configuration.Configuration{}
	}
	return q.Configuration
}

// known reports whether the whole configuration of Kueue is known.
func (q *Queues) known() bool { return q.Configuration != nil && q.ConfigurationUnread == "" }

// engineConfig is what the engine has to know of Kueue's configuration.
func (q *Queues) engineConfig() quota.Config {
	settings := q.settings()
	config := quota.Config{
		NodesUnknown: q.TopologiesUnread != "", Resources: settings.Resources, IgnoreUndeclared: settings.IgnoresUndeclared(),
		PriorityBoost: settings.Gate("PriorityBoost"), LateKeepPlace: settings.KeepsPlace(),
	}
	switch {
	case settings.SharesFairly():
		config.FairSharing = &quota.FairSharing{}
		for _, strategy := range settings.FairSharing.PreemptionStrategies {
			config.FairSharing.Strategies = append(config.FairSharing.Strategies, quota.PreemptionStrategy(strategy))
		}
	case q.Configuration == nil && slices.ContainsFunc(q.ClusterQueues, func(q *kueue.ClusterQueue) bool { return q.Status.FairSharing != nil }):
		// Not every account may read the configuration; what Kueue writes shows fair sharing.
		config.FairSharing = &quota.FairSharing{}
	}
	return config
}

// noteUnmodelled notes features of Kueue that the engine does not model and that may change the decision about a
// workload.
func (q *queues) noteUnmodelled(workload types.NamespacedName, part Part, a admission) {
	others := slices.ContainsFunc(q.engine.Pending(a.queue), func(name types.NamespacedName) bool { return name != workload })
	contested := others || !a.admitted || len(a.evicted) > 0
	q.noteSettings()
	if q.fair && q.objects.Configuration == nil && (!a.admitted || len(a.evicted) > 0) {
		q.notes.add(FairSharing, "", "Kueue shares fairly here, and is taken to preempt by its default strategies")
	}
	q.noteUsage(workload, a)
	if contested && !q.objects.known() {
		q.noteBoosts()
	}
	if contested {
		q.noteSlices(a.queue)
	}
	if slices.ContainsFunc(part.Pods, func(pod Pod) bool { return len(pod.Spec.ResourceClaims) > 0 }) {
		q.notes.add(DeviceQuota, "ClusterQueue "+a.queue, "Kueue counts devices of resource claims as its deviceClassMappings say, and rejects a workload "+
			"with claims of other classes; the forecast does not count them")
	}
	if a.admitted {
		q.noteNotReady(workload)
	}
	q.noteTopologies(a, others)
}

// noteSettings notes what is not known of Kueue's configuration, and what of it the engine does not follow.
func (q *queues) noteSettings() {
	if unread := q.objects.ConfigurationUnread; unread != "" {
		q.notes.add(KueueSettings, "", "Kueue's configuration is taken to be the default: %s", unread)
	}
	if gates := q.objects.settings().Untested(); len(gates) > 0 {
		q.notes.add(KueueSettings, "feature gates", "Kueue's feature gates are not the default, which the forecast does not model: %s", strings.Join(gates, ", "))
	}
}

// noteUsage notes that the order of workloads depends on what their LocalQueues have used. Between workloads of one
// LocalQueue it does not.
func (q *queues) noteUsage(workload types.NamespacedName, a admission) {
	if q.objects.known() && q.objects.settings().UsageBased() == nil {
		return
	}
	at := slices.IndexFunc(q.objects.ClusterQueues, func(c *kueue.ClusterQueue) bool { return c.Name == a.queue })
	if at < 0 {
		return
	}
	scope := q.objects.ClusterQueues[at].Spec.AdmissionScope
	if scope == nil || scope.AdmissionMode != kueue.UsageBasedAdmissionFairSharing {
		return
	}
	own := q.localQueueOf(workload)
	if q.waitsElsewhere(a.queue, own) || slices.ContainsFunc(a.evicted, func(w evictedWorkload) bool { return q.localQueueOf(w.name) != own }) {
		q.notes.add(UsageBasedOrder, "ClusterQueue "+a.queue, "ClusterQueue %s orders workloads by what their LocalQueues have used, which the forecast does not compute", a.queue)
	}
}

// waitsElsewhere reports whether a workload has no quota of a ClusterQueue when the planned ones come, and is of another
// LocalQueue than the given one, or is planned for one.
func (q *queues) waitsElsewhere(clusterQueue string, own types.NamespacedName) bool {
	leads := func(name types.NamespacedName) bool {
		of := q.objects.clusterQueueOf(name.Namespace, name.Name)
		return name != own && of != nil && of.Name == clusterQueue
	}
	for name, w := range q.known {
		if w.Status.Admission == nil && leads(q.localQueueOf(name)) {
			return true
		}
	}
	for name := range q.planned {
		if leads(q.localQueueOf(name)) {
			return true
		}
	}
	return false
}

// localQueueOf is the LocalQueue of a workload.
func (q *queues) localQueueOf(name types.NamespacedName) types.NamespacedName {
	if planned, found := q.planned[name]; found {
		return types.NamespacedName{Namespace: name.Namespace, Name: planned.part.Queue}
	}
	if w := q.known[name]; w != nil {
		return types.NamespacedName{Namespace: name.Namespace, Name: string(w.Spec.QueueName)}
	}
	return types.NamespacedName{}
}

// noteBoosts notes boosts, where it is not known whether they count.
func (q *queues) noteBoosts() {
	for _, w := range q.objects.Workloads {
		if boost := w.Annotations[controllerconstants.PriorityBoostAnnotationKey]; boost != "" && boost != "0" {
			q.notes.add(PriorityBoost, "Workload "+w.Namespace+"/"+w.Name, "workload %s has a priority boost of %q, which Kueue adds to its priority if its feature gate PriorityBoost is on",
				shortName(w.Namespace, w.Name), boost)
		}
	}
}

// noteSlices notes workloads of a ClusterQueue that wait to take over the quota and the places of their predecessor: the
// engine has them request all the places again.
func (q *queues) noteSlices(clusterQueue string) {
	for _, name := range q.engine.Pending(clusterQueue) {
		if w := q.known[name]; w != nil && w.Annotations[quota.SliceReplacementAnnotation] != "" && placesPods(w) {
			q.notes.add(WorkloadSlices, "Workload "+name.String(), "workload %s enlarges an elastic job whose pods are placed by a topology: Kueue keeps the places of the pods that run, which the forecast does not model",
				shortName(name.Namespace, name.Name))
		}
	}
}

// placesPods reports whether a workload asks for a topology.
func placesPods(w *kueue.Workload) bool {
	return slices.ContainsFunc(w.Spec.PodSets, func(s kueue.PodSet) bool { return s.TopologyRequest != nil })
}

// noteNotReady notes the workloads whose pods Kueue waits for before it admits another.
func (q *queues) noteNotReady(workload types.NamespacedName) {
	if !q.objects.settings().BlocksAdmission() {
		return
	}
	const text = "Kueue admits a workload only when the pods of all admitted ones are ready (blockAdmission); those of %s are not"
	for name, w := range q.known {
		status := &w.Status
		if status.Admission != nil && !meta.IsStatusConditionTrue(status.Conditions, kueue.WorkloadPodsReady) {
			q.notes.add(ReadyTimeout, "Workload "+name.String(), text, shortName(name.Namespace, name.Name))
		}
	}
	for name, planned := range q.planned {
		if name != workload {
			q.notes.add(ReadyTimeout, "Workload "+name.String(), text, planned.job)
		}
	}
}

// noteUnmanaged notes jobs without a queue that Kueue is configured to suspend.
func (f *forecast) noteUnmanaged() {
	if f.snapshot.Queues == nil || !f.snapshot.Queues.settings().ManageJobsWithoutQueueName {
		return
	}
	for _, job := range f.jobs {
		if !job.Queued() && !slices.Contains(unmanaged, job.Key().Namespace) {
			f.notes.add(KueueSettings, job.String(), "Kueue manages jobs without a queue here (manageJobsWithoutQueueName), and may keep %s from starting", job)
		}
	}
}
