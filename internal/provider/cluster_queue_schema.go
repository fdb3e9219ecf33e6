package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func clusterQueueSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A ClusterQueue of Kueue: quota for flavors of nodes, and the rules for assigning it to workloads. Jobs name a LocalQueue, which refers to the ClusterQueue.\n\n" +
			"By default no workload is preempted: `preemption.within_cluster_queue` is `Never`, so a high-priority workload waits for quota even if it is first in the queue. " +
			"By default no namespace may use the queue: set `namespace_selector` to `{}` to allow all namespaces.\n\n" +
			"A queue with a missing flavor or admission check is created, and is inactive until they exist; see `wait_for = \"active\"`. " +
			"Everything but the name changes in place. A queue is deleted once no workload holds its quota.",
		Attributes: kueueAttributes(ctx, "Name of the queue, as in a LocalQueue's `cluster_queue`.", map[string]schema.Attribute{
			"resource_groups": resourceGroupsAttribute(
				"The queue's quota: groups of resources, each with the flavors that provide them.",
				"Quota of this queue: the amount that its workloads may use at a time, and that it adds to its cohort.",
				"Maximum amount of unused quota that the queue may borrow from its cohort; unlimited if not set. Only with `cohort_name`.",
				"Maximum amount of unused quota that others in the cohort may borrow; all if not set, `\"0\"` for nothing. At most `nominal_quota`. Only with `cohort_name`.",
			),
			"cohort_name": nonEmptyText("Cohort of queues that can borrow unused quota from each other. An `elastic_cohort` is not required: all queues that name the same cohort belong to it. " +
				"If not set, the queue neither borrows nor lends."),
			"queueing_strategy": wordAttribute("Both strategies order workloads by priority and then by age. `BestEffortFIFO` (default): workloads behind one that does not fit may be admitted. `StrictFIFO`: they wait for it.", kueue.BestEffortFIFO),
			"namespace_selector": optionalObject("Namespaces whose workloads may use the queue: `{}` for all. If not set, no namespace may use it.", map[string]schema.Attribute{
				"match_labels": optionalTextMap("Labels of the namespace, such as `{ \"kubernetes.io/metadata.name\" = \"team-a\" }`."),
				"match_expressions": optionalObjects("Requirements that the namespace's labels must meet; all of them apply.", map[string]schema.Attribute{
					"key":      requiredText("Key of a label."),
					"operator": requiredText("`In`, `NotIn`, `Exists` or `DoesNotExist`."),
					"values":   optionalTexts("Values, with `In` and `NotIn`."),
				}),
			}),
			"preemption": defaultedAttribute(ctx, "Which workloads are evicted for a pending workload. Evicted workloads are queued again and keep their age.", map[string]schema.Attribute{
				"within_cluster_queue": wordAttribute("Which workloads in this queue may be preempted. `Never` (default): none, regardless of priority. `LowerPriority`: workloads of lower priority. "+
					"`LowerOrNewerEqualPriority`: also newer workloads of the same priority.", kueue.PreemptionPolicyNever),
				"reclaim_within_cohort": wordAttribute("Which borrowing workloads in other queues of the cohort may be preempted for a workload that fits this queue's nominal quota: `Never` (default), `LowerPriority`, "+
					"or `Any` (all, regardless of priority).", kueue.PreemptionPolicyNever),
				"borrow_within_cohort": defaultedAttribute(ctx, "Which workloads in other queues of the cohort may be preempted for a workload that has to borrow. Cannot be combined with fair sharing.", map[string]schema.Attribute{
					"policy": wordAttribute("`Never` (default), or `LowerPriority`, which needs `reclaim_within_cohort` other than `Never`.", kueue.BorrowWithinCohortPolicyNever),
					"max_priority_threshold": optionalInteger("Only workloads of at most this priority are evicted; if not set, all workloads of lower priority.",
						int32Validators()...),
				}),
			}),
			"flavor_fungibility": defaultedAttribute(ctx, "Whether the next flavor is tried before a workload borrows or preempts in this one.", map[string]schema.Attribute{
				"when_can_borrow":  wordAttribute("`MayStopSearch` (default): use a flavor in which the workload fits by borrowing. `TryNextFlavor`: try the next flavor first.", kueue.MayStopSearch),
				"when_can_preempt": wordAttribute("`TryNextFlavor` (default): try the next flavor before evicting workloads. `MayStopSearch`: use a flavor in which the workload fits by preemption.", kueue.TryNextFlavor),
				"preference": optionalText("If every flavor needs borrowing or preemption: `BorrowingOverPreemption` (default) or `PreemptionOverBorrowing`. " +
					"Only if `when_can_borrow` and `when_can_preempt` are both `TryNextFlavor`."),
			}),
			"admission_checks_strategy": optionalObject("Checks that a workload must pass after quota is reserved and before it runs.", map[string]schema.Attribute{
				"admission_checks": requiredObjects("The checks; each name may occur once.", map[string]schema.Attribute{
					"name":       requiredText("Name of an AdmissionCheck: refer to `elastic_admission_check.NAME.name`."),
					"on_flavors": optionalTexts("Flavors of this queue that need the check; all if not set."),
				}),
			}),
			"stop_policy":  stopPolicyAttribute("queue"),
			"fair_sharing": fairSharingAttribute("this queue among those of its cohort"),
			"admission_scope": optionalObject("Whether the usage of LocalQueues determines the order of admission; it has an effect only if admission fair sharing is enabled in Kueue's configuration.", map[string]schema.Attribute{
				"admission_mode": requiredText("`UsageBasedAdmissionFairSharing` or `NoAdmissionFairSharing`."),
			}),
			"wait_for": waitForAttribute("when the flavors and checks exist and the queue is not stopped."),
		}),
	}
}
