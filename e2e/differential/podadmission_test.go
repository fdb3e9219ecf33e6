package differential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	quotacore "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/utils/clock"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// TestPodsAreAdmittedAsByTheAPIServer holds what is computed of LimitRanges and ResourceQuotas to the plugins of
// kube-apiserver: the same pods are rejected, for the same reasons, and the others get the same requests and limits.
func TestPodsAreAdmittedAsByTheAPIServer(t *testing.T) {
	first, count := seeds(5000, 500_000)
	Each(first, count, 8, func(seed uint64) {
		g := &admissionCase{rand.New(rand.NewPCG(seed, 16))} //nolint:gosec // repeatable, and no secret
		limits, quotas, pods := g.limits(), g.quotas(), g.pods()
		ours := podadmission.New(podadmission.Cluster{LimitRanges: limits, Quotas: quotas}, nil)
		theirs := &plugins{limits: limits}
		for _, quota := range quotas {
			theirs.quotas = append(theirs.quotas, *quota.DeepCopy())
		}
		for i, pod := range pods {
			got, refusal := ours.Admit(pod)
			want, err := theirs.admit(pod)
			if failure := compareAdmission(got, refusal, want, err); failure != "" {
				t.Errorf("seed %d, pod %d: %s\nreplay with: go -C e2e test ./differential -run %s -seed %d", seed, i, failure, t.Name(), seed)
				return
			}
		}
	})
}

func compareAdmission(got *corev1.Pod, refusal *podadmission.Refusal, want *corev1.Pod, err error) string {
	switch {
	case refusal == nil && err == nil:
		for i := range want.Spec.Containers {
			ours, theirs := got.Spec.Containers[i].Resources, want.Spec.Containers[i].Resources
			if !equality.Semantic.DeepEqual(ours, theirs) {
				return fmt.Sprintf("container %d has %v, not %v", i, &ours, &theirs)
			}
		}
	case refusal == nil || err == nil:
		return fmt.Sprintf("refusal %v, the API server's %v", refusal, err)
	case !slices.Equal(violations(refusal.Message), violations(err.Error())):
		return fmt.Sprintf("refusal %q, the API server's %q", refusal.Message, err)
	}
	return ""
}

// complaints are the sentences of a refusal, in an order of their own: plugins go over maps.
func violations(message string) []string {
	_, quota, isQuota := strings.Cut(message, "quota: ")
	if isQuota {
		message = quota // what is before it names the pod
	}
	all := strings.Split(strings.Trim(message, "[]"), ", ")
	slices.Sort(all)
	return all
}

// plugins are those of kube-apiserver.
type plugins struct {
	limits []*corev1.LimitRange
	quotas []corev1.ResourceQuota
}

func (p *plugins) admit(pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	corev1conversion.SetObjectDefaults_Pod(pod)
	internal := &core.Pod{}
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
		return nil, err
	}
	for _, limits := range p.limits {
		limits = limits.DeepCopy()
		corev1conversion.SetObjectDefaults_LimitRange(limits)
		if err := limitranger.PodMutateLimitFunc(limits, internal); err != nil {
			return nil, err
		}
	}
	if err := validResources(&internal.Spec); err != nil { // between mutating and validating admission, as the API server does
		return nil, err
	}
	for _, limits := range p.limits {
		if err := limitranger.PodValidateLimitFunc(limits, internal); err != nil {
			return nil, err
		}
	}
	kind, plural := core.Kind("Pod").WithVersion("v1"), core.Resource("pods").WithVersion("v1")
	attributes := admission.NewAttributesRecord(internal, nil, kind, pod.Namespace, pod.Name, plural, "", admission.Create, nil, false, nil)
	quotas, err := resourcequota.CheckRequest(p.quotas, attributes, quotacore.NewPodEvaluator(nil, clock.RealClock{}), nil)
	if err != nil {
		return nil, err
	}
	p.quotas = quotas
	admitted := &corev1.Pod{}
	return admitted, corev1conversion.Convert_core_Pod_To_v1_Pod(internal, admitted, nil)
}

