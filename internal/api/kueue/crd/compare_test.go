package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// crdsVariable names a folder with Kueue's own CRDs, such as config/components/crd/bases of its repository.
const crdsVariable = "KUEUE_CRDS"

// leftOutKinds are Kueue's kinds that are not here, and why.
var leftOutKinds = map[string]string{
	"MultiKueueCluster":         "running on other clusters is out of scope",
	"MultiKueueConfig":          "running on other clusters is out of scope",
	"ProvisioningRequestConfig": "cluster autoscalers are out of scope; an AdmissionCheck may refer to one by name",
}

// leftOut are the fields of Kueue's that are not here, and the rules that need them: all statements about these paths and
// what is below them, and the reason.
var leftOut = map[string]string{
	"ClusterQueue .spec.concurrentAdmissionPolicy":                           "alpha, and off by default",
	"Workload .spec.preemptionGates":                                         "alpha, and off by default",
	"Workload .status.preemptionGates":                                       "alpha, and off by default",
	"Workload .status.clusterName":                                           "of MultiKueue",
	"Workload .status.nominatedClusterNames":                                 "of MultiKueue",
	"Workload .spec.podSets[].template.metadata":                             "any object here: Kueue's own CRD repeats the pod's schema, a megabyte",
	"Workload .spec.podSets[].template.spec":                                 "any object here: Kueue's own CRD repeats the pod's schema, a megabyte",
	"Workload .spec.podSets[].template x-kubernetes-preserve-unknown-fields": "what makes it any object",
	`Workload .status rule "!has(oldSelf.clusterName) || !has(self.clusterName) || oldSelf.clusterName == self.clusterName"`:                                             "of MultiKueue",
	`Workload .status rule "!has(self.clusterName) || (!has(self.nominatedClusterNames) || (has(self.nominatedClusterNames) && size(self.nominatedClusterNames) == 0))"`: "of MultiKueue",
}

func TestTheCRDsSayWhatKueuesOwnSay(t *testing.T) {
	folder := os.Getenv(crdsVariable)
	if folder == "" {
		t.Skipf("set %s to a folder with Kueue's CRDs (config/components/crd/bases of its repository at v0.19.2) to compare ours with them", crdsVariable)
	}
	theirs, err := Read(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	have, want := statementsByKind(t, ours), statementsByKind(t, theirs)
	if len(want) == 0 {
		t.Fatalf("%s=%s has no CustomResourceDefinition of version %s", crdsVariable, folder, kueue.SchemeGroupVersion)
	}
	used := map[string]bool{}
	for _, kind := range slices.Sorted(maps.Keys(want)) {
		if leftOutKinds[kind] != "" {
			used[kind] = true
			continue
		}
		if have[kind] == nil {
			t.Errorf("%s: Kueue has this kind, we do not; add it, or name it in leftOutKinds", kind)
			continue
		}
		for _, statement := range slices.Sorted(maps.Keys(want[kind])) {
			if have[kind][statement] {
				continue
			}
			if reason := reasonToLeaveOut(kind + " " + statement); reason != "" {
				used[reason] = true
				continue
			}
			t.Errorf("%s: Kueue says, and we do not: %s", kind, statement)
		}
		for _, statement := range slices.Sorted(maps.Keys(have[kind])) {
			if want[kind][statement] {
				continue
			}
			if reason := reasonToLeaveOut(kind + " " + statement); reason != "" {
				used[reason] = true
				continue
			}
			t.Errorf("%s: we say, and Kueue does not: %s", kind, statement)
		}
	}
	for kind := range have {
		if want[kind] == nil {
			t.Errorf("%s: we have this kind, %s has not", kind, folder)
		}
	}
	for path := range leftOut {
		if !used[path] {
			t.Errorf("%s is in leftOut, but there is no such difference", path)
		}
	}
	for kind := range leftOutKinds {
		if !used[kind] {
			t.Errorf("%s is in leftOutKinds, but Kueue has no such kind", kind)
		}
	}
}

// reasonToLeaveOut is the entry of leftOut that a statement about a path falls under.
func reasonToLeaveOut(statement string) string {
	for path := range leftOut {
		if rest, ok := strings.CutPrefix(statement, path); ok && (rest == "" || strings.ContainsRune(" .[{", rune(rest[0]))) {
			return path
		}
	}
	return ""
}

// statementsByKind takes CRDs apart into sentences such as `.spec.stopPolicy enum ["Hold","HoldAndDrain","None"]`. Texts for
// people (descriptions) are not compared; the messages of rules are.
func statementsByKind(t *testing.T, crds []*unstructured.Unstructured) map[string]map[string]bool {
	t.Helper()
	kinds := map[string]map[string]bool{}
	for _, crd := range crds {
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		version := Version(crd, kueue.SchemeGroupVersion.Version)
		if version == nil {
			continue
		}
		found := statements{}
		for _, field := range []string{"group", "scope"} {
			value, _, _ := unstructured.NestedString(crd.Object, "spec", field)
			found.add(field, value)
		}
		names, _, _ := unstructured.NestedMap(crd.Object, "spec", "names")
		for name, value := range names {
			found.add("names."+name, value)
		}
		for _, field := range []string{"served", "storage", "subresources", "additionalPrinterColumns", "selectableFields"} {
			if value, ok := version[field]; ok {
				found.add(field, value)
			}
		}
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		found.schema("", schema)
		kinds[kind] = found
	}
	return kinds
}

type statements map[string]bool

func (s statements) add(what string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was read from YAML
	}
	s[what+" "+string(text)] = true
}

func (s statements) schema(path string, schema map[string]any) {
	for _, keyword := range slices.Sorted(maps.Keys(schema)) {
		value := schema[keyword]
		switch keyword {
		case "description":
		case "properties":
			for name, child := range value.(map[string]any) {
				s[path+"."+name+" is a field"] = true
				s.schema(path+"."+name, child.(map[string]any))
			}
		case "items":
			s.schema(path+"[]", value.(map[string]any))
		case "additionalProperties":
			if child, ok := value.(map[string]any); ok {
				s.schema(path+"{}", child)
			} else {
				s.add(path+" additionalProperties", value)
			}
		case "required", "enum", "x-kubernetes-list-map-keys":
			for _, one := range value.([]any) {
				s.add(path+" "+keyword, one)
			}
		case "x-kubernetes-validations":
			for _, rule := range value.([]any) {
				rule := rule.(map[string]any)
				s[fmt.Sprintf("%s rule %q with message %q", path, rule["rule"], rule["message"])] = true
				for keyword, value := range rule {
					if keyword != "rule" && keyword != "message" {
						s.add(fmt.Sprintf("%s rule %q %s", path, rule["rule"], keyword), value)
					}
				}
			}
		default:
			s.add(path+" "+keyword, value)
		}
	}
}
