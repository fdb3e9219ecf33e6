package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// newClusterQueue is elastic_cluster_queue.
func newClusterQueue() func() resource.Resource {
	return newObject(&kind[*kueue.ClusterQueue]{
		name: "cluster_queue", title: string(aClusterQueue), apiVersion: kueue.SchemeGroupVersion.String(), parentField: "spec",
		attributes: clusterQueueSchema,
		empty:      func() *kueue.ClusterQueue { return &kueue.ClusterQueue{} },
		in: func(client *cluster.Client, _ string) cluster.Resource[*kueue.ClusterQueue] {
			return client.Kueue().ClusterQueues()
		},
		afterRecreation: "workloads that held its quota were evicted or finished before",
		problems:        validation.ValidateClusterQueue,
		changes:         validation.ValidateClusterQueueUpdate,
		concerns:        clusterQueueConcerns,
		active:          func(queue *kueue.ClusterQueue) *metav1.Condition { return conditionActive(queue.Status.Conditions) },
		watch: func(ctx context.Context, client *cluster.Client, _, name string, done func([]*kueue.ClusterQueue) (bool, error)) error {
			return cluster.WaitFor(ctx, client, client.Kueue().ClusterQueues(), cluster.Named(name), done)
		},
		plannedAttributes: clusterQueueAttributes,
		checks:            checkClusterQueue,
		stops:             true,
		consequence:       releasesQueue,
		holders:           workloadsReserving,
		release:           `Wait until they end, or evict them: set stop_policy = "HoldAndDrain", apply, and then delete the queue.`,
	})
}

func conditionActive(conditions []metav1.Condition) *metav1.Condition {
	return apimeta.FindStatusCondition(conditions, kueue.ClusterQueueActive)
}

// quotaConcerns are the attributes that rules about quotas read besides their neighbours: limits need a cohort above,
// and the resources of a flavor are those that its group covers.
func quotaConcerns(at, above string) []string {
	group, _, isOfFlavor := strings.Cut(at, ".flavors")
	switch {
	case strings.HasSuffix(at, "ing_limit"):
		return []string{above}
	case isOfFlavor:
		return []string{group + ".covered_resources"}
	default:
		return nil
	}
}

func clusterQueueConcerns(at string) []string {
	switch {
	case strings.Contains(at, ".on_flavors"):
		return []string{"resource_groups"}
	case at == "preemption.borrow_within_cohort.policy":
		return []string{"preemption.reclaim_within_cohort"}
	default:
		return quotaConcerns(at, "cohort_name")
	}
}

func checkClusterQueue(ctx context.Context, c *connection, queue *kueue.ClusterQueue) []check {
	checks := checkFlavors(ctx, c, queue.Spec.ResourceGroups, "The queue is created, but is inactive until the flavor exists.")
	if strategy := queue.Spec.AdmissionChecksStrategy; strategy != nil {
		for i, admission := range strategy.AdmissionChecks {
			checks = append(checks, check{fmt.Sprintf("admissionChecksStrategy.admissionChecks[%d].name", i), func(at path.Path) diag.Diagnostics {
				return c.checkReference(ctx, at, reference{kind: anAdmissionCheck, name: string(admission.Name)},
					"The queue is created, but is inactive until the check exists and is active.")
			}})
		}
	}
	if clusterQueueAttributes(queue).neverPreempts {
		checks = append(checks, check{"preemption.withinClusterQueue", func(at path.Path) diag.Diagnostics {
			return c.warnOfNever(ctx, at, queue.Name)
		}})
	}
	return checks
}

func checkFlavors(ctx context.Context, c *connection, groups []kueue.ResourceGroup, otherwise string) []check {
	var checks []check
	for i, group := range groups {
		for j, flavor := range group.Flavors {
			checks = append(checks, check{fmt.Sprintf("resourceGroups[%d].flavors[%d].name", i, j), func(at path.Path) diag.Diagnostics {
				return c.checkReference(ctx, at, reference{kind: aResourceFlavor, name: string(flavor.Name)}, otherwise)
			}})
		}
	}
	return checks
}

// mostHolders bounds how many workloads a diagnostic names.
const mostHolders = 10

// workloadsReserving are the workloads that hold quota of a ClusterQueue. Kueue keeps the queue until they end.
func workloadsReserving(ctx context.Context, client *cluster.Client, name string) ([]string, error) {
	workloads, err := client.Kueue().Workloads(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, client.Wrap("list", cluster.Ref{Kind: "Workload"}, err)
	}
	var found []string
	for i := range workloads.Items {
		workload := &workloads.Items[i]
		if workload.Status.Admission == nil || string(workload.Status.Admission.ClusterQueue) != name ||
			apimeta.IsStatusConditionTrue(workload.Status.Conditions, kueue.WorkloadFinished) {
			continue
		}
		how := "holds quota"
		if apimeta.IsStatusConditionTrue(workload.Status.Conditions, kueue.WorkloadAdmitted) {
			how = "is admitted"
		}
		of := ""
		for _, owner := range workload.OwnerReferences {
			of = fmt.Sprintf(", of %s %s", owner.Kind, owner.Name)
		}
		found = append(found, fmt.Sprintf("Workload %s/%s (%s%s)", workload.Namespace, workload.Name, how, of))
	}
	if more := len(found) - mostHolders; more > 0 {
		found = append(found[:mostHolders], fmt.Sprintf("and %d more workloads", more))
	}
	return found, nil
}
