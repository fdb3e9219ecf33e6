//go:build !offline

package elasticsim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/audit"
)

// ofCluster reads what an audit needs. Events, pods and Workloads only name preemptors, or are not there without Kueue:
// the audit can go without them.
func (f auditFlags) ofCluster(ctx context.Context) (audit.Report, error) {
	client, err := f.connect()
	if err != nil {
		return audit.Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	ours := metav1.ListOptions{LabelSelector: trainingjob.LabelJobName}
	statuses, err := cluster.List[*corev1.ConfigMap](ctx, client, client.Kubernetes().CoreV1().ConfigMaps(f.namespace), ours)
	if err != nil {
		return audit.Report{}, explained(err)
	}
	seen := audit.Cluster{}
	for _, configMap := range statuses {
		job := configMap.Labels[trainingjob.LabelJobName]
		if configMap.Name != trainingjob.StatusName(job) {
			continue
		}
		status, err := trainingjob.DecodeStatus(configMap)
		if err != nil {
			return audit.Report{}, err
		}
		seen.Jobs = append(seen.Jobs, audit.Job{Namespace: configMap.Namespace, Name: job, Status: status})
	}
	core := client.Kubernetes().CoreV1()
	if list, err := core.Events(f.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Preempted"}); err == nil {
		seen.Events = list.Items
	}
	// Preemptors are of any namespace. Who may read only one has the names of that one.
	for _, namespace := range []string{metav1.NamespaceAll, f.namespace} {
		if pods, err := cluster.ListCached[*corev1.Pod](ctx, client, core.Pods(namespace), metav1.ListOptions{}); err == nil {
			seen.Pods = pods
			break
		}
	}
	for _, namespace := range []string{metav1.NamespaceAll, f.namespace} {
		workloads, err := cluster.ListCached[*kueue.Workload](ctx, client, client.Kueue().Workloads(namespace), metav1.ListOptions{})
		if err == nil {
			seen.Workloads = workloads
			break
		}
		if namespace == f.namespace && !cluster.IsNotServed(err) {
			return audit.Report{}, explained(err)
		}
	}
	seen.Namespace = f.namespace
	return audit.OfCluster(seen), nil
}
