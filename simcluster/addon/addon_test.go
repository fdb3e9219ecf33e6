package addon

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// manifests are what a release has of each kind.
const manifests = `
apiVersion: v1
kind: Namespace
metadata: {name: kueue-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager, namespace: kueue-system}
---
apiVersion: v1
kind: Service
metadata: {name: kueue-webhook-service, namespace: kueue-system}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta2.visibility.kueue.x-k8s.io}
---
apiVersion: v1
kind: Secret
metadata: {name: kueue-webhook-server-cert, namespace: kueue-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    health: {healthProbeBindAddress: ":8081"}
    metrics: {bindAddress: ":8443"}
    webhook: {port: 9443}
    leaderElection: {leaderElect: true, resourceName: c1f6bfd2.kueue.x-k8s.io}
    integrations: {frameworks: [batch/job, pod]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: localqueues.kueue.x-k8s.io}
spec:
  group: kueue.x-k8s.io
  names: {plural: localqueues}
  conversion:
    strategy: Webhook
    webhook:
      clientConfig: {service: {name: kueue-webhook-service, namespace: kueue-system, path: /convert}}
      conversionReviewVersions: [v1]
  versions:
  - {name: v1beta1, served: true, storage: false}
  - {name: v1beta2, served: true, storage: true}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: topologies.kueue.x-k8s.io}
spec: {group: kueue.x-k8s.io, names: {plural: topologies}, versions: [{name: v1beta2, storage: true}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: kueue-mutating-webhook-configuration}
webhooks:
- name: mpod.kb.io
  clientConfig: {service: {name: kueue-webhook-service, namespace: kueue-system, path: /mutate--v1-pod}}
  failurePolicy: Fail
- name: mjob.kb.io
  clientConfig: {service: {name: kueue-webhook-service, namespace: kueue-system, path: /mutate-batch-v1-job}}
`

func endpoint() Endpoint {
	return Endpoint{WebhookPort: 21001, HealthPort: 21002, CertificateDir: "/certs"}
}

func adapted(t *testing.T, settings Settings) ([]*unstructured.Unstructured, map[string]any) {
	t.Helper()
	objects, err := ParseManifests([]byte(manifests))
	if err != nil {
		t.Fatal(err)
	}
	kueue, err := ByName(Kueue)
	if err != nil {
		t.Fatal(err)
	}
	apply, text, err := kueue.Adapt(objects, settings, []byte("PEM"), endpoint())
	if err != nil {
		t.Fatal(err)
	}
	var configuration map[string]any
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		t.Fatal(err)
	}
	return apply, configuration
}

func TestNothingIsAppliedThatNeedsThePodsOfADeployment(t *testing.T) {
	apply, _ := adapted(t, Settings{})
	var kinds []string
	for _, object := range apply {
		kinds = append(kinds, object.GetKind())
	}
	want := []string{"Namespace", "ConfigMap", "CustomResourceDefinition", "CustomResourceDefinition", "MutatingWebhookConfiguration"}
	if !slices.Equal(kinds, want) {
		t.Errorf("applied are %q, want %q", kinds, want)
	}
}

func TestEveryWebhookIsReachedOnLoopbackWithTheClustersAuthority(t *testing.T) {
	apply, _ := adapted(t, Settings{})
	var urls []string
	for _, object := range apply {
		webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		if conversion, found, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook"); found {
			webhooks = append(webhooks, conversion)
		}
		for _, webhook := range webhooks {
			client, _, err := unstructured.NestedStringMap(webhook.(map[string]any), "clientConfig")
			if err != nil {
				t.Fatalf("%s: %v", object.GetName(), err)
			}
			if client["caBundle"] != base64.StdEncoding.EncodeToString([]byte("PEM")) || len(client) != 2 {
				t.Errorf("%s: %v", object.GetName(), client)
			}
			urls = append(urls, client["url"])
		}
	}
	want := []string{"https://127.0.0.1:21001/convert", "https://127.0.0.1:21001/mutate--v1-pod", "https://127.0.0.1:21001/mutate-batch-v1-job"}
	if !slices.Equal(urls, want) {
		t.Errorf("the webhooks are at %q, want %q", urls, want)
	}
}

