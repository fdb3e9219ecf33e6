package differential

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/util/tolerations"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/podadmission"
)

// TestPodsAreMergedAsByTheAPIServer holds what is computed of PriorityClasses, RuntimeClasses, default tolerations,
// matchLabelKeys and the resources of pods as a whole to kube-apiserver's plugins and its pod strategy.
func TestPodsAreMergedAsByTheAPIServer(t *testing.T) {
	classes := mergeClasses()
	theirs := newMerger(t, classes)
	first, count := seeds(5000, 500_000)
	merged, refused := 0, 0
	for seed := first; seed < first+count; seed++ {
		g := &mergeCase{admissionCase{rand.New(rand.NewPCG(seed, 17))}} //nolint:gosec // repeatable, and no secret
		pod := g.pod()
		got, refusal := podadmission.New(classes, nil).Complete(pod)
		want, err := theirs.merge(t.Context(), pod)
		if err != nil {
			refused++
		} else {
			merged++
		}
		if failure := compareMerge(got, refusal, want, err); failure != "" {
			t.Fatalf("seed %d: %s\nreplay with: go -C e2e test ./differential -run %s -seed %d", seed, failure, t.Name(), seed)
		}
	}
	if merged == 0 || refused == 0 {
		t.Errorf("%d pods are merged and %d refused: one of the two was never drawn", merged, refused)
	}
}

// compareMerge describes the first difference between the two pods, or the two refusals.
func compareMerge(got *corev1.Pod, refusal *podadmission.Refusal, want *corev1.Pod, err error) string {
	switch {
	case refusal != nil && err != nil:
		if !strings.Contains(err.Error(), refusal.Message) {
			return fmt.Sprintf("refusal %q, the API server's %q", refusal.Message, err)
		}
		return ""
	case refusal != nil || err != nil:
		return fmt.Sprintf("refusal %v, the API server's %v", refusal, err)
	}
	ours, theirs := &got.Spec, &want.Spec
	for _, field := range []struct {
		name      string
		got, want any
	}{
		{"priority", ours.Priority, theirs.Priority},
		{"priorityClassName", ours.PriorityClassName, theirs.PriorityClassName},
		{"preemptionPolicy", ours.PreemptionPolicy, theirs.PreemptionPolicy},
		{"overhead", ours.Overhead, theirs.Overhead},
		{"nodeSelector", ours.NodeSelector, theirs.NodeSelector},
		{"tolerations", tolerationTexts(ours), tolerationTexts(theirs)},
		{"affinity", ours.Affinity, theirs.Affinity},
		{"topologySpreadConstraints", ours.TopologySpreadConstraints, theirs.TopologySpreadConstraints},
		{"resources", ours.Resources, theirs.Resources},
	} {
		if !equality.Semantic.DeepEqual(field.got, field.want) {
			return fmt.Sprintf("%s is %+v, not %+v", field.name, field.got, field.want)
		}
	}
	return ""
}

// tolerationTexts are a pod's tolerations without those that another one implies, in an order of their own: a merge of
// two lists leaves them out.
func tolerationTexts(spec *corev1.PodSpec) []string {
	internal := &core.PodSpec{}
	if err := corev1conversion.Convert_v1_PodSpec_To_core_PodSpec(spec, internal, nil); err != nil {
		return []string{err.Error()}
	}
	var texts []string
	for _, t := range tolerations.MergeTolerations(internal.Tolerations, nil) {
		seconds := "for ever"
		if t.TolerationSeconds != nil {
			seconds = fmt.Sprint(*t.TolerationSeconds)
		}
		texts = append(texts, fmt.Sprintf("%s %s %q %s %s", t.Key, t.Operator, t.Value, t.Effect, seconds))
	}
	slices.Sort(texts)
	return texts
}

// merger is what kube-apiserver does to a new pod.
type merger struct {
	plugins []admission.MutationInterface
}

func newMerger(t *testing.T, classes podadmission.Cluster) *merger {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	byPriority, byRuntime := priority.NewPlugin(), runtimeclass.NewRuntimeClass()
	byPriority.SetExternalKubeClientSet(client)
	byPriority.SetExternalKubeInformerFactory(factory)
	byRuntime.SetExternalKubeClientSet(client)
	byRuntime.SetExternalKubeInformerFactory(factory)
	// Every API server makes this class itself.
	system := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "system-node-critical"}, Value: 2_000_001_000}
	for _, class := range append(slices.Clone(classes.PriorityClasses), system) {
		if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, class := range classes.RuntimeClasses {
		if _, err := client.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	factory.WaitForCacheSync(t.Context().Done())
	byDefault := defaulttolerationseconds.NewDefaultTolerationSeconds()
	if featured, ok := any(byDefault).(initializer.WantsFeatures); ok { // since 1.37
		featured.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	}
	return &merger{[]admission.MutationInterface{byPriority, byDefault, byRuntime}}
}

func (m *merger) merge(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	corev1conversion.SetObjectDefaults_Pod(pod)
	internal := &core.Pod{}
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
		return nil, err
	}
	kind, plural := core.Kind("Pod").WithVersion("v1"), core.Resource("pods").WithVersion("v1")
	attributes := admission.NewAttributesRecord(internal, nil, kind, pod.Namespace, pod.Name, plural, "", admission.Create, nil, false, nil)
	for _, plugin := range m.plugins {
		if err := plugin.Admit(ctx, attributes, nil); err != nil {
			return nil, err
		}
	}
	podregistry.Strategy.PrepareForCreate(ctx, internal)
	merged := &corev1.Pod{}
	return merged, corev1conversion.Convert_core_Pod_To_v1_Pod(internal, merged, nil)
}

