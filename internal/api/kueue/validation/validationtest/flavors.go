package validationtest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func flavor(spec kueue.ResourceFlavorSpec) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{ObjectMeta: named("flavor"), Spec: spec}
}

func tainted(taints ...corev1.Taint) *kueue.ResourceFlavor {
	return flavor(kueue.ResourceFlavorSpec{NodeTaints: taints})
}

func tolerating(tolerations ...corev1.Toleration) *kueue.ResourceFlavor {
	return flavor(kueue.ResourceFlavorSpec{Tolerations: tolerations})
}

func resourceFlavors() []Case {
	many := map[string]string{}
	var taints []corev1.Taint
	var tolerations []corev1.Toleration
	for i := range 9 {
		many[fmt.Sprintf("label-%d", i)] = "x"
		taints = append(taints, corev1.Taint{Key: fmt.Sprintf("taint-%d", i), Effect: corev1.TaintEffectNoSchedule})
		tolerations = append(tolerations, corev1.Toleration{Key: fmt.Sprintf("taint-%d", i)})
	}
	spot := corev1.Taint{Key: "example.com/spot", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	seconds := int64(30)
	return []Case{
		{Behaviour: "a flavor as it should be", Object: flavor(kueue.ResourceFlavorSpec{
			NodeLabels:   map[string]string{"example.com/gpu": "T4"},
			NodeTaints:   []corev1.Taint{spot, {Key: "example.com/spot", Effect: corev1.TaintEffectNoExecute}},
			Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}, {Key: "k", Value: "v"}, {Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}},
			TopologyName: word[kueue.TopologyReference]("rack"),
		})},
		{Behaviour: "a flavor without anything", Object: flavor(kueue.ResourceFlavorSpec{})},
		{Behaviour: "a label's key that is none", Object: flavor(kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"-x": "y"}}), Wrong: []string{"spec.nodeLabels[-x] webhook"}},
		{Behaviour: "a label's value that is none", Object: flavor(kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"x": "not a value"}}), Wrong: []string{"spec.nodeLabels[x] webhook"}},
		{Behaviour: "too many labels", Object: flavor(kueue.ResourceFlavorSpec{NodeLabels: many}), Wrong: []string{"spec.nodeLabels"}},
		{Behaviour: "a topology without labels", Object: flavor(kueue.ResourceFlavorSpec{TopologyName: word[kueue.TopologyReference]("rack")}), Wrong: []string{"spec.nodeLabels"}},
		{Behaviour: "a topology's name that is none", Object: flavor(kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{"x": "y"}, TopologyName: word[kueue.TopologyReference]("Rack"),
		}), Wrong: []string{"spec.topologyName"}},
		{Behaviour: "an empty topology's name", Object: flavor(kueue.ResourceFlavorSpec{
			NodeLabels: map[string]string{"x": "y"}, TopologyName: word[kueue.TopologyReference](""),
		}), Wrong: []string{"spec.topologyName"}},

		{Behaviour: "a taint twice", Object: tainted(spot, corev1.Taint{Key: spot.Key, Value: "false", Effect: spot.Effect}), Wrong: []string{"spec.nodeTaints[1] webhook"}},
		{Behaviour: "a taint without an effect", Object: tainted(corev1.Taint{Key: "k"}), Wrong: []string{"spec.nodeTaints[0].effect"}},
		{Behaviour: "a taint with an unknown effect", Object: tainted(spot, corev1.Taint{Key: "k", Effect: "Never"}), Wrong: []string{"spec.nodeTaints[1].effect"}},
		{Behaviour: "a taint without a key", Object: tainted(corev1.Taint{Effect: spot.Effect}), Wrong: []string{"spec.nodeTaints[0].key webhook"}},
		{Behaviour: "a taint's value that is none", Object: tainted(corev1.Taint{Key: "k", Value: "not a value", Effect: spot.Effect}), Wrong: []string{"spec.nodeTaints[0].value webhook"}},
		{Behaviour: "too many taints", Object: tainted(taints...), Wrong: []string{"spec.nodeTaints"}},

		{Behaviour: "a toleration of a key that is none", Object: tolerating(corev1.Toleration{Key: "not a key"}), Wrong: []string{"spec.tolerations[0].key webhook"}},
		{Behaviour: "a toleration of nothing", Object: tolerating(corev1.Toleration{}), Wrong: []string{"spec.tolerations[0].operator"}},
		{Behaviour: "a toleration of a value without a key", Object: tolerating(corev1.Toleration{Operator: corev1.TolerationOpEqual, Value: "v"}), Wrong: []string{"spec.tolerations[0].operator"}},
		{Behaviour: "a toleration that exists with a value", Object: tolerating(corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, Value: "v"}), Wrong: []string{"spec.tolerations[0].value"}},
		{Behaviour: "a toleration with an unknown operator", Object: tolerating(corev1.Toleration{Key: "k", Operator: "Lt", Value: "1"}), Wrong: []string{"spec.tolerations[0].operator"}},
		{Behaviour: "a toleration with an unknown operator and no key", Object: tolerating(corev1.Toleration{Operator: "Lt", Value: "1"}), Wrong: []string{"spec.tolerations[0].operator"}},
		{Behaviour: "a toleration with an unknown effect", Object: tolerating(corev1.Toleration{Key: "k", Effect: "Never"}), Wrong: []string{"spec.tolerations[0].effect"}},
		{Behaviour: "a toleration for a while of what evicts nobody", Object: tolerating(corev1.Toleration{Key: "k", Effect: corev1.TaintEffectNoSchedule, TolerationSeconds: &seconds}), Wrong: []string{"spec.tolerations[0].effect"}},
		{Behaviour: "a toleration for a while of any effect", Object: tolerating(corev1.Toleration{Key: "k", TolerationSeconds: &seconds}), Wrong: []string{"spec.tolerations[0].effect"}},
		{Behaviour: "too many tolerations", Object: tolerating(tolerations...), Wrong: []string{"spec.tolerations"}},
	}
}

