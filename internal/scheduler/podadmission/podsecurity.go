package podadmission

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// evaluator has the checks of Pod Security, by the library that the API server uses.
var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// podSecurity holds the pod to the level that its namespace's labels enforce (k8s.io/pod-security-admission). Without a
// label nothing is enforced, unless the API server is configured otherwise.
func podSecurity(namespace *corev1.Namespace, pod *corev1.Pod) *Refusal {
	privileged := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	// A level that cannot be read is the strictest one.
	enforced, _ := api.PolicyToEvaluate(namespace.Labels, api.Policy{Enforce: privileged, Audit: privileged, Warn: privileged})
	if enforced.Enforce.Level == api.LevelPrivileged {
		return nil
	}
	checks, err := evaluator()
	if err != nil {
		return refuse("Pod Security cannot be evaluated: %v", err)
	}
	result := policy.AggregateCheckResults(checks.EvaluatePod(enforced.Enforce, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return nil
	}
	return refuse("violates PodSecurity %q: %s", enforced.Enforce.String(), result.ForbiddenDetail())
}
