package validationtest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// clusterQueue is a queue without fault, and then changed: in cohort "research", cpu and memory from flavors a and b, GPUs
// from flavor gpu.
func clusterQueue(changes ...func(*kueue.ClusterQueueSpec)) *kueue.ClusterQueue {
	queue := &kueue.ClusterQueue{
		ObjectMeta: named("queue"),
		Spec: kueue.ClusterQueueSpec{
			CohortName:        "research",
			NamespaceSelector: &metav1.LabelSelector{},
			ResourceGroups: []kueue.ResourceGroup{
				group([]corev1.ResourceName{"cpu", "memory"}, "a", "b"),
				group([]corev1.ResourceName{"nvidia.com/gpu"}, "gpu"),
			},
		},
	}
	for _, change := range changes {
		change(&queue.Spec)
	}
	return queue
}

func group(resources []corev1.ResourceName, flavors ...kueue.ResourceFlavorReference) kueue.ResourceGroup {
	group := kueue.ResourceGroup{CoveredResources: resources}
	for _, name := range flavors {
		flavor := kueue.FlavorQuotas{Name: name}
		for _, resource := range resources {
			flavor.Resources = append(flavor.Resources, kueue.ResourceQuota{Name: resource, NominalQuota: *quantity("4")})
		}
		group.Flavors = append(group.Flavors, flavor)
	}
	return group
}

func quantity(text string) *resource.Quantity {
	quantity := resource.MustParse(text)
	return &quantity
}

// numbered are so many names.
func numbered[T ~string](prefix string, count int) []T {
	names := make([]T, count)
	for i := range names {
		names[i] = T(fmt.Sprintf("%s%d", prefix, i))
	}
	return names
}

