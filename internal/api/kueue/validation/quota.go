package validation

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// How large quotas may be: one group, and all groups of a ClusterQueue.
const (
	mostGroups         = 16
	mostOfAGroup       = 64
	mostOfAQueue       = 256
	mostQuotasOfAGroup = 512
)

// leastWeight is where the weights begin that are too small to reckon with: 10^-9.
const leastWeight = "1n"

// quotaOwner is what differs between the quotas of a ClusterQueue and those of a cohort.
type quotaOwner struct {
	cohort   bool
	above    string // the field that names the cohort above it
	hasAbove bool
}

func resourceGroups(groups []kueue.ResourceGroup, owner quotaOwner, path *field.Path) field.ErrorList {
	errs := items(len(groups), path, 0, mostGroups)
	resources, flavors := sets.New[corev1.ResourceName](), sets.New[kueue.ResourceFlavorReference]()
	for i, group := range groups {
		errs = append(errs, resourceGroup(group, owner, resources, flavors, path.Index(i))...)
	}
	if !owner.cohort {
		errs = append(errs, totals(groups, path)...)
	}
	return errs
}

// resourceGroup checks one group; resources and flavors are those of the groups before it, to which it adds its own.
func resourceGroup(
	group kueue.ResourceGroup, owner quotaOwner, resources sets.Set[corev1.ResourceName],
	flavors sets.Set[kueue.ResourceFlavorReference], path *field.Path,
) field.ErrorList {
	errs := items(len(group.CoveredResources), path.Child("coveredResources"), 1, mostOfAGroup)
	for i, name := range group.CoveredResources {
		path := path.Child("coveredResources").Index(i)
		errs = append(errs, labelKey(name, "the name of a resource", path)...)
		if resources.Has(name) {
			errs = append(errs, from(Webhook, duplicate(path, name, "a resource may stand in one resource group only, and once: move all flavors that have it into one group"))...)
		}
		resources.Insert(name)
	}
	errs = append(errs, items(len(group.Flavors), path.Child("flavors"), 1, mostOfAGroup)...)
	inThisGroup := sets.New[kueue.ResourceFlavorReference]()
	for i, flavor := range group.Flavors {
		path := path.Child("flavors").Index(i)
		errs = append(errs, requiredReference(flavor.Name, path.Child("name"))...)
		switch {
		case inThisGroup.Has(flavor.Name):
			errs = append(errs, duplicate(path.Child("name"), flavor.Name, "a flavor may stand in a resource group once"))
		case flavors.Has(flavor.Name):
			errs = append(errs, from(Webhook, duplicate(path.Child("name"), flavor.Name, "a flavor may stand in one resource group only: put all its resources into one group"))...)
		}
		inThisGroup.Insert(flavor.Name)
		flavors.Insert(flavor.Name)
		errs = append(errs, flavorQuotas(flavor, group.CoveredResources, owner, path)...)
	}
	return errs
}

func flavorQuotas(flavor kueue.FlavorQuotas, covered []corev1.ResourceName, owner quotaOwner, path *field.Path) field.ErrorList {
	path = path.Child("resources")
	errs := items(len(flavor.Resources), path, 1, mostOfAGroup)
	if len(flavor.Resources) != len(covered) {
		errs = append(errs, field.Invalid(path, len(flavor.Resources),
			fmt.Sprintf("flavor %q must have a quota for each of coveredResources (%s), no more and no less; 0 is a quota", flavor.Name, list(covered))))
	}
	for i, quota := range flavor.Resources {
		name := path.Index(i).Child("name")
		switch {
		case quota.Name == "":
			errs = append(errs, field.Required(name, "name the resource"))
		case slices.ContainsFunc(flavor.Resources[:i], func(q kueue.ResourceQuota) bool { return q.Name == quota.Name }):
			errs = append(errs, duplicate(name, quota.Name, "a flavor has one quota for a resource"))
		case i < len(covered) && quota.Name != covered[i]:
			errs = append(errs, from(Webhook, field.Invalid(name, quota.Name,
				fmt.Sprintf("quotas must be in the order of coveredResources (%s), where %s stands here", list(covered), covered[i])))...)
		}
		errs = append(errs, resourceQuota(quota, owner, path.Index(i))...)
	}
	return errs
}