func resourceFlavorUpdates() []Case {
	free := kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"x": "y"}, Tolerations: []corev1.Toleration{{Key: "k"}}}
	bound := free
	bound.TopologyName = word[kueue.TopologyReference]("rack")
	changed := func(spec kueue.ResourceFlavorSpec, change func(*kueue.ResourceFlavorSpec)) *kueue.ResourceFlavor {
		change(&spec)
		return flavor(spec)
	}
	relabel := func(s *kueue.ResourceFlavorSpec) { s.NodeLabels = map[string]string{"x": "z"} }
	tolerate := func(s *kueue.ResourceFlavorSpec) { s.Tolerations = nil }
	return []Case{
		{Behaviour: "a flavor without a topology changes its labels", Existing: flavor(free), Object: changed(free, relabel)},
		{Behaviour: "a flavor without a topology changes its tolerations", Existing: flavor(free), Object: changed(free, tolerate)},
		{Behaviour: "a flavor gets a topology, and other labels", Existing: flavor(free), Object: changed(bound, relabel)},
		{Behaviour: "a flavor with a topology changes its taints", Existing: flavor(bound), Object: changed(bound, func(s *kueue.ResourceFlavorSpec) {
			s.NodeTaints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		})},
		{Behaviour: "a flavor with a topology changes its labels", Existing: flavor(bound), Object: changed(bound, relabel), Wrong: []string{"spec.nodeLabels"}},
		{Behaviour: "a flavor with a topology changes its tolerations", Existing: flavor(bound), Object: changed(bound, tolerate), Wrong: []string{"spec.tolerations"}},
		{Behaviour: "a flavor changes its topology", Existing: flavor(bound), Object: changed(bound, func(s *kueue.ResourceFlavorSpec) {
			s.TopologyName = word[kueue.TopologyReference]("block")
		}), Wrong: []string{"spec.topologyName"}},
		{Behaviour: "a flavor loses its topology", Existing: flavor(bound), Object: flavor(free), Wrong: []string{"spec.topologyName"}},
	}
}