func clusterQueues() []Case {
	quota := func(change func(*kueue.ResourceQuota)) func(*kueue.ClusterQueueSpec) {
		return func(spec *kueue.ClusterQueueSpec) { change(&spec.ResourceGroups[0].Flavors[1].Resources[0]) }
	}
	alone := func(spec *kueue.ClusterQueueSpec) { spec.CohortName = "" }
	const cpuOfB = "spec.resourceGroups[0].flavors[1].resources[0]"
	cases := []Case{
		{Behaviour: "a queue as it should be", Object: clusterQueue()},
		{Behaviour: "a queue without anything", Object: &kueue.ClusterQueue{ObjectMeta: named("queue")}},
		{Behaviour: "a name that is none", Object: &kueue.ClusterQueue{ObjectMeta: named("My_Queue")}, Wrong: []string{"metadata.name"}},
		{Behaviour: "a cohort's name that is none", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.CohortName = "Research" }), Wrong: []string{"spec.cohortName"}},
		{Behaviour: "a cohort's name that is too long", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.CohortName = kueue.CohortReference(strings.Repeat("a", 254)) }), Wrong: []string{"spec.cohortName"}},

		{Behaviour: "limits in a cohort", Object: clusterQueue(quota(func(q *kueue.ResourceQuota) { q.BorrowingLimit, q.LendingLimit = quantity("0"), quantity("4") }))},
		{Behaviour: "a borrowing limit without a cohort", Object: clusterQueue(alone, quota(func(q *kueue.ResourceQuota) { q.BorrowingLimit = quantity("1") })), Wrong: []string{cpuOfB + ".borrowingLimit"}},
		{Behaviour: "a lending limit without a cohort", Object: clusterQueue(alone, quota(func(q *kueue.ResourceQuota) { q.LendingLimit = quantity("1") })), Wrong: []string{cpuOfB + ".lendingLimit webhook"}},
		{Behaviour: "more to lend than there is", Object: clusterQueue(quota(func(q *kueue.ResourceQuota) { q.LendingLimit = quantity("4001m") })), Wrong: []string{cpuOfB + ".lendingLimit webhook"}},
		{Behaviour: "a negative quota", Object: clusterQueue(quota(func(q *kueue.ResourceQuota) { q.NominalQuota = *quantity("-1") })), Wrong: []string{cpuOfB + ".nominalQuota webhook"}},
		{Behaviour: "negative limits", Object: clusterQueue(quota(func(q *kueue.ResourceQuota) { q.BorrowingLimit, q.LendingLimit = quantity("-1"), quantity("-1") })), Wrong: []string{cpuOfB + ".borrowingLimit webhook", cpuOfB + ".lendingLimit webhook"}},

		{Behaviour: "a group without resources", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.ResourceGroups[1] = group(nil, "gpu") }), Wrong: []string{"spec.resourceGroups[1].coveredResources", "spec.resourceGroups[1].flavors[0].resources"}},
		{Behaviour: "a group without flavors", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.ResourceGroups[1].Flavors = nil }), Wrong: []string{"spec.resourceGroups[1].flavors"}},
		{Behaviour: "a flavor that lacks a resource", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups[0].Flavors[1].Resources = s.ResourceGroups[0].Flavors[1].Resources[:1]
		}), Wrong: []string{"spec.resourceGroups[0].flavors[1].resources"}},
		{Behaviour: "a flavor with one resource too many", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups[1].Flavors[0].Resources = append(s.ResourceGroups[1].Flavors[0].Resources, kueue.ResourceQuota{Name: "cpu"})
		}), Wrong: []string{"spec.resourceGroups[1].flavors[0].resources"}},
		{Behaviour: "resources in another order", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			resources := s.ResourceGroups[0].Flavors[1].Resources
			resources[0], resources[1] = resources[1], resources[0]
		}), Wrong: []string{cpuOfB + ".name webhook", "spec.resourceGroups[0].flavors[1].resources[1].name webhook"}},
		{Behaviour: "a resource twice in a flavor", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.ResourceGroups[0].Flavors[1].Resources[1].Name = "cpu" }), Wrong: []string{"spec.resourceGroups[0].flavors[1].resources[1].name"}},
		{Behaviour: "a quota without a name", Object: clusterQueue(quota(func(q *kueue.ResourceQuota) { q.Name = "" })), Wrong: []string{cpuOfB + ".name"}},
		{Behaviour: "a resource in two groups", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups[1] = group([]corev1.ResourceName{"cpu"}, "gpu")
		}), Wrong: []string{"spec.resourceGroups[1].coveredResources[0] webhook"}},
		{Behaviour: "a flavor in two groups", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.ResourceGroups[1].Flavors[0].Name = "a" }), Wrong: []string{"spec.resourceGroups[1].flavors[0].name webhook"}},
		{Behaviour: "a flavor twice in a group", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.ResourceGroups[0].Flavors[1].Name = "a" }), Wrong: []string{"spec.resourceGroups[0].flavors[1].name"}},
		{Behaviour: "a flavor without a name", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.ResourceGroups[0].Flavors[1].Name = "" }), Wrong: []string{"spec.resourceGroups[0].flavors[1].name"}},
		{Behaviour: "a flavor's name that is none", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.ResourceGroups[0].Flavors[1].Name = "Spot" }), Wrong: []string{"spec.resourceGroups[0].flavors[1].name"}},
		{Behaviour: "a resource's name that is none", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups[1] = group([]corev1.ResourceName{"nvidia.com/"}, "gpu")
		}), Wrong: []string{"spec.resourceGroups[1].coveredResources[0] webhook", "spec.resourceGroups[1].coveredResources[0] webhook"}},
		{Behaviour: "too many groups", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups = nil
			for i, name := range numbered[corev1.ResourceName]("r", 17) {
				s.ResourceGroups = append(s.ResourceGroups, group([]corev1.ResourceName{name}, numbered[kueue.ResourceFlavorReference]("f", 17)[i]))
			}
		}), Wrong: []string{"spec.resourceGroups"}},
		{Behaviour: "too many flavors in a group", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups = []kueue.ResourceGroup{group([]corev1.ResourceName{"cpu"}, numbered[kueue.ResourceFlavorReference]("f", 65)...)}
		}), Wrong: []string{"spec.resourceGroups[0].flavors"}},
		{Behaviour: "too many flavors in all", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups = nil
			for i := range 5 {
				s.ResourceGroups = append(s.ResourceGroups, group(numbered[corev1.ResourceName]("r", 5)[i:i+1], numbered[kueue.ResourceFlavorReference](fmt.Sprintf("f%d-", i), 52)...))
			}
		}), Wrong: []string{"spec.resourceGroups webhook"}},
		{Behaviour: "too many resources in all", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups = nil
			for i := range 5 {
				s.ResourceGroups = append(s.ResourceGroups, group(numbered[corev1.ResourceName](fmt.Sprintf("r%d-", i), 52), numbered[kueue.ResourceFlavorReference]("f", 5)[i]))
			}
		}), Wrong: []string{"spec.resourceGroups webhook"}},
		{Behaviour: "too many quotas in a group", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.ResourceGroups = []kueue.ResourceGroup{group(numbered[corev1.ResourceName]("r", 27), numbered[kueue.ResourceFlavorReference]("f", 19)...)}
		}), Wrong: []string{"spec.resourceGroups[0] webhook"}},

		{Behaviour: "an unknown strategy", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.QueueingStrategy = "LIFO" }), Wrong: []string{"spec.queueingStrategy"}},
		{Behaviour: "an unknown stop policy", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.StopPolicy = word[kueue.StopPolicy]("Drain") }), Wrong: []string{"spec.stopPolicy"}},
		{Behaviour: "an empty stop policy", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.StopPolicy = word[kueue.StopPolicy]("") }), Wrong: []string{"spec.stopPolicy"}},
		{Behaviour: "a stopped queue", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.StopPolicy = word(kueue.HoldAndDrain) })},
		{Behaviour: "a selector without an operator", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team"}}
		}), Wrong: []string{"spec.namespaceSelector.matchExpressions[0].operator webhook"}},
		{Behaviour: "a selector for a label that is none", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.NamespaceSelector.MatchLabels = map[string]string{"team": "not a value"}
		}), Wrong: []string{"spec.namespaceSelector.matchLabels webhook"}},
		{Behaviour: "a weight of nothing", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.FairSharing = &kueue.FairSharing{Weight: quantity("0")} })},
		{Behaviour: "a negative weight", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.FairSharing = &kueue.FairSharing{Weight: quantity("-1")} }), Wrong: []string{"spec.fairSharing.weight webhook"}},
		{Behaviour: "a weight too small", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.FairSharing = &kueue.FairSharing{Weight: quantity("1n")} }), Wrong: []string{"spec.fairSharing.weight webhook"}},
		{Behaviour: "an admission scope without a mode", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) { s.AdmissionScope = &kueue.AdmissionScope{} }), Wrong: []string{"spec.admissionScope.admissionMode"}},
		{Behaviour: "an unknown admission mode", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: "Fair"}
		}), Wrong: []string{"spec.admissionScope.admissionMode"}},
	}
	cases = append(cases, preemptions()...)
	return append(cases, checksOfQueues()...)
}