func resourceQuota(quota kueue.ResourceQuota, owner quotaOwner, path *field.Path) field.ErrorList {
	errs := notNegative(&quota.NominalQuota, path.Child("nominalQuota"))
	if borrowing := quota.BorrowingLimit; borrowing != nil {
		path, origin := path.Child("borrowingLimit"), CRD
		if owner.cohort {
			origin = Webhook
		}
		errs = append(errs, notNegative(borrowing, path)...)
		errs = append(errs, from(origin, needsAbove(borrowing, owner, "borrows from nobody", path)...)...)
	}
	if lending := quota.LendingLimit; lending != nil {
		path := path.Child("lendingLimit")
		errs = append(errs, notNegative(lending, path)...)
		errs = append(errs, from(Webhook, needsAbove(lending, owner, "lends to nobody", path)...)...)
		if !owner.cohort && lending.Cmp(quota.NominalQuota) > 0 { // a cohort lends its members' quota too
			errs = append(errs, from(Webhook, field.Invalid(path, lending.String(),
				fmt.Sprintf("is more than nominalQuota (%s), and no more than that can be lent; leave it out to lend everything", quota.NominalQuota.String())))...)
		}
	}
	return errs
}

func needsAbove(limit *resource.Quantity, owner quotaOwner, alone string, path *field.Path) field.ErrorList {
	if owner.hasAbove {
		return nil
	}
	return field.ErrorList{field.Invalid(path, limit.String(), fmt.Sprintf("needs %s, without which it %s: set that, or leave the limit out", owner.above, alone))}
}

// totals checks what all groups of a ClusterQueue have together. The CRDs do not.
func totals(groups []kueue.ResourceGroup, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	flavors, resources := 0, 0
	for i, group := range groups {
		flavors += len(group.Flavors)
		resources += len(group.CoveredResources)
		quotas := 0
		for _, flavor := range group.Flavors {
			quotas += len(flavor.Resources)
		}
		if quotas > mostQuotasOfAGroup {
			errs = append(errs, field.Invalid(path.Index(i), quotas, fmt.Sprintf("a resource group may have %d quotas (flavors times resources)", mostQuotasOfAGroup)))
		}
	}
	if flavors > mostOfAQueue {
		errs = append(errs, field.Invalid(path, flavors, fmt.Sprintf("all resource groups together may have %d flavors", mostOfAQueue)))
	}
	if resources > mostOfAQueue {
		errs = append(errs, field.Invalid(path, resources, fmt.Sprintf("all resource groups together may cover %d resources", mostOfAQueue)))
	}
	return from(Webhook, errs...)
}

// fairSharing checks the weight of a ClusterQueue or cohort. Nobody checks that of a LocalQueue.
func fairSharing(sharing *kueue.FairSharing, path *field.Path) field.ErrorList {
	if sharing == nil || sharing.Weight == nil {
		return nil
	}
	path, weight := path.Child("weight"), sharing.Weight
	if weight.Sign() > 0 && weight.Cmp(resource.MustParse(leastWeight)) <= 0 {
		return from(Webhook, field.Invalid(path, weight.String(), "is too small to reckon with: it must be 0, or more than 10^-9"))
	}
	return notNegative(weight, path)
}

// notNegative checks a quantity. The CRDs do not.
func notNegative(quantity *resource.Quantity, path *field.Path) field.ErrorList {
	if quantity.Sign() >= 0 {
		return nil
	}
	return from(Webhook, field.Invalid(path, quantity.String(), "must not be negative"))
}

func duplicate(path *field.Path, value any, detail string) *field.Error {
	err := field.Duplicate(path, value)
	err.Detail = detail
	return err
}
