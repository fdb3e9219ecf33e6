package truth_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
)

func TestASeedAlwaysMakesTheSameSituation(t *testing.T) {
	kinds := map[string]bool{}
	for seed := range uint64(300) {
		s, again := truth.Generate(seed), truth.Generate(seed)
		setup, job := s.Texts()
		if setupAgain, jobAgain := again.Texts(); setup != setupAgain || job != jobAgain {
			t.Fatalf("seed %d makes two situations:\n%s\n%s\nand\n%s\n%s", seed, setup, job, setupAgain, jobAgain)
		}
		if _, err := truth.Parse([]byte(setup), []byte(job)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		planned := int64(0)
		for _, object := range s.Job {
			planned += podsOf(object)
		}
		if planned > 6 {
			t.Errorf("seed %d plans %d pods", seed, planned)
		}
		for _, part := range append(s.Setup, s.Job) {
			for _, object := range part {
				kinds[object.GetKind()] = true
			}
		}
	}
	for _, kind := range []string{
		"Pod", "Job", "Deployment", "StatefulSet", "ReplicaSet", "PriorityClass", "PodDisruptionBudget", "LimitRange", "ResourceQuota",
		"Namespace", "RuntimeClass", "Service", "Node", "ClusterQueue", "LocalQueue", "ResourceFlavor", "Topology", "DeviceClass", "ResourceSlice",
		"ResourceClaim", "ResourceClaimTemplate", "PersistentVolume", "PersistentVolumeClaim", "StorageClass",
		"ValidatingAdmissionPolicy", "CronJob", "DaemonSet", "JobSet", "TrainJob", "TrainingRuntime", "RayCluster",
	} {
		if !kinds[kind] {
			t.Errorf("no situation of 300 has a %s", kind)
		}
	}
}

// podsOf is how many pods an object has.
func podsOf(object *unstructured.Unstructured) int64 {
	for _, field := range []string{"replicas", "parallelism"} {
		if n, there, _ := unstructured.NestedInt64(object.Object, "spec", field); there {
			return n
		}
	}
	if object.GetKind() == "Pod" {
		return 1
	}
	return 0
}