func preemptions() []Case {
	preemption := func(preemption kueue.ClusterQueuePreemption) *kueue.ClusterQueue {
		return clusterQueue(func(s *kueue.ClusterQueueSpec) { s.Preemption = &preemption })
	}
	fungibility := func(borrow, preempt kueue.FlavorFungibilityPolicy, preference kueue.FlavorFungibilityPreference) *kueue.ClusterQueue {
		return clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.FlavorFungibility = &kueue.FlavorFungibility{WhenCanBorrow: borrow, WhenCanPreempt: preempt, Preference: word(preference)}
		})
	}
	borrow := &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyLowerPriority}
	return []Case{
		{Behaviour: "preemption in every way", Object: preemption(kueue.ClusterQueuePreemption{WithinClusterQueue: "LowerOrNewerEqualPriority", ReclaimWithinCohort: "Any", BorrowWithinCohort: borrow})},
		{Behaviour: "preemption in no way said", Object: preemption(kueue.ClusterQueuePreemption{BorrowWithinCohort: &kueue.BorrowWithinCohort{}})},
		{Behaviour: "Any within the queue", Object: preemption(kueue.ClusterQueuePreemption{WithinClusterQueue: "Any"}), Wrong: []string{"spec.preemption.withinClusterQueue"}},
		{Behaviour: "newer ones of the cohort", Object: preemption(kueue.ClusterQueuePreemption{ReclaimWithinCohort: "LowerOrNewerEqualPriority"}), Wrong: []string{"spec.preemption.reclaimWithinCohort"}},
		{Behaviour: "any to borrow", Object: preemption(kueue.ClusterQueuePreemption{ReclaimWithinCohort: "Any", BorrowWithinCohort: &kueue.BorrowWithinCohort{Policy: "Any"}}), Wrong: []string{"spec.preemption.borrowWithinCohort.policy"}},
		{Behaviour: "borrowing by force without reclaiming", Object: preemption(kueue.ClusterQueuePreemption{ReclaimWithinCohort: "Never", BorrowWithinCohort: borrow}), Wrong: []string{"spec.preemption.borrowWithinCohort.policy"}},
		{Behaviour: "borrowing by force without reclaiming, by default", Object: preemption(kueue.ClusterQueuePreemption{BorrowWithinCohort: borrow}), Wrong: []string{"spec.preemption.borrowWithinCohort.policy"}},

		{Behaviour: "a preference where there is a choice", Object: fungibility("TryNextFlavor", "TryNextFlavor", "PreemptionOverBorrowing")},
		{Behaviour: "a preference where there is one by default", Object: fungibility("TryNextFlavor", "", "BorrowingOverPreemption")},
		{Behaviour: "a preference where there is no choice", Object: fungibility("MayStopSearch", "TryNextFlavor", "PreemptionOverBorrowing"), Wrong: []string{"spec.flavorFungibility.preference"}},
		{Behaviour: "a preference where there is no choice by default", Object: fungibility("", "", "PreemptionOverBorrowing"), Wrong: []string{"spec.flavorFungibility.preference"}},
		{Behaviour: "an unknown preference", Object: fungibility("TryNextFlavor", "TryNextFlavor", "Neither"), Wrong: []string{"spec.flavorFungibility.preference"}},
		{Behaviour: "the fungibility of v1beta1", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.FlavorFungibility = &kueue.FlavorFungibility{WhenCanBorrow: "Borrow", WhenCanPreempt: "Preempt"}
		}), Wrong: []string{"spec.flavorFungibility.whenCanBorrow", "spec.flavorFungibility.whenCanPreempt"}},
	}
}

