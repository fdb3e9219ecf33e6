package terraformplan

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// typed is a resource of hashicorp/kubernetes whose attributes are fields of an API type.
type typed struct {
	apiVersion, kind string
	of               reflect.Type
}

// typedResources are those that create pods or decide about them, without the suffix _v1 that newer ones have.
var typedResources = map[string]typed{
	"kubernetes_pod":                     {"v1", "Pod", reflect.TypeFor[corev1.Pod]()},
	"kubernetes_replication_controller":  {"v1", "ReplicationController", reflect.TypeFor[corev1.ReplicationController]()},
	"kubernetes_job":                     {"batch/v1", "Job", reflect.TypeFor[batchv1.Job]()},
	"kubernetes_cron_job":                {"batch/v1", "CronJob", reflect.TypeFor[batchv1.CronJob]()},
	"kubernetes_deployment":              {"apps/v1", "Deployment", reflect.TypeFor[appsv1.Deployment]()},
	"kubernetes_stateful_set":            {"apps/v1", "StatefulSet", reflect.TypeFor[appsv1.StatefulSet]()},
	"kubernetes_daemonset":               {"apps/v1", "DaemonSet", reflect.TypeFor[appsv1.DaemonSet]()},
	"kubernetes_daemon_set":              {"apps/v1", "DaemonSet", reflect.TypeFor[appsv1.DaemonSet]()},
	"kubernetes_namespace":               {"v1", "Namespace", reflect.TypeFor[corev1.Namespace]()},
	"kubernetes_service_account":         {"v1", "ServiceAccount", reflect.TypeFor[corev1.ServiceAccount]()},
	"kubernetes_service":                 {"v1", "Service", reflect.TypeFor[corev1.Service]()},
	"kubernetes_limit_range":             {"v1", "LimitRange", reflect.TypeFor[corev1.LimitRange]()},
	"kubernetes_resource_quota":          {"v1", "ResourceQuota", reflect.TypeFor[corev1.ResourceQuota]()},
	"kubernetes_persistent_volume":       {"v1", "PersistentVolume", reflect.TypeFor[corev1.PersistentVolume]()},
	"kubernetes_persistent_volume_claim": {"v1", "PersistentVolumeClaim", reflect.TypeFor[corev1.PersistentVolumeClaim]()},
	"kubernetes_priority_class":          {"scheduling.k8s.io/v1", "PriorityClass", reflect.TypeFor[schedulingv1.PriorityClass]()},
	"kubernetes_pod_disruption_budget":   {"policy/v1", "PodDisruptionBudget", reflect.TypeFor[policyv1.PodDisruptionBudget]()},
	"kubernetes_runtime_class":           {"node.k8s.io/v1", "RuntimeClass", reflect.TypeFor[nodev1.RuntimeClass]()},
}

// elasticKinds are the kinds of a snapshot for this provider's resources.
var elasticKinds = map[string]string{
	"elastic_training_job": "training job", "elastic_task": "task", "elastic_priority_class": "PriorityClass",
	"elastic_workload_priority_class": "WorkloadPriorityClass", "elastic_resource_flavor": "ResourceFlavor",
	"elastic_cluster_queue": "ClusterQueue", "elastic_local_queue": "LocalQueue", "elastic_cohort": "Cohort",
	"elastic_topology": "Topology", "elastic_admission_check": "AdmissionCheck",
}

// makesPods reports whether resources of a type may create pods, whatever their attributes are.
func makesPods(resourceType string) bool {
	switch resourceType {
	case "kubernetes_manifest", "kubectl_manifest", "helm_release":
		return true
	}
	return false
}

