package provider_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// setData changes a key of a job's ConfigMap as another client does.
func setData(t *testing.T, job, key, text string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{key: text}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = adminClient(t).CoreV1().ConfigMaps("default").Patch(t.Context(), trainingjob.ConfigMapName(job), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: driftTester})
	if err != nil {
		t.Fatal(err)
	}
}

// patchJob changes a Job as another client does.
func patchJob(t *testing.T, name, patch string) {
	t.Helper()
	_, err := adminClient(t).BatchV1().Jobs("default").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: driftTester})
	if err != nil {
		t.Fatal(err)
	}
}

// namedIn are the attributes that a plan names as written by others.
func namedIn(t *testing.T, planned *providertest.Planned) []string {
	t.Helper()
	warnings := ofDrift(planned.Diagnostics)
	if len(warnings) != 1 {
		t.Errorf("the plan does not warn once of what others have written:\n%s", texts(planned.Diagnostics))
		return nil
	}
	var named []string
	for _, line := range regexp.MustCompile(`(?m)^  - (\S+): .*, written by "`+driftTester+`" at \d{4}-.*$`).FindAllStringSubmatch(warnings[0].Detail, -1) {
		named = append(named, line[1])
	}
	if len(named) == 0 || !ignoreChanges.MatchString(warnings[0].Detail) {
		t.Errorf("the warning names no attribute and its writer, or no remedy:\n%s", warnings[0].Detail)
	}
	return named
}

func expectEmptyPlan(t *testing.T, when string, m *providertest.Managed) {
	t.Helper()
	m.Refresh(t)
	if planned := m.Plan(t); !planned.Value.Equal(m.State) || len(ofDrift(planned.Diagnostics)) > 0 {
		t.Errorf("%s: the plan is not empty:\n%s\n%s", when, differences(m.State, planned.Value), texts(planned.Diagnostics))
	}
}

// manage creates a job that nothing runs, which is removed after the test.
func manage(t *testing.T, server *providertest.Server, resource, attributes string) *providertest.Managed {
	t.Helper()
	m := server.Manage(t, resource, attributes)
	m.Make(t)
	t.Cleanup(func() { m.Destroy(t) })
	expectEmptyPlan(t, "just made", m)
	return m
}

// attributesOf are those of a resource block.
func attributesOf(block string) string {
	_, attributes, _ := strings.Cut(block, "{\n")
	return attributes[:strings.LastIndex(attributes, "}")]
}

func TestWhatOthersChangeInAJobAfterThePlanIsAConflict(t *testing.T) {
	server := providertest.NewServer(t, map[string]string{"config_path": adminKubeconfig()})
	const labels = "\n labels = { team = \"vision\" }\n annotations = { note = \"ours\" }\n"
	for resource, c := range map[string]struct {
		name       string
		attributes string
		change     func(t *testing.T, name, value string)
		named      []string
	}{
		"elastic_training_job": {
			"drift-job-later",
			attributesOf(trainingJob("drift-job-later", "workers = { max = 2 }"+labels)),
			func(t *testing.T, name, value string) {
				t.Helper()
				patchJob(t, name, fmt.Sprintf(`{"metadata":{"labels":{"team":"t%s"},"annotations":{"note":"n%s"}}}`, value, value))
				text := jobConfig(t, name).Data[trainingjob.WorkersKey]
				setData(t, name, trainingjob.WorkersKey, regexp.MustCompile(`"max": \d+`).ReplaceAllString(text, `"max": `+value))
			},
			[]string{`labels["team"]`, `annotations["note"]`, "workers.max"},
		},
		"elastic_task": {
			"drift-task-later",
			"name = \"drift-task-later\"\n run = \"true\"\n image = \"registry.invalid/nobody:0\"\n recovery = { max_restarts_on_errors = 2 }" + labels,
			func(t *testing.T, name, value string) {
				t.Helper()
				patchJob(t, name, fmt.Sprintf(`{"metadata":{"labels":{"team":"t%s"},"annotations":{"note":"n%s"}},"spec":{"backoffLimit":%s,"ttlSecondsAfterFinished":%s}}`, value, value, value, value))
			},
			[]string{`labels["team"]`, `annotations["note"]`, "recovery.max_restarts_on_errors", "ttl_seconds_after_finished"},
		},
	} {
		t.Run(resource, func(t *testing.T) {
			name := c.name
			m := manage(t, server, resource, c.attributes)
			pristine := m.State
			c.change(t, name, "7")
			m.Refresh(t)
			planned := m.Plan(t)
			if !planned.Value.Equal(pristine) || len(planned.Replaces) > 0 {
				t.Fatalf("not planned in place:\n%s", differences(pristine, planned.Value))
			}
			named := namedIn(t, planned)
			c.change(t, name, "8")
			before := liveJob(t, name).ResourceVersion
			wrong := m.Apply(t, planned)
			for _, attribute := range c.named {
				if !slices.Contains(named, attribute) {
					t.Errorf("the plan names %v, not %s", named, attribute)
				}
				if len(wrong) != 1 || !strings.Contains(wrong[0].Detail, "  - "+attribute+": ") {
					t.Errorf("apply does not refuse to overwrite %s:\n%s", attribute, texts(wrong))
				}
			}
			if after := liveJob(t, name).ResourceVersion; before != after {
				t.Error("the Job was changed")
			}
			m.Refresh(t)
			if wrong := m.Apply(t, m.Plan(t)); len(wrong) > 0 {
				t.Errorf("planned again, apply reports\n%s", texts(wrong))
			}
			expectEmptyPlan(t, "corrected", m)
			if !m.State.Equal(pristine) {
				t.Errorf("it is not as it was:\n%s", differences(pristine, m.State))
			}
		})
	}
}
