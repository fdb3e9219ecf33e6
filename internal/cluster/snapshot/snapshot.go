// Package snapshot reads a cluster for a forecast, with few cheap requests, all at the same time: one LIST for each
// kind of object, answered from the API server's cache, without pods that have ended. Its error names every missing
// permission that a forecast requires. Package forecast interprets the objects.
package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// NotEnded selects, by their fields, the pods that hold what they request, or wait for it.
const NotEnded = "status.phase!=Succeeded,status.phase!=Failed"

// ErrNoKueue means that the cluster does not know Kueue's kinds of objects.
var ErrNoKueue = errors.New("the cluster has no Kueue")

// ForbiddenError reports what may not be read.
type ForbiddenError struct {
	Verbs []string // "list pods", "list clusterqueues.kueue.x-k8s.io"
}

func (e *ForbiddenError) Error() string {
	return "not allowed: " + strings.Join(e.Verbs, ", ") + " (in the whole cluster)"
}

// Read reads nodes, pods and what decides about them. It fails where nodes, pods or priority classes cannot be read;
// what a forecast can go without is named in Unread.
func Read(ctx context.Context, client *cluster.Client) (*forecast.Snapshot, error) {
	s := &forecast.Snapshot{AsOf: time.Now(), Jobs: map[types.NamespacedName]forecast.TrainingJob{}}
	kube := client.Kubernetes()
	l := &lists{}
	list(ctx, client, l, "list nodes", kube.CoreV1().Nodes(), "", &s.Nodes)
	list(ctx, client, l, "list pods", kube.CoreV1().Pods(""), NotEnded, &s.Pods)
	list(ctx, client, l, "list priorityclasses.scheduling.k8s.io", kube.SchedulingV1().PriorityClasses(), "", &s.PriorityClasses)
	optional(ctx, client, l, forecast.Budgets, "list poddisruptionbudgets.policy", kube.PolicyV1().PodDisruptionBudgets(""), &s.Budgets)
	optional(ctx, client, l, forecast.Namespaces, "list namespaces", kube.CoreV1().Namespaces(), &s.Namespaces)
	optional(ctx, client, l, forecast.LimitRanges, "list limitranges", kube.CoreV1().LimitRanges(""), &s.LimitRanges)
	optional(ctx, client, l, forecast.ResourceQuotas, "list resourcequotas", kube.CoreV1().ResourceQuotas(""), &s.Quotas)
	optional(ctx, client, l, forecast.RuntimeClasses, "list runtimeclasses.node.k8s.io", kube.NodeV1().RuntimeClasses(), &s.RuntimeClasses)
	optional(ctx, client, l, forecast.Services, "list services", kube.CoreV1().Services(""), &s.Services)
	optional(ctx, client, l, forecast.Replications, "list replicationcontrollers", kube.CoreV1().ReplicationControllers(""), &s.ReplicationControllers)
	optional(ctx, client, l, forecast.ReplicaSets, "list replicasets.apps", kube.AppsV1().ReplicaSets(""), &s.ReplicaSets)
	optional(ctx, client, l, forecast.StatefulSets, "list statefulsets.apps", kube.AppsV1().StatefulSets(""), &s.StatefulSets)
	optional(ctx, client, l, forecast.DeviceClasses, "list deviceclasses.resource.k8s.io", kube.ResourceV1().DeviceClasses(), &s.Devices.Classes)
	optional(ctx, client, l, forecast.ResourceSlices, "list resourceslices.resource.k8s.io", kube.ResourceV1().ResourceSlices(), &s.Devices.Slices)
	optional(ctx, client, l, forecast.ResourceClaims, "list resourceclaims.resource.k8s.io", kube.ResourceV1().ResourceClaims(""), &s.Devices.Claims)
	optional(ctx, client, l, forecast.ClaimTemplates, "list resourceclaimtemplates.resource.k8s.io", kube.ResourceV1().ResourceClaimTemplates(""), &s.Devices.Templates)
	optional(ctx, client, l, forecast.VolumeClaims, "list persistentvolumeclaims", kube.CoreV1().PersistentVolumeClaims(""), &s.Storage.Claims)
	optional(ctx, client, l, forecast.Volumes, "list persistentvolumes", kube.CoreV1().PersistentVolumes(), &s.Storage.Volumes)
	optional(ctx, client, l, forecast.StorageClasses, "list storageclasses.storage.k8s.io", kube.StorageV1().StorageClasses(), &s.Storage.Classes)
	optional(ctx, client, l, forecast.CSINodes, "list csinodes.storage.k8s.io", kube.StorageV1().CSINodes(), &s.Storage.Nodes)
	optional(ctx, client, l, forecast.CSIDrivers, "list csidrivers.storage.k8s.io", kube.StorageV1().CSIDrivers(), &s.Storage.Drivers)
	optional(ctx, client, l, forecast.VolumeAttachments, "list volumeattachments.storage.k8s.io", kube.StorageV1().VolumeAttachments(), &s.Storage.Attachments)
	registration := kube.AdmissionregistrationV1()
	optional(ctx, client, l, forecast.MutatingWebhooks, "list mutatingwebhookconfigurations.admissionregistration.k8s.io", registration.MutatingWebhookConfigurations(), &s.Webhooks.Mutating)
	optional(ctx, client, l, forecast.ValidatingWebhooks, "list validatingwebhookconfigurations.admissionregistration.k8s.io", registration.ValidatingWebhookConfigurations(), &s.Webhooks.Validating)
	optional(ctx, client, l, forecast.BatchJobs, "list jobs.batch", kube.BatchV1().Jobs(""), &s.BatchJobs)
	l.running.Go(func() { s.Version = versionOf(ctx, kube) })
	if err := l.wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(l.forgone, func(a, b forecast.Unread) int { return strings.Compare(a.Verb, b.Verb) })
	s.Unread = l.forgone
	return s, nil
}

