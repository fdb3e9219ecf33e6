package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/placement"
)

// TestEveryModuleRequiresTheDeclaredVersionOfKubernetes holds the go.mod files to simcluster/kubeversion/version.txt.
func TestEveryModuleRequiresTheDeclaredVersionOfKubernetes(t *testing.T) {
	text, err := os.ReadFile("simcluster/kubeversion/version.txt")
	if err != nil {
		t.Fatal(err)
	}
	kubernetes := strings.TrimSpace(string(text))
	staging := "v0." + strings.TrimPrefix(kubernetes, "v1.")
	// Repositories of k8s.io with versions of their own, and what is only named by modules that do not use it.
	require := regexp.MustCompile(`k8s\.io/(api|apimachinery|apiserver|client-go|kube-scheduler|kubelet|kubernetes) (v[0-9.]+)`)
	for _, module := range []string{".", "simcluster", "e2e"} {
		file := filepath.Join(module, "go.mod")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := require.FindAllStringSubmatch(string(text), -1)
		if len(found) < 3 {
			t.Errorf("%s requires %v", file, found)
		}
		for _, match := range found {
			want := staging
			if match[1] == "kubernetes" {
				want = kubernetes
			}
			if match[2] != want {
				t.Errorf("%s: %s, but simcluster/kubeversion/version.txt declares %s: run make kubernetes", file, match[0], kubernetes)
			}
		}
	}
}

// TestTheEngineIsComparedWithEveryTestedVersion holds the engine's list to the schedulers that
// e2e/differential can be compiled with: that of e2e/go.mod, and one for each e2e/kube-VERSION.mod.
func TestTheEngineIsComparedWithEveryTestedVersion(t *testing.T) {
	text, err := os.ReadFile("simcluster/kubeversion/version.txt")
	if err != nil {
		t.Fatal(err)
	}
	minor := regexp.MustCompile(`1\.\d+`)
	older, err := filepath.Glob("e2e/kube-*.mod")
	if err != nil {
		t.Fatal(err)
	}
	var compared []string
	for _, file := range append(older, string(text)) {
		compared = append(compared, minor.FindString(file))
	}
	if !slices.Equal(compared, placement.TestedVersions) {
		t.Errorf("compared with %v, tested is said to be %v", compared, placement.TestedVersions)
	}
}
