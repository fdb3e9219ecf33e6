package kueue

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
)

// manifests are as small as a release's can be.
const manifests = `
# a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: kueue-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    clientConnection: {qps: 300}
    integrations:
      frameworks: ["batch/job", "jobset.x-k8s.io/jobset"]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager, namespace: kueue-system}
spec:
  template:
    spec:
      containers:
      - {name: manager, image: "registry.k8s.io/kueue/kueue:v0.19.2", imagePullPolicy: Always}
`

func TestAReleaseIsAdjustedToTheStories(t *testing.T) {
	objects := parsed(t, manifests)
	for range 2 { // adjusting what is adjusted changes nothing
		if err := adjust(objects); err != nil {
			t.Fatal(err)
		}
	}
	config, _, err := unstructured.NestedString(objects[1].Object, "data", configKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"- batch/job\n", "- pod\n", "- jobset.x-k8s.io/jobset\n", "qps: 300"} {
		if strings.Count(config, part) != 1 {
			t.Errorf("the configuration does not hold %q once:\n%s", part, config)
		}
	}
	pod, _, err := unstructured.NestedMap(objects[2].Object, "spec", "template", "spec")
	if err != nil {
		t.Fatal(err)
	}
	if selector, _, _ := unstructured.NestedStringMap(pod, "nodeSelector"); len(selector) != 1 || selector[controlPlane] != "" {
		t.Errorf("the manager runs where %v", selector)
	}
	containers, _, err := unstructured.NestedSlice(pod, "containers")
	if err != nil {
		t.Fatal(err)
	}
	manager, _ := containers[0].(map[string]any)
	if manager["imagePullPolicy"] != "IfNotPresent" || manager["image"] != "registry.k8s.io/kueue/kueue:v0.19.2" {
		t.Errorf("the manager's container is %v", manager)
	}
}

func TestWhatIsNoReleaseIsRefused(t *testing.T) {
	if err := adjust(parsed(t, manifests)[:2]); err == nil || !strings.Contains(err.Error(), managerName) {
		t.Errorf("error %v", err)
	}
}

func TestLocalCopiesAreAFileOrADirectory(t *testing.T) {
	dir := t.TempDir()
	first, second, _ := strings.Cut(manifests, "---\napiVersion: apps/v1")
	for name, text := range map[string]string{"1.yaml": first, "2.yaml": "apiVersion: apps/v1" + second, "README": "not YAML: ["} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int{dir: 3, filepath.Join(dir, "1.yaml"): 2} {
		t.Setenv(manifestsVariable, path)
		release, err := Find(t.Context())
		if err != nil || len(release.Objects) != want {
			t.Errorf("%s: %d objects, %v", path, len(release.Objects), err)
		}
	}
	for name, path := range map[string]string{"a file that is not there": filepath.Join(dir, "3.yaml"), "a directory without manifests": t.TempDir(), "no YAML": filepath.Join(dir, "README")} {
		t.Setenv(manifestsVariable, path)
		if _, err := Find(t.Context()); err == nil || errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestAnArchiveThatIsNotThereIsNamed(t *testing.T) {
	t.Setenv(imagesVariable, filepath.Join(t.TempDir(), "kueue.tar"))
	if _, err := Find(t.Context()); err == nil || !strings.Contains(err.Error(), "kueue.tar") {
		t.Errorf("error %v", err)
	}
}

func parsed(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := addon.ParseManifests([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
