package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// groups is a ClusterQueue or Cohort with one group of CPU in flavor "spot", with further fields of the quota and of
// the queue.
func groups(quota, queue string) string {
	return `{"resourceGroups":[{"coveredResources":["cpu"],"flavors":[{"name":"spot","resources":[{"name":"cpu","nominalQuota":"4"` + quota + `}]}]}]` + queue + `}`
}

func TestWhatKueueWouldRefuseIsRefusedAtTheAttribute(t *testing.T) {
	objects := kueueObjects(t)
	for resourceType, cases := range map[string]map[string]struct{ fields, at, wantText string }{
		"elastic_workload_priority_class": {
			"a description that is too long": {`{"value":1,"description":"` + strings.Repeat("x", 2049) + `"}`, "description", "2048"},
		},
		"elastic_resource_flavor": {
			"a label's key":                 {`{"nodeLabels":{"a b":"x"}}`, "node_labels[a b]", "is not the key of a label"},
			"a label's value":               {`{"nodeLabels":{"example.com/gpu":"a b"}}`, "node_labels[example.com/gpu]", "is not the value of a label"},
			"nine labels":                   {`{"nodeLabels":{"a":"","b":"","c":"","d":"","e":"","f":"","g":"","h":"","i":""}}`, "node_labels", "at most 8"},
			"a taint's effect":              {`{"nodeTaints":[{"key":"a","effect":"Never"}]}`, "node_taints[0].effect", `Unsupported value: "Never"`},
			"a taint twice":                 {`{"nodeTaints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"}]}`, "node_taints[1]", "already"},
			"a toleration of nothing":       {`{"tolerations":[{"operator":"Equal"}]}`, "tolerations[0].operator", "must be Exists without a key"},
			"a value with Exists":           {`{"tolerations":[{"key":"a","operator":"Exists","value":"x"}]}`, "tolerations[0].value", "has no meaning with operator Exists"},
			"seconds without NoExecute":     {`{"tolerations":[{"key":"a","effect":"NoSchedule","tolerationSeconds":3}]}`, "tolerations[0].effect", "must be NoExecute with toleration_seconds"},
			"a topology without labels":     {`{"topologyName":"t"}`, "node_labels", "a flavor with topology_name needs a label"},
			"a topology's name":             {`{"topologyName":"T","nodeLabels":{"a":"b"}}`, "topology_name", "is not the name of an object"},
			"an operator that is not one":   {`{"tolerations":[{"key":"a","operator":"In"}]}`, "tolerations[0].operator", `Unsupported value: "In"`},
			"a toleration of a strange key": {`{"tolerations":[{"key":"a b"}]}`, "tolerations[0].key", "is not the key of a taint"},
		},
		"elastic_cluster_queue": {
			"limits without a cohort":         {groups(`,"borrowingLimit":"1"`, ``), "resource_groups[0].flavors[0].resources[0].borrowing_limit", "cohort_name"},
			"lending more than there is":      {groups(`,"lendingLimit":"5"`, `,"cohortName":"c"`), "resource_groups[0].flavors[0].resources[0].lending_limit", "nominal_quota"},
			"a quota below zero":              {strings.ReplaceAll(groups(``, ``), `"4"`, `"-1"`), "resource_groups[0].flavors[0].resources[0].nominal_quota", "must not be negative"},
			"a resource that is not covered":  {strings.ReplaceAll(groups(``, ``), `["cpu"]`, `["memory"]`), "resource_groups[0].flavors[0].resources[0].name", "covered_resources"},
			"fewer resources than covered":    {strings.ReplaceAll(groups(``, ``), `["cpu"]`, `["cpu","memory"]`), "resource_groups[0].flavors[0].resources", "covered_resources"},
			"a resource twice":                {strings.ReplaceAll(groups(``, ``), `["cpu"]`, `["cpu","cpu"]`), "resource_groups[0].covered_resources[1]", "one resource group only"},
			"a flavor's name":                 {strings.ReplaceAll(groups(``, ``), `"spot"`, `"Spot"`), "resource_groups[0].flavors[0].name", "is not the name of an object"},
			"a cohort's name":                 {`{"cohortName":"A b"}`, "cohort_name", "is not the name of an object"},
			"a strategy that is not one":      {`{"queueingStrategy":"LIFO"}`, "queueing_strategy", `"StrictFIFO"`},
			"a stop policy that is not one":   {`{"stopPolicy":"Drain"}`, "stop_policy", `"HoldAndDrain"`},
			"a preemption that is not one":    {`{"preemption":{"withinClusterQueue":"Any"}}`, "preemption.within_cluster_queue", `Unsupported value: "Any"`},
			"to evict while it borrows only":  {`{"preemption":{"borrowWithinCohort":{"policy":"LowerPriority"}}}`, "preemption.borrow_within_cohort.policy", "needs reclaim_within_cohort LowerPriority or Any"},
			"a preference without a choice":   {`{"flavorFungibility":{"preference":"BorrowingOverPreemption"}}`, "flavor_fungibility.preference", "needs when_can_borrow and when_can_preempt to be TryNextFlavor"},
			"a check of a flavor not here":    {groups(``, `,"admissionChecksStrategy":{"admissionChecks":[{"name":"c","onFlavors":["other"]}]}`), "admission_checks_strategy.admission_checks[0].on_flavors[0]", "is not a flavor of this queue"},
			"a check twice":                   {groups(``, `,"admissionChecksStrategy":{"admissionChecks":[{"name":"c"},{"name":"c"}]}`), "admission_checks_strategy.admission_checks[1].name", "stands here once"},
			"a selector's operator":           {`{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Is"}]}}`, "namespace_selector.match_expressions[0].operator", "Is"},
			"a selector without values":       {`{"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}}`, "namespace_selector.match_expressions[0].values", "must be specified"},
			"a weight below zero":             {`{"fairSharing":{"weight":"-1"}}`, "fair_sharing.weight", "must not be negative"},
			"a weight that is almost nothing": {`{"fairSharing":{"weight":"1n"}}`, "fair_sharing.weight", "too small"},
			"an admission mode":               {`{"admissionScope":{"admissionMode":"Some"}}`, "admission_scope.admission_mode", `Unsupported value: "Some"`},
		},
		"elastic_local_queue": {
			"the name of its queue": {`{"clusterQueue":"A"}`, "cluster_queue", "is not the name of an object"},
			"a stop policy":         {`{"clusterQueue":"a","stopPolicy":"Stop"}`, "stop_policy", `"HoldAndDrain"`},
		},
		"elastic_cohort": {
			"limits without a parent": {groups(`,"lendingLimit":"1"`, ``), "resource_groups[0].flavors[0].resources[0].lending_limit", "parent_name"},
			"itself as parent":        {`{"parentName":"x"}`, "parent_name", "is the cohort itself"},
		},
		"elastic_topology": {
			"a level twice":     {`{"levels":[{"nodeLabel":"a"},{"nodeLabel":"a"}]}`, "levels[1].node_label", "one level only"},
			"a host above all":  {`{"levels":[{"nodeLabel":"kubernetes.io/hostname"},{"nodeLabel":"a"}]}`, "levels[0].node_label", "must be the last level"},
			"a label's bad key": {`{"levels":[{"nodeLabel":"a b"}]}`, "levels[0].node_label", "is not the key of a label"},
		},
		"elastic_admission_check": {
			"no controller":       {`{"controllerName":""}`, "controller_name", "must not be empty"},
			"a kind that is none": {`{"controllerName":"c","parameters":{"apiGroup":"g","kind":"a b","name":"n"}}`, "parameters.kind", "is not a kind"},
			"a name with dots":    {`{"controllerName":"c","parameters":{"apiGroup":"g","kind":"K","name":"a.b"}}`, "parameters.name", "is not a name that may stand here"},
		},
	} {
		for mistake, c := range cases {
			t.Run(resourceType+": "+mistake, func(t *testing.T) {
				found := validate(t, resourceType, configurationOf(t, objects[resourceType], c.fields))
				if !slices.ContainsFunc(found, func(d *tfprotov6.Diagnostic) bool { return where(d) == c.at && strings.Contains(d.Detail, c.wantText) }) {
					t.Errorf("nothing at %s contains %q, but:", c.at, c.wantText)
				}
				reported := map[string]bool{}
				for _, d := range found {
					if t.Failed() || reported[where(d)] || where(d) == "" {
						t.Errorf("at %s: %s: %s", where(d), d.Summary, d.Detail)
					}
					reported[where(d)] = true
				}
			})
		}
	}
}