// validResources is the part of the API server's validation of a pod that depends on what admission has added: requests
// within limits. The amounts themselves are the pod's author's, and drawn without regard to which of them are valid.
func validResources(spec *core.PodSpec) error {
	var errs field.ErrorList
	for name, containers := range map[string][]core.Container{"containers": spec.Containers, "initContainers": spec.InitContainers} {
		for i := range containers {
			at := field.NewPath("spec", name).Index(i).Child("resources")
			errs = append(errs, validation.ValidateContainerResourceRequirements(&containers[i].Resources, nil, at, validation.PodValidationOptions{})...)
		}
	}
	return errs.Filter(func(err error) bool { return !strings.Contains(err.Error(), " limit of ") }).ToAggregate()
}

// admissionCase draws pods and the objects that affect their admission.
type admissionCase struct{ *rand.Rand }

func (g *admissionCase) chance(one int) bool { return g.IntN(one) == 0 }

func (g *admissionCase) amounts(names ...corev1.ResourceName) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range names {
		if g.chance(2) {
			list[name] = resource.MustParse([]string{"0", "1", "2", "500m", "3"}[g.IntN(5)])
		}
	}
	return list
}

func (g *admissionCase) limits() []*corev1.LimitRange {
	var all []*corev1.LimitRange
	for i := range g.IntN(3) {
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("limits-%d", i)}}
		for range 1 + g.IntN(2) {
			item := corev1.LimitRangeItem{Type: corev1.LimitTypeContainer}
			if g.chance(4) {
				item.Type = corev1.LimitTypePod
			} else {
				item.Default, item.DefaultRequest = g.amounts("cpu", "memory"), g.amounts("cpu", "memory")
			}
			if g.chance(3) {
				item.Max = g.amounts("cpu", "memory")
			}
			if g.chance(3) {
				item.Min = g.amounts("cpu")
			}
			if g.chance(6) {
				item.MaxLimitRequestRatio = corev1.ResourceList{"cpu": resource.MustParse("2")}
			}
			limits.Spec.Limits = append(limits.Spec.Limits, item)
		}
		all = append(all, limits)
	}
	return all
}

func (g *admissionCase) quotas() []*corev1.ResourceQuota {
	names := []corev1.ResourceName{"pods", "count/pods", "cpu", "memory", "requests.cpu", "limits.cpu", "requests.memory", "requests.example.com/gpu", "services"}
	var all []*corev1.ResourceQuota
	for i := range g.IntN(3) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("quota-%d", i)}}
		hard, used := corev1.ResourceList{}, corev1.ResourceList{}
		for range 1 + g.IntN(3) {
			name := names[g.IntN(len(names))]
			hard[name] = resource.MustParse([]string{"1", "4", "6"}[g.IntN(3)])
			used[name] = resource.MustParse([]string{"0", "1"}[g.IntN(2)])
		}
		quota.Spec.Hard, quota.Status.Hard, quota.Status.Used = hard, hard, used
		switch g.IntN(6) {
		case 0:
			quota.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}
		case 1:
			quota.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeNotBestEffort}
		case 2:
			operator := []corev1.ScopeSelectorOperator{corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist}[g.IntN(4)]
			requirement := corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator}
			if operator == corev1.ScopeSelectorOpIn || operator == corev1.ScopeSelectorOpNotIn {
				requirement.Values = []string{"system-node-critical"}
			}
			quota.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{requirement}}
		}
		all = append(all, quota)
	}
	return all
}

func (g *admissionCase) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range 1 + g.IntN(4) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}}
		if g.chance(3) {
			pod.Spec.ActiveDeadlineSeconds = new(int64(60))
		}
		if g.chance(3) {
			pod.Spec.PriorityClassName = "system-node-critical"
		}
		for j := range 1 + g.IntN(2) {
			container := corev1.Container{Name: fmt.Sprintf("c%d", j)}
			container.Resources.Requests, container.Resources.Limits = g.amounts("cpu", "memory"), g.amounts("cpu", "memory", "example.com/gpu")
			if g.chance(5) {
				pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
			} else {
				pod.Spec.Containers = append(pod.Spec.Containers, container)
			}
		}
		pods = append(pods, pod)
	}
	return pods
}