// withChecks is a change that gives a queue admission checks.
func withChecks(checks ...kueue.AdmissionCheckStrategyRule) func(*kueue.ClusterQueueSpec) {
	return func(spec *kueue.ClusterQueueSpec) {
		spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{AdmissionChecks: checks}
	}
}

func check(name kueue.AdmissionCheckReference, flavors ...kueue.ResourceFlavorReference) kueue.AdmissionCheckStrategyRule {
	return kueue.AdmissionCheckStrategyRule{Name: name, OnFlavors: flavors}
}

func checksOfQueues() []Case {
	const first = "spec.admissionChecksStrategy.admissionChecks[0]"
	return []Case{
		{Behaviour: "checks on flavors and on all", Object: clusterQueue(withChecks(check("one", "a", "gpu"), check("two")))},
		{Behaviour: "a strategy without checks", Object: clusterQueue(withChecks()), Wrong: []string{"spec.admissionChecksStrategy.admissionChecks"}},
		{Behaviour: "a check without a name", Object: clusterQueue(withChecks(check(""))), Wrong: []string{first + ".name"}},
		{Behaviour: "a check's name that is too long", Object: clusterQueue(withChecks(check(kueue.AdmissionCheckReference(strings.Repeat("a", 317))))), Wrong: []string{first + ".name"}},
		{Behaviour: "a check twice", Object: clusterQueue(withChecks(check("one"), check("one"))), Wrong: []string{"spec.admissionChecksStrategy.admissionChecks[1].name"}},
		{Behaviour: "a check on a flavor of another queue", Object: clusterQueue(withChecks(check("one", "a", "other"))), Wrong: []string{first + ".onFlavors[1] webhook"}},
		{Behaviour: "a check on a flavor twice", Object: clusterQueue(withChecks(check("one", "a", "a"))), Wrong: []string{first + ".onFlavors[1]"}},
		{Behaviour: "too many checks", Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{}
			for _, name := range numbered[kueue.AdmissionCheckReference]("c", 65) {
				s.AdmissionChecksStrategy.AdmissionChecks = append(s.AdmissionChecksStrategy.AdmissionChecks, check(name))
			}
		}), Wrong: []string{"spec.admissionChecksStrategy.admissionChecks"}},
	}
}

func clusterQueueUpdates() []Case {
	return []Case{
		{Behaviour: "a queue changes its strategy and cohort", Existing: clusterQueue(), Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.QueueingStrategy, s.CohortName = kueue.StrictFIFO, "other"
		})},
		{Behaviour: "a queue leaves a cohort that its limits need", Existing: clusterQueue(), Object: clusterQueue(func(s *kueue.ClusterQueueSpec) {
			s.CohortName = ""
			s.ResourceGroups[1].Flavors[0].Resources[0].BorrowingLimit = quantity("1")
		}), Wrong: []string{"spec.resourceGroups[1].flavors[0].resources[0].borrowingLimit"}},
		{
			Behaviour: "a check on a flavor of another queue that was there stays",
			Existing:  clusterQueue(withChecks(check("one", "other"))),
			Object:    clusterQueue(withChecks(check("one", "other"), check("two"))),
		},
		{
			Behaviour: "a check on a flavor of another queue that was there stays not when it changes",
			Existing:  clusterQueue(withChecks(check("one", "other"))),
			Object:    clusterQueue(withChecks(check("one", "other", "a"))),
			Wrong:     []string{"spec.admissionChecksStrategy.admissionChecks[0].onFlavors[0] webhook"},
		},
	}
}