// versionOf is the API server's version, or "unknown". Everybody may read it, unless an administrator has changed that.
func versionOf(ctx context.Context, kube kubernetes.Interface) string {
	text, err := kube.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	var info version.Info
	if err != nil || json.Unmarshal(text, &info) != nil || info.GitVersion == "" {
		return "unknown"
	}
	return info.GitVersion
}

// ReadQueues reads Kueue's objects. Where Kueue is not installed it fails with ErrNoKueue.
func ReadQueues(ctx context.Context, client *cluster.Client) (*forecast.Queues, error) {
	q, k := &forecast.Queues{}, client.Kueue()
	l := &lists{}
	verb := func(plural string) string { return "list " + plural + "." + kueue.SchemeGroupVersion.Group }
	list(ctx, client, l, verb("clusterqueues"), k.ClusterQueues(), "", &q.ClusterQueues)
	list(ctx, client, l, verb("localqueues"), k.LocalQueues(""), "", &q.LocalQueues)
	list(ctx, client, l, verb("resourceflavors"), k.ResourceFlavors(), "", &q.Flavors)
	list(ctx, client, l, verb("cohorts"), k.Cohorts(), "", &q.Cohorts)
	list(ctx, client, l, verb("admissionchecks"), k.AdmissionChecks(), "", &q.AdmissionChecks)
	list(ctx, client, l, verb("workloadpriorityclasses"), k.WorkloadPriorityClasses(), "", &q.PriorityClasses)
	list(ctx, client, l, verb("workloads"), k.Workloads(""), "", &q.Workloads)
	optional(ctx, client, l, forecast.Topologies, verb("topologies"), k.Topologies(), &q.Topologies)
	l.running.Go(func() { l.noteError(readConfiguration(ctx, client, q)) })
	if err := l.wait(); err != nil {
		return nil, err
	}
	for _, unread := range l.forgone {
		q.TopologiesUnread = unread.Verb
	}
	return q, nil
}

// ReadJob reads what a training job's ConfigMaps say. found is false where there are none, or they may not be read.
func ReadJob(ctx context.Context, client *cluster.Client, name types.NamespacedName) (job forecast.TrainingJob, found bool) {
	configMaps := client.Kubernetes().CoreV1().ConfigMaps(name.Namespace)
	definition, err := cluster.Get(ctx, client, configMaps, trainingjob.ConfigMapName(name.Name))
	if err != nil {
		return job, false
	}
	if job.Workers, err = trainingjob.DecodeWorkers([]byte(definition.Data[trainingjob.WorkersKey])); err != nil {
		return job, false
	}
	if status, err := cluster.Get(ctx, client, configMaps, trainingjob.StatusName(name.Name)); err == nil {
		// Without a readable status the job's progress is unknown, and the rest is known.
		job.Status, _ = trainingjob.DecodeStatus(status)
	}
	return job, true
}

// lists are LISTs under way.
type lists struct {
	running sync.WaitGroup
	mu      sync.Mutex
	denied  []string          // guarded by mu, as what follows
	forgone []forecast.Unread // what a forecast can go without
	missing bool              // Kueue's kinds
	err     error
}

// optional is list for a kind that a forecast can go without: where it may not be listed, that is noted.
func optional[T cluster.Object, L runtime.Object](
	ctx context.Context, client *cluster.Client, l *lists, kind forecast.Kind, verb string, from cluster.Listing[L],
	to *[]T,
) {
	l.running.Go(func() {
		objects, err := cluster.ListCached[T](ctx, client, from, metav1.ListOptions{})
		if cluster.IsNotServed(err) {
			return // an API server without the kind has no objects of it
		}
		if apierrors.IsForbidden(err) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.forgone = append(l.forgone, forecast.Unread{Kind: kind, Verb: verb})
			return
		}
		if err == nil && objects == nil {
			objects = []T{} // read, and there are none
		}
		*to = objects
		l.note(verb, err)
	})
}

// list reads all selected objects of a kind, beside others.
func list[T cluster.Object, L runtime.Object](
	ctx context.Context, client *cluster.Client, l *lists, verb string, from cluster.Listing[L], fields string, to *[]T,
) {
	l.running.Go(func() {
		objects, err := cluster.ListCached[T](ctx, client, from, metav1.ListOptions{FieldSelector: fields})
		*to = objects
		l.note(verb, err)
	})
}

// note records the failure of a LIST.
func (l *lists) note(verb string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
	case apierrors.IsForbidden(err):
		l.denied = append(l.denied, verb)
	case cluster.IsNotServed(err):
		l.missing = true
	case l.err == nil:
		l.err = err
	}
}

// noteError keeps the error of a request that is no LIST.
func (l *lists) noteError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

// wait is the end of all of them, and the first error among them.
func (l *lists) wait() error {
	l.running.Wait()
	switch {
	case l.err != nil:
		return l.err
	case len(l.denied) > 0:
		slices.Sort(l.denied)
		return &ForbiddenError{Verbs: l.denied}
	case l.missing:
		return ErrNoKueue
	}
	return nil
}