func TestTheReleasesConfigurationIsChangedWhereAProcessDiffersFromAPod(t *testing.T) {
	apply, config := adapted(t, Settings{})
	for path, want := range map[string]any{
		"health.healthProbeBindAddress": "127.0.0.1:21002", "webhook.host": "127.0.0.1", "webhook.port": 21001.0, "webhook.certDir": "/certs",
		"leaderElection.leaderElect": false, "leaderElection.resourceName": "c1f6bfd2.kueue.x-k8s.io", "metrics.bindAddress": "0",
		"internalCertManagement.enable": false, "featureGates.VisibilityOnDemand": false,
	} {
		if have, _, _ := unstructured.NestedFieldNoCopy(config, strings.Split(path, ".")...); have != want {
			t.Errorf("%s is %v, want %v", path, have, want)
		}
	}
	frameworks, _, err := unstructured.NestedStringSlice(config, "integrations", "frameworks")
	if err != nil || !slices.Equal(frameworks, []string{"batch/job", "pod"}) {
		t.Errorf("frameworks %q, %v", frameworks, err)
	}
	text, _, err := unstructured.NestedString(apply[1].Object, "data", "controller_manager_config.yaml")
	if err != nil || !strings.Contains(text, "127.0.0.1:21002") {
		t.Errorf("the ConfigMap has %q, %v; want what the process has", text, err)
	}
}

func TestAUsersConfigurationTakesTheReleasesPlace(t *testing.T) {
	_, config := adapted(t, Settings{
		Config: map[string]any{
			"kind": "Configuration", "fairSharing": map[string]any{}, "metrics": map[string]any{"bindAddress": "127.0.0.1:9090"},
			"featureGates": map[string]any{"PriorityBoost": true},
		},
		Gates: map[string]bool{"ElasticJobsViaWorkloadSlices": false},
	})
	if _, ok := config["fairSharing"]; !ok {
		t.Errorf("fair sharing is off: %v", config)
	}
	if _, ok := config["integrations"]; ok {
		t.Errorf("it has the release's integrations: %v", config)
	}
	if have := section(config, "metrics")["bindAddress"]; have != "127.0.0.1:9090" {
		t.Errorf("metrics are at %v, want where the user says", have)
	}
	if gates := section(config, "featureGates"); gates["PriorityBoost"] != true || gates["ElasticJobsViaWorkloadSlices"] != false || gates[visibility] != false {
		t.Errorf("feature gates %v", gates)
	}
}

func TestAConfigurationThatCannotHoldIsRefusedWithAReason(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"a kind of another program":    {"kind: KubeSchedulerConfiguration", "its kind is KubeSchedulerConfiguration, not Configuration"},
		"no YAML":                      {"kind: [", "did not find expected"},
		"a field twice":                {"kind: Configuration\nmetrics: {}\nmetrics: {}", "already set"},
		"the API that needs a Service": {"kind: Configuration\nfeatureGates: {VisibilityOnDemand: true}", "VisibilityOnDemand: the aggregated API needs a Service"},
		"a file that is not there":     {"", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if test.text != "" {
				if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := ReadSettings(path, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that contains %q", err, test.want)
			}
		})
	}
}

func TestAFeatureGateWithoutAValueIsRefused(t *testing.T) {
	for gate, want := range map[string]string{"PriorityBoost": "NAME=true", "=true": "NAME=true", "VisibilityOnDemand=true": "needs a Service"} {
		if _, err := ReadSettings("", []string{gate}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one that contains %q", gate, err, want)
		}
	}
}

func TestManifestsOfAnotherProjectAreRefused(t *testing.T) {
	objects, err := ParseManifests([]byte(manifests))
	if err != nil {
		t.Fatal(err)
	}
	jobSet, err := ByName(JobSet)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := jobSet.Adapt(objects, Settings{}, nil, endpoint()); err == nil || !strings.Contains(err.Error(), "these are not the manifests of jobset") {
		t.Errorf("error %v", err)
	}
}

func TestAProgramThatIsNotBuiltIsNamedWithTheRemedy(t *testing.T) {
	kueue, err := ByName(Kueue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kueue.Program(t.TempDir()); err == nil || !strings.Contains(err.Error(), "make controllers") {
		t.Errorf("error %v", err)
	}
	if _, err := ByName("volcano"); err == nil || !strings.Contains(err.Error(), "there are jobset, lws, trainer, kuberay, kueue") {
		t.Errorf("error %v", err)
	}
}

func TestEveryProcessListensOnLoopbackOnly(t *testing.T) {
	for _, a := range All() {
		config := map[string]any{}
		if a.configure != nil {
			a.configure(config, endpoint())
		}
		arguments, environment := a.Command("config.yaml", "/dir", "kubeconfig", endpoint())
		text, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		everything := string(text) + strings.Join(arguments, "\n")
		if !strings.Contains(everything, "127.0.0.1:21002") || !slices.Contains(environment, "KUBECONFIG=kubeconfig") {
			t.Errorf("%s: %s, %q", a.Name, everything, environment)
		}
		if a.configMap != "" && !strings.Contains(everything, "host: 127.0.0.1") {
			t.Errorf("the webhooks of %s are not on loopback: %s", a.Name, everything)
		}
	}
}
