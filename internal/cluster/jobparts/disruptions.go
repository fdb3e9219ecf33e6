package jobparts

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// Disruptions are those of a job's status, with the preemptors by name where Events, pods and Workloads are still there,
// and may be listed, to name them.
func Disruptions(ctx context.Context, client *cluster.Client, namespace string, status trainingjob.Status) []trainingjob.Disruption {
	if status.Disruptions == nil {
		return nil
	}
	all := status.Disruptions.Newest
	nameless := func(d trainingjob.Disruption) bool { return d.Kind == trainingjob.DisruptionPreempted && d.By == "" }
	if !slices.ContainsFunc(all, nameless) {
		return all
	}
	if list, err := client.Kubernetes().CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Preempted"}); err == nil {
		all = trainingjob.NamePreemptors(all, list.Items)
	}
	if !slices.ContainsFunc(all, func(d trainingjob.Disruption) bool { return nameless(d) && d.ByUID != "" }) {
		return all
	}
	return trainingjob.NameUIDs(all, namesOf(ctx, client, namespace))
}

// namesOf are the pods and Workloads that may preempt, by UID: those of all namespaces, or those that may be listed.
func namesOf(ctx context.Context, client *cluster.Client, namespace string) map[string]string {
	names := map[string]string{}
	for kind, of := range map[string]schema.GroupVersionResource{
		"Pod":      corev1.SchemeGroupVersion.WithResource("pods"),
		"Workload": kueue.SchemeGroupVersion.WithResource("workloads"),
	} {
		objects, err := cluster.ListMetadata(ctx, client, kind, of, metav1.NamespaceAll, metav1.ListOptions{})
		if err != nil {
			//nolint:errcheck // without names UIDs are shown
			objects, _ = cluster.ListMetadata(ctx, client, kind, of, namespace, metav1.ListOptions{})
		}
		for _, o := range objects {
			names[string(o.UID)] = strings.ToLower(kind) + " " + o.Namespace + "/" + o.Name
		}
	}
	return names
}