func TestRulesWaitForWhatTheyLookAt(t *testing.T) {
	objects := kueueObjects(t)
	for behaviour, c := range map[string]struct {
		resourceType, fields string
		unknown              string // an attribute that is not known yet
		want                 string // where there is still an error
	}{
		"limits wait for the cohort":                      {"elastic_cluster_queue", groups(`,"borrowingLimit":"1"`, ``), "cohort_name", ""},
		"limits of a cohort wait for its parent":          {"elastic_cohort", groups(`,"borrowingLimit":"1"`, ``), "parent_name", ""},
		"lending waits for the quota":                     {"elastic_cluster_queue", groups(`,"lendingLimit":"5"`, `,"cohortName":"c"`), "resource_groups[0].flavors[0].resources[0].nominal_quota", ""},
		"lending does not wait for the flavor's name":     {"elastic_cluster_queue", groups(`,"lendingLimit":"5"`, `,"cohortName":"c"`), "resource_groups[0].flavors[0].name", "resource_groups[0].flavors[0].resources[0].lending_limit"},
		"names of resources wait for those covered":       {"elastic_cluster_queue", strings.ReplaceAll(groups(``, ``), `["cpu"]`, `["memory"]`), "resource_groups[0].covered_resources[0]", ""},
		"checks wait for the flavors":                     {"elastic_cluster_queue", groups(``, `,"admissionChecksStrategy":{"admissionChecks":[{"name":"c","onFlavors":["other"]}]}`), "resource_groups[0].flavors[0].name", ""},
		"a preference waits for the choice":               {"elastic_cluster_queue", `{"flavorFungibility":{"preference":"BorrowingOverPreemption"}}`, "flavor_fungibility.when_can_borrow", ""},
		"a policy waits for the other":                    {"elastic_cluster_queue", `{"preemption":{"borrowWithinCohort":{"policy":"LowerPriority"}}}`, "preemption.reclaim_within_cohort", ""},
		"the order of levels waits for the levels":        {"elastic_topology", `{"levels":[{"nodeLabel":"kubernetes.io/hostname"},{"nodeLabel":"a"}]}`, "levels", ""},
		"a word does not wait for another object":         {"elastic_cluster_queue", groups(``, `,"stopPolicy":"Drain"`), "resource_groups", "stop_policy"},
		"a taint does not wait for another taint":         {"elastic_resource_flavor", `{"nodeTaints":[{"key":"a","effect":"Never"},{"key":"b","effect":"NoSchedule"}]}`, "node_taints[1].key", "node_taints[0].effect"},
		"nothing that is unknown itself is wrong":         {"elastic_admission_check", `{"controllerName":""}`, "controller_name", ""},
		"a topology waits for the labels that it needs":   {"elastic_resource_flavor", `{"topologyName":"t"}`, "node_labels", ""},
		"a toleration waits for the key that it is about": {"elastic_resource_flavor", `{"tolerations":[{"operator":"Equal"}]}`, "tolerations[0].key", ""},
	} {
		t.Run(behaviour, func(t *testing.T) {
			config := configurationOf(t, objects[c.resourceType], c.fields)
			changed := false
			config, err := tftypes.Transform(config, func(at *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
				if where(&tfprotov6.Diagnostic{Attribute: at}) == c.unknown {
					changed = true
					return unknown(value.Type()), nil
				}
				return value, nil
			})
			if err != nil || !changed {
				t.Fatalf("there is no %s: %v", c.unknown, err)
			}
			var got []string
			for _, d := range validate(t, c.resourceType, config) {
				got = append(got, where(d))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("errors at %q, want %q", got, c.want)
			}
		})
	}
}