func topologies() []Case {
	topology := func(labels ...string) *kueue.Topology {
		topology := &kueue.Topology{ObjectMeta: named("topology")}
		for _, label := range labels {
			topology.Spec.Levels = append(topology.Spec.Levels, kueue.TopologyLevel{NodeLabel: label})
		}
		return topology
	}
	level := func(i int) string { return fmt.Sprintf("spec.levels[%d].nodeLabel", i) }
	return []Case{
		{Behaviour: "a topology as it should be", Object: topology("example.com/block", "example.com/rack", corev1.LabelHostname)},
		{Behaviour: "a topology of hosts", Object: topology(corev1.LabelHostname)},
		{Behaviour: "a topology without levels", Object: topology(), Wrong: []string{"spec.levels"}},
		{Behaviour: "a topology with too many levels", Object: topology(numbered[string]("level-", 17)...), Wrong: []string{"spec.levels"}},
		{Behaviour: "a level twice", Object: topology("rack", "block", "rack"), Wrong: []string{level(2)}},
		{Behaviour: "hosts that are not last", Object: topology(corev1.LabelHostname, "rack"), Wrong: []string{level(0)}},
		{Behaviour: "hosts twice", Object: topology(corev1.LabelHostname, "rack", corev1.LabelHostname), Wrong: []string{level(0), level(2)}},
		{Behaviour: "a level without a label", Object: topology("rack", ""), Wrong: []string{level(1)}},
		{Behaviour: "a level's label that is none", Object: topology("Example.com/rack"), Wrong: []string{level(0)}},
		{Behaviour: "a level's label that is too long", Object: topology(strings.Repeat("a", 317)), Wrong: []string{level(0)}},
		{Behaviour: "a level's label whose name is longer than labels' names, which nobody checks", Object: topology(strings.Repeat("a", 64))},
		{Behaviour: "a topology gets a label", Existing: topology("rack"), Object: func() *kueue.Topology {
			labelled := topology("rack")
			labelled.Labels = map[string]string{"x": "y"}
			return labelled
		}()},
		{Behaviour: "a topology gets a level", Existing: topology("rack"), Object: topology("rack", corev1.LabelHostname), Wrong: []string{"spec.levels"}},
	}
}

func workloadPriorityClasses() []Case {
	class := func(value int32, description string) *kueue.WorkloadPriorityClass {
		return &kueue.WorkloadPriorityClass{ObjectMeta: named("high"), Value: value, Description: description}
	}
	return []Case{
		{Behaviour: "a class as it should be", Object: class(1000, "for what is urgent")},
		{Behaviour: "a class below everything", Object: class(-1<<31, "")},
		{Behaviour: "a description that just fits, in characters", Object: class(0, strings.Repeat("ä", 2048))},
		{Behaviour: "a description that is too long", Object: class(0, strings.Repeat("a", 2049)), Wrong: []string{"description"}},
		{Behaviour: "a class changes its value", Existing: class(1000, ""), Object: class(10, "")},
	}
}

func admissionChecks() []Case {
	check := func(controller string, parameters *kueue.AdmissionCheckParametersReference) *kueue.AdmissionCheck {
		return &kueue.AdmissionCheck{ObjectMeta: named("check"), Spec: kueue.AdmissionCheckSpec{ControllerName: controller, Parameters: parameters}}
	}
	const controller = "kueue.x-k8s.io/provisioning-request"
	parameters := func(group, kind, name string) *kueue.AdmissionCheckParametersReference {
		return &kueue.AdmissionCheckParametersReference{APIGroup: group, Kind: kind, Name: name}
	}
	return []Case{
		{Behaviour: "a check as it should be", Object: check(controller, parameters(kueue.SchemeGroupVersion.Group, "ProvisioningRequestConfig", "config"))},
		{Behaviour: "a check without parameters", Object: check(controller, nil)},
		{Behaviour: "a check without a controller", Object: check("", nil), Wrong: []string{"spec.controllerName"}},
		{Behaviour: "a controller's name that is too long", Object: check(strings.Repeat("a", 254), nil), Wrong: []string{"spec.controllerName"}},
		{Behaviour: "parameters of nothing", Object: check(controller, parameters("", "", "")), Wrong: []string{"spec.parameters.apiGroup", "spec.parameters.kind", "spec.parameters.name"}},
		{Behaviour: "parameters that are none", Object: check(controller, parameters("Kueue", "3D", "a.b")), Wrong: []string{"spec.parameters.apiGroup", "spec.parameters.kind", "spec.parameters.name"}},
		{Behaviour: "parameters that are too long", Object: check(controller, parameters(strings.Repeat("a", 254), strings.Repeat("a", 64), strings.Repeat("a", 64))), Wrong: []string{"spec.parameters.apiGroup", "spec.parameters.kind", "spec.parameters.name"}},
		{Behaviour: "a check changes its controller", Existing: check(controller, nil), Object: check("other", nil), Wrong: []string{"spec.controllerName"}},
		{Behaviour: "a check changes its parameters", Existing: check(controller, nil), Object: check(controller, parameters("g", "K", "n"))},
	}
}
