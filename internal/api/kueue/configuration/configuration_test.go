package configuration_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
)

const text = `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
manageJobsWithoutQueueName: true
waitForPodsReady:
  timeout: 5m
  blockAdmission: true
  requeuingStrategy: {timestamp: Creation, backoffLimitCount: 5}
fairSharing: {preemptionStrategies: [LessThanInitialShare]}
admissionFairSharing: {usageHalfLifeTime: 168h, resourceWeights: {cpu: 2}}
resources:
  quotaCheckStrategy: IgnoreUndeclared
  transformations:
  - {input: nvidia.com/mig-1g.5gb, strategy: Replace, outputs: {example.com/accelerator-memory: 5Gi}}
featureGates: {PriorityBoost: true, LocalQueueMetrics: false, PartialAdmission: true}
`

func TestAConfigurationIsReadAsKueueWouldUseIt(t *testing.T) {
	c, err := configuration.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	c.AddGates([]string{"--zap-log-level=2", "--feature-gates=TASBalancedPlacement=true,VisibilityOnDemand=false", "--feature-gates", "PriorityBoost=true"})
	switch {
	case !c.ManageJobsWithoutQueueName, c.ReadyTimeout() != 5*time.Minute, !c.BlocksAdmission(), !c.KeepsPlace(), !c.IgnoresUndeclared():
		t.Errorf("read %+v", c)
	case !c.SharesFairly() || c.FairSharing.PreemptionStrategies[0] != "LessThanInitialShare":
		t.Errorf("fair sharing is read as %+v", c.FairSharing)
	case c.UsageBased() == nil || c.UsageBased().ResourceWeights["cpu"] != 2:
		t.Errorf("admission fair sharing is read as %+v", c.AdmissionFairSharing)
	case !c.Gate("PriorityBoost"), c.Gate("ConcurrentAdmission"):
		t.Errorf("feature gates are read as %v", c.FeatureGates)
	}
	// A gate that decides nothing, one with its default and one that the engine follows are no reason for doubt.
	if got := c.Untested(); !slices.Equal(got, []string{"TASBalancedPlacement"}) {
		t.Errorf("untested gates %v", got)
	}
}

func TestTheDefaultsAreThoseOfKueue(t *testing.T) {
	c, err := configuration.Parse("")
	if err != nil {
		t.Fatal(err)
	}
	if c.ReadyTimeout() != 30*time.Minute || c.BlocksAdmission() || c.SharesFairly() || c.UsageBased() != nil || c.KeepsPlace() || c.IgnoresUndeclared() {
		t.Errorf("read %+v", c)
	}
	c.AddGates([]string{"--feature-gates=DisableWaitForPodsReady=true,AdmissionFairSharing=false"})
	c.AdmissionFairSharing = &configuration.AdmissionFairSharing{}
	if c.ReadyTimeout() != 0 || c.UsageBased() != nil || len(c.Untested()) > 0 {
		t.Errorf("the gates are read as %v", c.FeatureGates)
	}
	off, err := configuration.Parse("fairSharing: {enable: false}") // v1beta1
	if err != nil || off.SharesFairly() {
		t.Errorf("read %+v, %v", off, err)
	}
	if _, err := configuration.Parse("fairSharing: ["); err == nil {
		t.Error("a text that is no YAML was read")
	}
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestResourcesThatCountAreThoseThatKueueCounts(t *testing.T) {
	for behaviour, c := range map[string]struct {
		resources      configuration.Resources
		requests, want corev1.ResourceList
	}{
		"nothing is configured": {configuration.Resources{}, list("cpu", "1", "a/b", "2"), list("cpu", "1", "a/b", "2")},
		"prefixes are excluded": {
			configuration.Resources{ExcludeResourcePrefixes: []string{"networking.example.com/"}},
			list("cpu", "1", "networking.example.com/vpc", "1"), list("cpu", "1"),
		},
		"an input is retained": {
			configuration.Resources{Transformations: []configuration.Transformation{{Input: "gpu", Outputs: list("credits", "10", "cpu", "500m")}}},
			list("cpu", "1", "gpu", "2"), list("cpu", "2", "gpu", "2", "credits", "20"),
		},
		"an input is replaced": {
			configuration.Resources{Transformations: []configuration.Transformation{
				{Input: "mig-1g", Strategy: "Replace", Outputs: list("memory-of-gpus", "5Gi")},
				{Input: "mig-2g", Strategy: "Replace", Outputs: list("memory-of-gpus", "10Gi")},
			}},
			list("mig-1g", "2", "mig-2g", "1", "cpu", "1"), list("cpu", "1", "memory-of-gpus", "20Gi"),
		},
		"an input without outputs is dropped": {
			configuration.Resources{Transformations: []configuration.Transformation{{Input: "gpu", Strategy: "Replace"}}},
			list("cpu", "1", "gpu", "2"), list("cpu", "1"),
		},
		"an output is multiplied by another request": {
			configuration.Resources{Transformations: []configuration.Transformation{
				{Input: "gpu-memory", Strategy: "Replace", MultiplyBy: "gpu", Outputs: list("total", "1")},
			}},
			list("gpu", "4", "gpu-memory", "16Gi"), list("gpu", "4", "total", "64Gi"),
		},
		"an allowance does not lower what is requested": {
			configuration.Resources{Transformations: []configuration.Transformation{{Input: "gpu", Outputs: list("cpu", "-4")}}},
			list("cpu", "1", "gpu", "2"), list("cpu", "1", "gpu", "2"),
		},
	} {
		before := c.requests.DeepCopy()
		if got := c.resources.Count(c.requests); !equality.Semantic.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", behaviour, got, c.want)
		}
		if !equality.Semantic.DeepEqual(before, c.requests) {
			t.Errorf("%s: the requests were changed to %v", behaviour, c.requests)
		}
	}
}
