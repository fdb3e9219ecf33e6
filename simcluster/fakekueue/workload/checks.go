package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

func findCheck(w *kueue.Workload, name kueue.AdmissionCheckReference) *kueue.AdmissionCheckState {
	for i := range w.Status.AdmissionChecks {
		if w.Status.AdmissionChecks[i].Name == name {
			return &w.Status.AdmissionChecks[i]
		}
	}
	return nil
}

func checksReady(w *kueue.Workload) bool {
	return !slices.ContainsFunc(w.Status.AdmissionChecks, func(c kueue.AdmissionCheckState) bool { return c.State != kueue.CheckStateReady })
}

// checksIn lists the checks of a state, by name.
func checksIn(w *kueue.Workload, state kueue.CheckState) []kueue.AdmissionCheckState {
	checks := slices.DeleteFunc(slices.Clone(w.Status.AdmissionChecks), func(c kueue.AdmissionCheckState) bool { return c.State != state })
	slices.SortFunc(checks, func(a, b kueue.AdmissionCheckState) int { return cmp.Compare(a.Name, b.Name) })
	return checks
}

// RequiredChecks are the checks of a ClusterQueue that w has to pass: those of the flavors it was given or, without
// quota, those that apply whatever it is given.
func RequiredChecks(w *kueue.Workload, queue *kueue.ClusterQueue) []kueue.AdmissionCheckReference {
	if queue.Spec.AdmissionChecksStrategy == nil {
		return nil
	}
	var given, all []kueue.ResourceFlavorReference
	if w.Status.Admission != nil {
		for _, set := range w.Status.Admission.PodSetAssignments {
			for _, flavor := range set.Flavors {
				given = append(given, flavor)
			}
		}
	}
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			all = append(all, flavor.Name)
		}
	}
	var required []kueue.AdmissionCheckReference
	for _, rule := range queue.Spec.AdmissionChecksStrategy.AdmissionChecks {
		on := rule.OnFlavors
		if len(on) == 0 {
			on = all
		}
		has := func(flavor kueue.ResourceFlavorReference) bool { return slices.Contains(on, flavor) }
		hasNot := func(flavor kueue.ResourceFlavorReference) bool { return !has(flavor) }
		if w.Status.Admission != nil && slices.ContainsFunc(given, has) || w.Status.Admission == nil && !slices.ContainsFunc(all, hasNot) {
			required = append(required, rule.Name)
		}
	}
	return required
}

// SyncChecks gives w a state for every required check and removes the others; it reports a change.
func SyncChecks(w *kueue.Workload, required []kueue.AdmissionCheckReference, now time.Time) bool {
	var checks []kueue.AdmissionCheckState
	for _, name := range required {
		if state := findCheck(w, name); state != nil {
			checks = append(checks, *state)
		} else {
			checks = append(checks, kueue.AdmissionCheckState{Name: name, State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(now)})
		}
	}
	slices.SortFunc(checks, func(a, b kueue.AdmissionCheckState) int { return cmp.Compare(a.Name, b.Name) })
	names := func(a, b kueue.AdmissionCheckState) bool { return a.Name == b.Name }
	if slices.EqualFunc(checks, w.Status.AdmissionChecks, names) {
		return false
	}
	w.Status.AdmissionChecks = checks
	return true
}

// Failed reports which checks of w failed: they must be tried again (w is to be evicted), or they rejected it (it is to
// be deactivated).
func Failed(w *kueue.Workload) (retry, rejected string) {
	if checks := checksIn(w, kueue.CheckStateRejected); len(checks) > 0 {
		return "", checksMessage(checks, kueue.CheckStateRejected)
	}
	if checks := checksIn(w, kueue.CheckStateRetry); len(checks) > 0 {
		return "Evicted due to " + checksMessage(checks, kueue.CheckStateRetry), ""
	}
	return "", ""
}

// RetryAt is when the checks that must be tried again allow it; the zero time where none has an opinion.
func RetryAt(w *kueue.Workload) time.Time {
	var at time.Time
	for _, check := range w.Status.AdmissionChecks {
		if check.RequeueAfterSeconds == nil || check.State != kueue.CheckStateRetry {
			continue
		}
		if then := check.LastTransitionTime.Add(time.Duration(*check.RequeueAfterSeconds) * time.Second); then.After(at) {
			at = then
		}
	}
	return at
}

func checksMessage(checks []kueue.AdmissionCheckState, state kueue.CheckState) string {
	var parts []string
	for _, check := range checks {
		part := fmt.Sprintf("%q", check.Name)
		if check.Message != "" {
			part += " (" + check.Message + ")"
		}
		parts = append(parts, part)
	}
	noun := "AdmissionCheck"
	if len(checks) > 1 {
		noun = "AdmissionChecks"
	}
	return fmt.Sprintf("%s in %s state: %s", noun, state, strings.Join(parts, "; "))
}

// resetChecks makes all checks of an evicted workload pending.
func resetChecks(w *kueue.Workload, now time.Time) {
	for i := range w.Status.AdmissionChecks {
		check := &w.Status.AdmissionChecks[i]
		if check.State == kueue.CheckStatePending {
			continue
		}
		var retries *int32
		if check.State == kueue.CheckStateRetry {
			retries = ptr.To(ptr.Deref(check.RetryCount, 0) + 1)
		}
		*check = kueue.AdmissionCheckState{
			Name:                check.Name,
			State:               kueue.CheckStatePending,
			Message:             "Reset to Pending after eviction. Previously: " + string(check.State),
			LastTransitionTime:  metav1.NewTime(now),
			RequeueAfterSeconds: check.RequeueAfterSeconds,
			RetryCount:          retries,
		}
	}
}