// objectsOf are the objects of a resource; none if it has none, or if they are not known.
func objectsOf(resourceType string, attributes json.RawMessage) []*unstructured.Unstructured {
	var fields map[string]any
	if len(attributes) == 0 || utiljson.Unmarshal(attributes, &fields) != nil {
		return nil
	}
	switch resourceType {
	case "kubernetes_manifest":
		return object(without(fields["manifest"]))
	case "kubectl_manifest":
		text, _ := fields["yaml_body"].(string)
		asJSON, err := yaml.YAMLToJSON([]byte(text))
		var parsed map[string]any
		if err != nil || utiljson.Unmarshal(asJSON, &parsed) != nil {
			return nil
		}
		if namespace, _ := fields["override_namespace"].(string); namespace != "" {
			_ = unstructured.SetNestedField(parsed, namespace, "metadata", "namespace") // metadata that is no map is refused later
		}
		return object(parsed)
	case "helm_release":
		return released(fields)
	}
	of, known := typedResources[strings.TrimSuffix(resourceType, "_v1")]
	if !known {
		return nil
	}
	var plain map[string]any
	if json.Unmarshal(attributes, &plain) != nil { // with all numbers as float64
		return nil
	}
	metadata, _ := single(plain["metadata"]).(map[string]any)
	delete(plain, "metadata")
	for _, own := range []string{"id", "timeouts", "status"} {
		delete(plain, own)
	}
	converted, _ := fieldsOf(plain, of.of).(map[string]any)
	if converted == nil {
		converted = map[string]any{}
	}
	converted["apiVersion"], converted["kind"], converted["metadata"] = of.apiVersion, of.kind, metadataOf(metadata)
	dropUnset(converted)
	return object(converted)
}

// metadataOf is the user's part of an object's metadata.
func metadataOf(attributes map[string]any) map[string]any {
	metadata := map[string]any{}
	for attribute, name := range map[string]string{"name": "name", "namespace": "namespace", "generate_name": "generateName", "labels": "labels", "annotations": "annotations"} {
		switch value := attributes[attribute].(type) {
		case string:
			if value != "" {
				metadata[name] = value
			}
		case map[string]any:
			if len(value) > 0 {
				metadata[name] = value
			}
		}
	}
	return metadata
}

// dropUnset removes numbers that mean "unset" in the provider's state.
func dropUnset(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if n, isNumber := inner.(int64); isNumber && n == 0 && (key == "activeDeadlineSeconds" || key == "completions") {
				delete(v, key)
				continue
			}
			dropUnset(inner)
		}
	case []any:
		for _, item := range v {
			dropUnset(item)
		}
	}
}

// without is a value without its null fields, which a plan has for unset attributes.
func without(value any) any {
	switch v := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for key, inner := range v {
			if inner != nil {
				fields[key] = without(inner)
			}
		}
		return fields
	case []any:
		items := make([]any, 0, len(v))
		for _, item := range v {
			if item != nil {
				items = append(items, without(item))
			}
		}
		return items
	}
	return value
}

func object(fields any) []*unstructured.Unstructured {
	given, isMap := fields.(map[string]any)
	if !isMap {
		return nil
	}
	of := &unstructured.Unstructured{Object: given}
	if of.GetKind() == "" || of.GetAPIVersion() == "" {
		return nil
	}
	return []*unstructured.Unstructured{of}
}

// released are the objects of a Helm release, where the provider's experiment manifest has put them into the plan.
func released(fields map[string]any) []*unstructured.Unstructured {
	text, _ := fields["manifest"].(string)
	var manifests map[string]any
	if text == "" || utiljson.Unmarshal([]byte(text), &manifests) != nil {
		return nil
	}
	var all []*unstructured.Unstructured
	for _, key := range slices.Sorted(maps.Keys(manifests)) {
		fields := manifests[key]
		if text, isText := fields.(string); isText {
			var inner map[string]any
			if utiljson.Unmarshal([]byte(text), &inner) != nil {
				continue
			}
			fields = inner
		}
		all = append(all, object(without(fields))...)
	}
	if namespace, _ := fields["namespace"].(string); namespace != "" {
		for _, each := range all {
			if each.GetNamespace() == "" {
				each.SetNamespace(namespace)
			}
		}
	}
	return all
}

// nameOf is the name and the namespace of one of this provider's resources.
func nameOf(attributes json.RawMessage) (name, namespace string) {
	var fields struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}
	_ = json.Unmarshal(attributes, &fields) // what has no name has none
	return fields.Name, fields.Namespace
}