// mergeClasses are those of the cluster: the same for all pods.
func mergeClasses() podadmission.Cluster {
	never := corev1.PreemptNever
	return podadmission.Cluster{
		PriorityClasses: []*schedulingv1.PriorityClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
			{ObjectMeta: metav1.ObjectMeta{Name: "polite"}, Value: 900, PreemptionPolicy: &never},
			{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Value: 7, GlobalDefault: true},
			{ObjectMeta: metav1.ObjectMeta{Name: "lower-standard"}, Value: 3, GlobalDefault: true, PreemptionPolicy: &never},
		},
		RuntimeClasses: []*nodev1.RuntimeClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Handler: "runc"},
			{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Handler: "kata", Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
				"cpu": resource.MustParse("250m"), "memory": resource.MustParse("120Mi"),
			}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "placed"}, Handler: "gvisor", Scheduling: &nodev1.Scheduling{
				NodeSelector: map[string]string{"sandbox": "gvisor", "zone": "a"},
				Tolerations:  []corev1.Toleration{{Key: "sandbox", Operator: corev1.TolerationOpExists}, {Key: "zone", Value: "a", Effect: corev1.TaintEffectNoSchedule}},
			}},
		},
	}
}

// mergeCase draws pods whose fields the API server completes.
type mergeCase struct{ admissionCase }

// one is one of some values.
func (g *mergeCase) one(values ...string) string { return values[g.IntN(len(values))] }

func (g *mergeCase) some(values ...string) (chosen []string) {
	for _, value := range values {
		if g.chance(3) {
			chosen = append(chosen, value)
		}
	}
	return chosen
}

func (g *mergeCase) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", Labels: map[string]string{}}}
	for _, key := range g.some("app", "version", "tier") {
		pod.Labels[key] = g.one("a", "b", "")
	}
	spec := &pod.Spec
	spec.PriorityClassName = g.one("", "", "high", "polite", "system-node-critical", "missing")
	if name := g.one("", "", "plain", "heavy", "placed", "absent"); name != "" {
		spec.RuntimeClassName = &name
	}
	if g.chance(3) {
		spec.NodeSelector = map[string]string{g.one("zone", "sandbox", "disk"): g.one("a", "gvisor")}
	}
	for range g.IntN(3) {
		spec.Tolerations = append(spec.Tolerations, g.toleration())
	}
	for range g.IntN(3) {
		constraint := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: g.selector()}
		if constraint.LabelSelector != nil {
			constraint.MatchLabelKeys = g.some("app", "version", "tier")
		}
		spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, constraint)
	}
	if g.chance(2) {
		spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: g.terms()},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: g.terms()},
		}
		for _, term := range g.terms() {
			spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
				spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term})
		}
	}
	g.resources(spec)
	return pod
}

// resources are such that requests are within limits: what is refused for others is compared in another test.
func (g *mergeCase) resources(spec *corev1.PodSpec) {
	names := []corev1.ResourceName{"cpu", "memory", "hugepages-2Mi"}
	for i := range 1 + g.IntN(3) {
		container := corev1.Container{Name: fmt.Sprintf("c%d", i)}
		container.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
		for _, name := range names {
			if g.chance(2) {
				continue
			}
			amount := g.amount(1)
			if name == "hugepages-2Mi" || g.chance(2) {
				container.Resources.Limits[name] = amount
			}
			if name != "hugepages-2Mi" && g.chance(2) {
				container.Resources.Requests[name] = amount
			}
		}
		if i > 0 && g.chance(4) {
			if g.chance(2) {
				container.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			spec.InitContainers = append(spec.InitContainers, container)
		} else {
			spec.Containers = append(spec.Containers, container)
		}
	}
	if g.chance(2) {
		return
	}
	spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, name := range names {
		if g.chance(3) {
			spec.Resources.Requests[name] = g.amount(5)
		}
		if g.chance(3) {
			spec.Resources.Limits[name] = g.amount(9)
		}
		if name == "hugepages-2Mi" && !spec.Resources.Limits.Name(name, resource.BinarySI).IsZero() {
			spec.Resources.Requests[name] = spec.Resources.Limits[name]
		} else if name == "hugepages-2Mi" {
			delete(spec.Resources.Requests, name)
		}
	}
}

// amount is one of four amounts, from a least one.
func (g *mergeCase) amount(least int) resource.Quantity {
	return resource.MustParse(fmt.Sprintf("%dMi", 2*(least+g.IntN(4))))
}

func (g *mergeCase) toleration() corev1.Toleration {
	t := corev1.Toleration{Key: g.one("", "zone", "sandbox", corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable), Operator: corev1.TolerationOpExists}
	t.Effect = corev1.TaintEffect(g.one("", string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectNoExecute)))
	if t.Key != "" && g.chance(2) {
		t.Operator, t.Value = corev1.TolerationOpEqual, g.one("", "a")
	}
	if t.Effect == corev1.TaintEffectNoExecute && g.chance(2) {
		t.TolerationSeconds = new(int64(10))
	}
	return t
}

func (g *mergeCase) selector() *metav1.LabelSelector {
	switch g.IntN(3) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"job": g.one("a", "b")}}
}

func (g *mergeCase) terms() []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	for range g.IntN(3) {
		term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: g.selector()}
		if term.LabelSelector != nil {
			term.MatchLabelKeys, term.MismatchLabelKeys = g.some("app", "version"), g.some("tier")
		}
		terms = append(terms, term)
	}
	return terms
}
