package manifest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/versions"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

const (
	kubeflowGroup = "kubeflow.org"
	rayGroup      = "ray.io"
)

// TrainerGroup is the API group of Kubeflow Trainer.
const TrainerGroup = "trainer.kubeflow.org"

type reader func(*Set, *unstructured.Unstructured) ([]forecast.Job, error)

// kinds are the kinds that create pods.
var kinds map[schema.GroupKind]reader

func init() { // not a literal: an AppWrapper reads its components with this table
	kinds = map[schema.GroupKind]reader{
		{Kind: "Pod"}:                                       (*Set).pod,
		{Kind: "ReplicationController"}:                     (*Set).replicationController,
		{Group: "batch", Kind: "Job"}:                       (*Set).job,
		{Group: "batch", Kind: "CronJob"}:                   (*Set).cronJob,
		{Group: "apps", Kind: "Deployment"}:                 (*Set).deployment,
		{Group: "apps", Kind: "ReplicaSet"}:                 (*Set).replicaSet,
		{Group: "apps", Kind: "StatefulSet"}:                (*Set).statefulSet,
		{Group: "apps", Kind: "DaemonSet"}:                  (*Set).daemonSet,
		{Group: "jobset.x-k8s.io", Kind: "JobSet"}:          (*Set).jobSet,
		{Group: TrainerGroup, Kind: "TrainJob"}:             (*Set).trainJob,
		{Group: rayGroup, Kind: "RayCluster"}:               (*Set).rayCluster,
		{Group: rayGroup, Kind: "RayJob"}:                   (*Set).rayJob,
		{Group: rayGroup, Kind: "RayService"}:               (*Set).rayService,
		{Group: kubeflowGroup, Kind: "MPIJob"}:              (*Set).mpiJob,
		{Group: kubeflowGroup, Kind: "PyTorchJob"}:          kubeflowJob("pytorchReplicaSpecs", "Master", "Worker"),
		{Group: kubeflowGroup, Kind: "TFJob"}:               kubeflowJob("tfReplicaSpecs", "Chief", "Master", "PS", "Worker", "Evaluator"),
		{Group: kubeflowGroup, Kind: "XGBoostJob"}:          kubeflowJob("xgbReplicaSpecs", "Master", "Worker"),
		{Group: kubeflowGroup, Kind: "PaddleJob"}:           kubeflowJob("paddleReplicaSpecs", "Master", "Worker"),
		{Group: kubeflowGroup, Kind: "JAXJob"}:              kubeflowJob("jaxReplicaSpecs", "Worker"),
		{Group: lwsGroup, Kind: "LeaderWorkerSet"}:          (*Set).leaderWorkerSet,
		{Group: "workload.codeflare.dev", Kind: appWrapper}: (*Set).appWrapper,
	}
}

// dependencies create no pods, and affect those of other objects.
var dependencies = map[schema.GroupKind]func() runtime.Object{
	{Kind: "Namespace"}:                                                    func() runtime.Object { return &corev1.Namespace{} },
	{Kind: "Service"}:                                                      func() runtime.Object { return &corev1.Service{} },
	{Kind: "ServiceAccount"}:                                               func() runtime.Object { return &corev1.ServiceAccount{} },
	{Kind: "LimitRange"}:                                                   func() runtime.Object { return &corev1.LimitRange{} },
	{Kind: "ResourceQuota"}:                                                func() runtime.Object { return &corev1.ResourceQuota{} },
	{Kind: "PersistentVolume"}:                                             func() runtime.Object { return &corev1.PersistentVolume{} },
	{Kind: "PersistentVolumeClaim"}:                                        func() runtime.Object { return &corev1.PersistentVolumeClaim{} },
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                        func() runtime.Object { return &storagev1.StorageClass{} },
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                        func() runtime.Object { return &resourcev1.DeviceClass{} },
	{Group: "resource.k8s.io", Kind: "ResourceClaim"}:                      func() runtime.Object { return &resourcev1.ResourceClaim{} },
	{Group: "resource.k8s.io", Kind: "ResourceClaimTemplate"}:              func() runtime.Object { return &resourcev1.ResourceClaimTemplate{} },
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                    func() runtime.Object { return &schedulingv1.PriorityClass{} },
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                           func() runtime.Object { return &nodev1.RuntimeClass{} },
	{Group: "policy", Kind: "PodDisruptionBudget"}:                         func() runtime.Object { return &policyv1.PodDisruptionBudget{} },
	{Group: kueue.SchemeGroupVersion.Group, Kind: "LocalQueue"}:            func() runtime.Object { return &kueue.LocalQueue{} },
	{Group: kueue.SchemeGroupVersion.Group, Kind: "ClusterQueue"}:          func() runtime.Object { return &kueue.ClusterQueue{} },
	{Group: kueue.SchemeGroupVersion.Group, Kind: "ResourceFlavor"}:        func() runtime.Object { return &kueue.ResourceFlavor{} },
	{Group: kueue.SchemeGroupVersion.Group, Kind: "Cohort"}:                func() runtime.Object { return &kueue.Cohort{} },
	{Group: kueue.SchemeGroupVersion.Group, Kind: "AdmissionCheck"}:        func() runtime.Object { return &kueue.AdmissionCheck{} },
	{Group: kueue.SchemeGroupVersion.Group, Kind: "WorkloadPriorityClass"}: func() runtime.Object { return &kueue.WorkloadPriorityClass{} },
	{Group: kueue.SchemeGroupVersion.Group, Kind: "Topology"}:              func() runtime.Object { return &kueue.Topology{} },
}

// clusterScoped are the dependencies without a namespace.
var clusterScoped = map[string]bool{
	"Namespace": true, "PersistentVolume": true, "StorageClass": true, "DeviceClass": true, "PriorityClass": true, "RuntimeClass": true, "ClusterQueue": true,
	"ResourceFlavor": true, "Cohort": true, "AdmissionCheck": true, "WorkloadPriorityClass": true, "Topology": true,
}

// ignored reports whether a kind may be in a file with jobs without any effect on pods.
func ignored(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return kind.Kind == "ConfigMap" || kind.Kind == "Secret" || kind.Kind == "Endpoints" || kind.Kind == "Event"
	case "rbac.authorization.k8s.io", "networking.k8s.io", "gateway.networking.k8s.io", "apiextensions.k8s.io", "discovery.k8s.io",
		"monitoring.coreos.com", "cert-manager.io", "apiregistration.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "storage.k8s.io":
		return true
	case TrainerGroup:
		return kind.Kind == "TrainingRuntime" || kind.Kind == "ClusterTrainingRuntime" // read with the TrainJobs that name them
	}
	return false
}

// dependency reads an object that affects the pods of others.
func (s *Set) dependency(object *unstructured.Unstructured, into runtime.Object) (Contents, error) {
	kind := object.GetKind()
	if !clusterScoped[kind] {
		object.SetNamespace(s.namespaceOf(object))
	}
	read := decode
	if object.GroupVersionKind().Group == kueue.SchemeGroupVersion.Group {
		read = versions.Decode
	}
	if err := read(object, into); err != nil {
		return Contents{}, fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
	}
	return Contents{Objects: []runtime.Object{into}}, nil
}

// ClusterScoped reports whether a kind that affects pods has no namespace.
func ClusterScoped(kind string) bool { return clusterScoped[kind] }

// MakesPods reports whether pods may be created for objects of a kind, which holds for unknown kinds too.
func MakesPods(kind schema.GroupKind) bool {
	return dependencies[kind] == nil && !ignored(kind)
}
