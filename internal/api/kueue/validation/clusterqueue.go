package validation

import (
	"cmp"
	"fmt"
	"slices"

	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// How many admission checks a ClusterQueue may have, flavors each of them, and characters its name.
const (
	mostAdmissionChecks   = 64
	longestAdmissionCheck = 316
	mostFlavorsOfACheck   = 64
)

// ValidateClusterQueue reports why a queue would be refused.
func ValidateClusterQueue(queue *kueue.ClusterQueue) field.ErrorList {
	return append(clusterQueue(queue), admissionChecks(queue, nil)...)
}

// ValidateClusterQueueUpdate reports why a change of a queue would be refused. Nothing of a ClusterQueue is immutable.
func ValidateClusterQueueUpdate(updated, existing *kueue.ClusterQueue) field.ErrorList {
	return append(clusterQueue(updated), admissionChecks(updated, existing)...)
}

func clusterQueue(queue *kueue.ClusterQueue) field.ErrorList {
	spec, path := &queue.Spec, field.NewPath("spec")
	errs := metadata(&queue.ObjectMeta, false)
	if spec.CohortName != "" {
		errs = append(errs, reference(spec.CohortName, path.Child("cohortName"))...)
	}
	owner := quotaOwner{above: "cohortName", hasAbove: spec.CohortName != ""}
	errs = append(errs, resourceGroups(spec.ResourceGroups, owner, path.Child("resourceGroups"))...)
	errs = append(errs, oneOf(spec.QueueingStrategy, path.Child("queueingStrategy"), kueue.StrictFIFO, kueue.BestEffortFIFO)...)
	errs = append(errs, from(Webhook, metavalidation.ValidateLabelSelector(
		spec.NamespaceSelector, metavalidation.LabelSelectorValidationOptions{}, path.Child("namespaceSelector"))...)...)
	errs = append(errs, preemption(spec.Preemption, path.Child("preemption"))...)
	errs = append(errs, flavorFungibility(spec.FlavorFungibility, path.Child("flavorFungibility"))...)
	errs = append(errs, stopPolicy(spec.StopPolicy, path.Child("stopPolicy"))...)
	errs = append(errs, fairSharing(spec.FairSharing, path.Child("fairSharing"))...)
	if scope := spec.AdmissionScope; scope != nil {
		path := path.Child("admissionScope", "admissionMode")
		if scope.AdmissionMode == "" {
			errs = append(errs, field.Required(path, "say which mode is meant"))
		}
		errs = append(errs, oneOf(scope.AdmissionMode, path, kueue.UsageBasedAdmissionFairSharing, kueue.NoAdmissionFairSharing)...)
	}
	return errs
}

func preemption(preemption *kueue.ClusterQueuePreemption, path *field.Path) field.ErrorList {
	if preemption == nil {
		return nil
	}
	errs := oneOf(preemption.WithinClusterQueue, path.Child("withinClusterQueue"),
		kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyLowerOrNewerEqualPriority)
	errs = append(errs, oneOf(preemption.ReclaimWithinCohort, path.Child("reclaimWithinCohort"),
		kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority, kueue.PreemptionPolicyAny)...)
	borrow := preemption.BorrowWithinCohort
	if borrow == nil {
		return errs
	}
	policy := path.Child("borrowWithinCohort", "policy")
	errs = append(errs, oneOf(borrow.Policy, policy, kueue.BorrowWithinCohortPolicyNever, kueue.BorrowWithinCohortPolicyLowerPriority)...)
	if cmp.Or(preemption.ReclaimWithinCohort, kueue.PreemptionPolicyNever) == kueue.PreemptionPolicyNever &&
		cmp.Or(borrow.Policy, kueue.BorrowWithinCohortPolicyNever) != kueue.BorrowWithinCohortPolicyNever {
		errs = append(errs, field.Invalid(policy, borrow.Policy,
			"needs reclaimWithinCohort LowerPriority or Any: a queue that does not take its own quota back cannot evict others to borrow"))
	}
	return errs
}

func flavorFungibility(fungibility *kueue.FlavorFungibility, path *field.Path) field.ErrorList {
	if fungibility == nil {
		return nil
	}
	errs := oneOf(fungibility.WhenCanBorrow, path.Child("whenCanBorrow"), kueue.MayStopSearch, kueue.TryNextFlavor)
	errs = append(errs, oneOf(fungibility.WhenCanPreempt, path.Child("whenCanPreempt"), kueue.MayStopSearch, kueue.TryNextFlavor)...)
	if fungibility.Preference == nil {
		return errs
	}
	preference := path.Child("preference")
	words := []kueue.FlavorFungibilityPreference{kueue.BorrowingOverPreemption, kueue.PreemptionOverBorrowing}
	if !slices.Contains(words, *fungibility.Preference) {
		errs = append(errs, field.NotSupported(preference, *fungibility.Preference, words))
	}
	borrow, preempt := cmp.Or(fungibility.WhenCanBorrow, kueue.MayStopSearch), cmp.Or(fungibility.WhenCanPreempt, kueue.TryNextFlavor)
	if borrow != kueue.TryNextFlavor || preempt != kueue.TryNextFlavor {
		errs = append(errs, field.Invalid(preference, *fungibility.Preference,
			fmt.Sprintf("needs whenCanBorrow and whenCanPreempt to be TryNextFlavor (they are %s and %s): otherwise the search ends before there is a choice", borrow, preempt)))
	}
	return errs
}

// admissionChecks checks the checks. What existing has wrong about flavors, and updated has not touched, is not held
// against updated (Kueue's feature gate RejectUpdatesToCQWithInvalidOnFlavors, off by default).
func admissionChecks(updated, existing *kueue.ClusterQueue) field.ErrorList {
	if updated.Spec.AdmissionChecksStrategy == nil {
		return nil
	}
	checks, path := updated.Spec.AdmissionChecksStrategy.AdmissionChecks, field.NewPath("spec", "admissionChecksStrategy", "admissionChecks")
	errs := items(len(checks), path, 1, mostAdmissionChecks)
	flavors := flavorsOf(updated)
	for i, check := range checks {
		path := path.Index(i)
		errs = append(errs, length(string(check.Name), path.Child("name"), 1, longestAdmissionCheck)...)
		if slices.ContainsFunc(checks[:i], func(c kueue.AdmissionCheckStrategyRule) bool { return c.Name == check.Name }) {
			errs = append(errs, duplicate(path.Child("name"), check.Name, "a check stands here once: name all its flavors in one onFlavors"))
		}
		errs = append(errs, items(len(check.OnFlavors), path.Child("onFlavors"), 0, mostFlavorsOfACheck)...)
		tolerated := existing != nil && flavorsOf(existing).Equal(flavors) && sameCheck(existing, check)
		for j, flavor := range check.OnFlavors {
			path := path.Child("onFlavors").Index(j)
			errs = append(errs, requiredReference(flavor, path)...)
			if slices.Contains(check.OnFlavors[:j], flavor) {
				errs = append(errs, duplicate(path, flavor, "a flavor stands here once"))
			}
			if !flavors.Has(flavor) && !tolerated {
				errs = append(errs, from(Webhook, field.Invalid(path, flavor,
					fmt.Sprintf("is not a flavor of this queue; its resource groups have %s", list(sets.List(flavors)))))...)
			}
		}
	}
	return errs
}

// sameCheck holds when the queue has that check for the same flavors.
func sameCheck(queue *kueue.ClusterQueue, check kueue.AdmissionCheckStrategyRule) bool {
	return queue.Spec.AdmissionChecksStrategy != nil &&
		slices.ContainsFunc(queue.Spec.AdmissionChecksStrategy.AdmissionChecks, func(c kueue.AdmissionCheckStrategyRule) bool {
			return c.Name == check.Name && sets.New(c.OnFlavors...).Equal(sets.New(check.OnFlavors...))
		})
}

func flavorsOf(queue *kueue.ClusterQueue) sets.Set[kueue.ResourceFlavorReference] {
	flavors := sets.New[kueue.ResourceFlavorReference]()
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			flavors.Insert(flavor.Name)
		}
	}
	return flavors
}