func cohorts() []Case {
	cohort := func(parent kueue.CohortReference, groups ...kueue.ResourceGroup) *kueue.Cohort {
		return &kueue.Cohort{ObjectMeta: named("research"), Spec: kueue.CohortSpec{ParentName: parent, ResourceGroups: groups}}
	}
	limited := func(change func(*kueue.ResourceQuota)) kueue.ResourceGroup {
		group := group([]corev1.ResourceName{"cpu"}, "a")
		change(&group.Flavors[0].Resources[0])
		return group
	}
	const quota = "spec.resourceGroups[0].flavors[0].resources[0]"
	return []Case{
		{Behaviour: "a cohort as it should be", Object: cohort("all", group([]corev1.ResourceName{"cpu", "memory"}, "a", "b"))},
		{Behaviour: "a cohort without anything", Object: cohort("")},
		{Behaviour: "a parent's name that is none", Object: cohort("All"), Wrong: []string{"spec.parentName"}},
		{Behaviour: "a cohort below itself", Object: cohort("research"), Wrong: []string{"spec.parentName ours"}},
		{Behaviour: "a cohort that lends more than it has", Object: cohort("all", limited(func(q *kueue.ResourceQuota) { q.LendingLimit = quantity("100") }))},
		{Behaviour: "a borrowing limit at the root", Object: cohort("", limited(func(q *kueue.ResourceQuota) { q.BorrowingLimit = quantity("1") })), Wrong: []string{quota + ".borrowingLimit webhook"}},
		{Behaviour: "a lending limit at the root", Object: cohort("", limited(func(q *kueue.ResourceQuota) { q.LendingLimit = quantity("1") })), Wrong: []string{quota + ".lendingLimit webhook"}},
		{Behaviour: "a cohort's negative quota", Object: cohort("", limited(func(q *kueue.ResourceQuota) { q.NominalQuota = *quantity("-1") })), Wrong: []string{quota + ".nominalQuota webhook"}},
		{Behaviour: "a cohort's flavor that lacks a resource", Object: cohort("", limited(func(q *kueue.ResourceQuota) { q.Name = "memory" })), Wrong: []string{quota + ".name webhook"}},
		{Behaviour: "a cohort's negative weight", Object: &kueue.Cohort{
			ObjectMeta: named("research"), Spec: kueue.CohortSpec{FairSharing: &kueue.FairSharing{Weight: quantity("-1")}},
		}, Wrong: []string{"spec.fairSharing.weight webhook"}},
		{Behaviour: "a cohort that moves", Existing: cohort("all"), Object: cohort("other")},
	}
}

func localQueues() []Case {
	queue := func(clusterQueue kueue.ClusterQueueReference) *kueue.LocalQueue {
		return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "user-queue", Namespace: Namespace}, Spec: kueue.LocalQueueSpec{ClusterQueue: clusterQueue}}
	}
	stopped := queue("queue")
	stopped.Spec.StopPolicy = word(kueue.Hold)
	wrong := queue("queue")
	wrong.Spec.StopPolicy = word[kueue.StopPolicy]("Drain")
	light := queue("queue")
	light.Spec.FairSharing = &kueue.FairSharing{Weight: quantity("-1")}
	return []Case{
		{Behaviour: "a local queue as it should be", Object: queue("queue")},
		{Behaviour: "a local queue that leads nowhere", Object: queue("")},
		{Behaviour: "a local queue that leads to a name that is none", Object: queue("Queue"), Wrong: []string{"spec.clusterQueue"}},
		{Behaviour: "a stopped local queue", Object: stopped},
		{Behaviour: "a local queue's unknown stop policy", Object: wrong, Wrong: []string{"spec.stopPolicy"}},
		{Behaviour: "a local queue's negative weight, which nobody checks", Object: light},
		{Behaviour: "a local queue is led elsewhere", Existing: queue("queue"), Object: queue("other"), Wrong: []string{"spec.clusterQueue"}},
		{Behaviour: "a local queue is led somewhere", Existing: queue(""), Object: queue("queue")},
		{Behaviour: "a local queue is led nowhere", Existing: queue("queue"), Object: queue("")},
		{Behaviour: "a local queue is stopped", Existing: queue("queue"), Object: stopped},
	}
}

func word[T ~string](word T) *T { return &word }
