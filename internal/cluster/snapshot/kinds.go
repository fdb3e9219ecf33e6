package snapshot

import (
	"encoding/json"
	"fmt"
	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/versions"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// kind is a kind of objects that forecasts read, from an API server or from a file, and where a snapshot has them.
type kind struct {
	schema.GroupVersionKind
	plural string
	// needed kinds have to be readable on an API server; others are noted in Snapshot.Unread.
	needed bool

	set    func(list runtime.Object) error                      // all of an API server's
	add    func(version schema.GroupVersion, text []byte) error // one of a file, in JSON
	begin  func()                                               // notes that the kind was read, even if there are none
	copies func() []object                                      // deep ones, with kind and version
}

// kindsOf are the kinds besides Kueue's.
func kindsOf(s *forecast.Snapshot) []kind {
	return []kind{
		needed(of(corev1.SchemeGroupVersion, "nodes", &s.Nodes)),
		needed(of(corev1.SchemeGroupVersion, "pods", &s.Pods)),
		needed(of(schedulingv1.SchemeGroupVersion, "priorityclasses", &s.PriorityClasses)),
		of(policyv1.SchemeGroupVersion, "poddisruptionbudgets", &s.Budgets),
		of(corev1.SchemeGroupVersion, "namespaces", &s.Namespaces),
		of(corev1.SchemeGroupVersion, "limitranges", &s.LimitRanges),
		of(corev1.SchemeGroupVersion, "resourcequotas", &s.Quotas),
		of(nodev1.SchemeGroupVersion, "runtimeclasses", &s.RuntimeClasses),
		of(corev1.SchemeGroupVersion, "services", &s.Services),
		of(corev1.SchemeGroupVersion, "replicationcontrollers", &s.ReplicationControllers),
		of(appsv1.SchemeGroupVersion, "replicasets", &s.ReplicaSets),
		of(appsv1.SchemeGroupVersion, "statefulsets", &s.StatefulSets),
		of(batchv1.SchemeGroupVersion, "jobs", &s.BatchJobs),
		of(resourcev1.SchemeGroupVersion, "deviceclasses", &s.Devices.Classes),
		of(resourcev1.SchemeGroupVersion, "resourceslices", &s.Devices.Slices),
		of(resourcev1.SchemeGroupVersion, "resourceclaims", &s.Devices.Claims),
		of(resourcev1.SchemeGroupVersion, "resourceclaimtemplates", &s.Devices.Templates),
		of(corev1.SchemeGroupVersion, "persistentvolumeclaims", &s.Storage.Claims),
		of(corev1.SchemeGroupVersion, "persistentvolumes", &s.Storage.Volumes),
		of(storagev1.SchemeGroupVersion, "storageclasses", &s.Storage.Classes),
		of(storagev1.SchemeGroupVersion, "csinodes", &s.Storage.Nodes),
		of(storagev1.SchemeGroupVersion, "csidrivers", &s.Storage.Drivers),
		of(storagev1.SchemeGroupVersion, "volumeattachments", &s.Storage.Attachments),
		of(admissionv1.SchemeGroupVersion, "mutatingwebhookconfigurations", &s.Webhooks.Mutating),
		of(admissionv1.SchemeGroupVersion, "validatingwebhookconfigurations", &s.Webhooks.Validating),
	}
}

// queueKinds are Kueue's kinds.
func queueKinds(q *forecast.Queues) []kind {
	return []kind{
		needed(of(kueue.SchemeGroupVersion, "clusterqueues", &q.ClusterQueues)),
		needed(of(kueue.SchemeGroupVersion, "localqueues", &q.LocalQueues)),
		needed(of(kueue.SchemeGroupVersion, "resourceflavors", &q.Flavors)),
		needed(of(kueue.SchemeGroupVersion, "cohorts", &q.Cohorts)),
		needed(of(kueue.SchemeGroupVersion, "admissionchecks", &q.AdmissionChecks)),
		needed(of(kueue.SchemeGroupVersion, "workloadpriorityclasses", &q.PriorityClasses)),
		needed(of(kueue.SchemeGroupVersion, "workloads", &q.Workloads)),
		of(kueue.SchemeGroupVersion, "topologies", &q.Topologies),
	}
}

func needed(k kind) kind {
	k.needed = true
	return k
}

// pointer is a pointer to a Go type of Kubernetes or Kueue.
type pointer[T any] interface {
	*T
	object
}

// object is what cluster.Object is.
type object interface {
	metav1.Object
	runtime.Object
}

// of is the kind with the Go type T.
func of[T any, P pointer[T]](version schema.GroupVersion, plural string, in *[]P) kind {
	k := kind{GroupVersionKind: version.WithKind(reflect.TypeFor[T]().Name()), plural: plural}
	return kind{
		GroupVersionKind: k.GroupVersionKind, plural: plural,
		set: func(list runtime.Object) error {
			objects := make([]P, 0, meta.LenList(list))
			err := meta.EachListItem(list, func(item runtime.Object) error {
				object, ok := item.(P)
				if !ok {
					return fmt.Errorf("got a list of %T", item)
				}
				objects = append(objects, object)
				return nil
			})
			*in = objects
			return err
		},
		add: func(version schema.GroupVersion, text []byte) error {
			object := P(new(T))
			err := k.decode(version, text, object)
			if err == nil && !ended(object) {
				*in = append(*in, object)
			}
			return err
		},
		begin: func() {
			if *in == nil {
				*in = []P{}
			}
		},
		copies: func() (copies []object) {
			for _, object := range *in {
				copied := object.DeepCopyObject().(P) //nolint:forcetypeassert // a copy has the type of its original
				copied.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
				copies = append(copies, copied)
			}
			return copies
		},
	}
}

// decode reads an object of a file. Kueue's are read as users write them, in any version; others as client-go reads the
// answers of an API server, of which it ignores fields that it does not know.
func (k *kind) decode(version schema.GroupVersion, text []byte, into object) error {
	defer into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // which typed clients do not set either
	switch {
	case !k.ofKueue() && version != k.GroupVersion():
		return fmt.Errorf("apiVersion %s is not read, but %s", version, k.GroupVersion())
	case !k.ofKueue():
		return json.Unmarshal(text, into)
	}
	fields := &unstructured.Unstructured{}
	if err := fields.UnmarshalJSON(text); err != nil {
		return err
	}
	return versions.Decode(fields, into)
}

// ended reports whether an object is a pod that holds nothing any more; see NotEnded.
func ended(object any) bool {
	pod, isPod := object.(*corev1.Pod)
	return isPod && placement.Finished(pod)
}

func (k *kind) ofKueue() bool { return k.Group == kueue.SchemeGroupVersion.Group }

// resource is the kind in RBAC's words: "pods", "jobs.batch".
func (k *kind) resource() string {
	return schema.GroupResource{Group: k.Group, Resource: k.plural}.String()
}

// verb is the permission that reading the kind takes.
func (k *kind) verb() string { return "list " + k.resource() }

// unread is the kind as one that could not be read.
func (k *kind) unread(verb string) forecast.Unread {
	return forecast.Unread{Kind: forecast.Kind(k.Kind), Verb: verb}
}
