package upstream

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// manifests are as small as a release's can be.
const manifests = `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloads.kueue.x-k8s.io}
spec:
  group: kueue.x-k8s.io
  names: {plural: workloads}
  conversion: {strategy: Webhook}
  versions: [{name: v1beta1, served: false}, {name: v1beta2, served: true}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating-webhook-configuration}
webhooks:
- name: vjob.kb.io
  clientConfig: {service: {name: webhook-service, namespace: system, path: /validate-batch-v1-job}}
---
apiVersion: v1
kind: Service
metadata: {name: webhook-service}
`

func TestAReleaseIsReadWithoutConversionsAndRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kueue.yaml")
	if err := os.WriteFile(file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := readRelease(file)
	if err != nil || len(r.definitions) != 1 || len(r.webhooks) != 1 {
		t.Fatalf("%d definitions, %d webhooks, %v", len(r.definitions), len(r.webhooks), err)
	}
	if _, converts, _ := unstructured.NestedMap(r.definitions[0].Object, "spec", "conversion"); converts {
		t.Error("the definition is converted by a webhook that is not installed")
	}
	if served := servedResources(r.definitions[0]); len(served) != 1 || served[0].Version != "v1beta2" || served[0].Resource != "workloads" {
		t.Errorf("served as %v", served)
	}
}

func TestWebhooksAreReachedOnThisMachine(t *testing.T) {
	hook := map[string]any{"name": "vjob.kb.io", "clientConfig": map[string]any{"service": map[string]any{"path": "/validate"}}}
	if err := redirect(hook, 9443, []byte("certificate")); err != nil {
		t.Fatal(err)
	}
	client := hook["clientConfig"].(map[string]any)
	if client["url"] != "https://127.0.0.1:9443/validate" || client["caBundle"] != "Y2VydGlmaWNhdGU=" || client["service"] != nil {
		t.Errorf("it is reached by %v", client)
	}
	if err := redirect(map[string]any{"name": "vjob.kb.io"}, 9443, nil); err == nil || !strings.Contains(err.Error(), "vjob.kb.io") {
		t.Errorf("a webhook without a path: error %v", err)
	}
}

// TestAConfigurationIsThatOfTheRelease looks at what a controller is started with: everything but its addresses, its
// certificates and its leader election is the release's.
func TestAConfigurationIsThatOfTheRelease(t *testing.T) {
	for _, p := range []Project{Kueue, JobSet, Trainer} {
		t.Run(string(p), func(t *testing.T) {
			dir := t.TempDir()
			s := site{program: filepath.Join(dir, string(p)), dir: dir, health: 8081, webhook: 9443, certificates: "/certificates"}
			released := "kind: Configuration\nleaderElection: {leaderElect: true}\nintegrations: {frameworks: [pod, batch/job]}\n"
			if err := os.WriteFile(s.program+"-configuration.yaml", []byte(released), 0o600); err != nil {
				t.Fatal(err)
			}
			args, _, err := p.command(s)
			if err != nil || len(args) == 0 {
				t.Fatalf("arguments %v, %v", args, err)
			}
			text, err := os.ReadFile(strings.TrimPrefix(args[0], "--config="))
			if err != nil {
				t.Fatal(err)
			}
			configuration := map[string]any{}
			if err := yaml.Unmarshal(text, &configuration); err != nil {
				t.Fatal(err)
			}
			frameworks, _, _ := unstructured.NestedStringSlice(configuration, "integrations", "frameworks")
			elects, _, _ := unstructured.NestedBool(configuration, "leaderElection", "leaderElect")
			host, _, _ := unstructured.NestedString(configuration, "webhook", "host")
			if !slices.Equal(frameworks, []string{"pod", "batch/job"}) || elects || host != "127.0.0.1" {
				t.Errorf("it is configured with\n%s", text)
			}
		})
	}
}

func TestOnlyWhatIsBuiltIsStarted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kueue", "jobset", "jobset.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if built := Built(dir); !slices.Equal(built, []Project{JobSet, Kueue}) {
		t.Errorf("%v", built)
	}
}
