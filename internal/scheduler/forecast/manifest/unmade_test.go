package manifest_test

import (
	"strings"
	"testing"
)

func TestAPausedDeploymentHasNoPods(t *testing.T) {
	for paused, pods := range map[string]int{"true": 0, "false": 2} {
		contents, err := read(t, `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {paused: `+paused+`, replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: any}]}}}`)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(contents.Jobs[0].Stages[0][0].Pods); got != pods {
			t.Errorf("paused: %s: got %d pods, want %d", paused, got, pods)
		}
	}
}

func TestAJobOfAnotherControllerIsApproximate(t *testing.T) {
	for by, want := range map[string]bool{"example.com/other": true, "kubernetes.io/job-controller": false} {
		contents, err := read(t, `apiVersion: batch/v1
kind: Job
metadata: {name: x}
spec: {managedBy: `+by+`, template: {spec: {restartPolicy: Never, containers: [{name: main, image: any}]}}}`)
		if err != nil {
			t.Fatal(err)
		}
		if texts := strings.Join(contents.Jobs[0].Approximate, "; "); strings.Contains(texts, by) != want {
			t.Errorf("%s: %q", by, texts)
		}
	}
}

func TestAStatefulSetThatWaitsBetweenItsPodsIsApproximate(t *testing.T) {
	for policy, want := range map[string]int{"OrderedReady": 1, "Parallel": 0} {
		contents, err := read(t, `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec: {replicas: 2, minReadySeconds: 60, podManagementPolicy: `+policy+`, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: any}]}}}`)
		if err != nil {
			t.Fatal(err)
		}
		if texts := contents.Jobs[0].Approximate; len(texts) != want {
			t.Errorf("%s: got %q", policy, texts)
		}
	}
}
