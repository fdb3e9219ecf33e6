// Package configuration reads Kueue's configuration, as far as it decides about workloads: the ConfigMap that Kueue's
// manifests and its chart create. It computes which resources count of those that pods request.
package configuration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Where Kueue's manifests and its chart put the configuration, and the Deployment whose arguments may set feature gates.
const (
	Namespace  = "kueue-system"
	ConfigMap  = "kueue-manager-config"
	Key        = "controller_manager_config.yaml"
	Deployment = "kueue-controller-manager"
)

// Configuration is Kueue's configuration. The zero value is Kueue's default.
type Configuration struct {
	ManageJobsWithoutQueueName bool `json:"manageJobsWithoutQueueName,omitempty"`
	// WaitForPodsReady is always on since Kueue 0.19.
	WaitForPodsReady     WaitForPodsReady      `json:"waitForPodsReady,omitzero"`
	FairSharing          *FairSharing          `json:"fairSharing,omitempty"`
	AdmissionFairSharing *AdmissionFairSharing `json:"admissionFairSharing,omitempty"`
	Resources            Resources             `json:"resources,omitzero"`
	FeatureGates         map[string]bool       `json:"featureGates,omitempty"`
}

// WaitForPodsReady evicts workloads whose pods are not ready in time.
type WaitForPodsReady struct {
	// Timeout is 30 minutes by default.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// BlockAdmission admits a workload only when the pods of all admitted ones are ready.
	BlockAdmission    bool `json:"blockAdmission,omitempty"`
	RequeuingStrategy struct {
		// Timestamp is Eviction, the default, or Creation: by which time an evicted workload is queued.
		Timestamp string `json:"timestamp,omitempty"`
	} `json:"requeuingStrategy,omitzero"`
}

// FairSharing shares quota that is borrowed. Enable is a field of v1beta1.
type FairSharing struct {
	Enable               *bool    `json:"enable,omitempty"`
	PreemptionStrategies []string `json:"preemptionStrategies,omitempty"`
}

// AdmissionFairSharing orders workloads by what their LocalQueues have used.
type AdmissionFairSharing struct {
	UsageHalfLifeTime     metav1.Duration                 `json:"usageHalfLifeTime,omitzero"`
	UsageSamplingInterval metav1.Duration                 `json:"usageSamplingInterval,omitzero"`
	ResourceWeights       map[corev1.ResourceName]float64 `json:"resourceWeights,omitempty"`
}

// ignoreUndeclared lets workloads request resources that their queue does not cover.
const ignoreUndeclared = "IgnoreUndeclared"

// defaultTimeout is that of WaitForPodsReady.
const defaultTimeout = 30 * time.Minute

// Parse reads a configuration.
func Parse(text string) (*Configuration, error) {
	c := &Configuration{}
	if err := yaml.Unmarshal([]byte(text), c); err != nil {
		return nil, fmt.Errorf("reading the configuration of Kueue: %w", err)
	}
	return c, nil
}

// AddGates adds feature gates as the argument --feature-gates of Kueue's Deployment has them: "A=true,B=false".
func (c *Configuration) AddGates(arguments []string) {
	gates := maps.Clone(c.FeatureGates)
	for i, argument := range arguments {
		name, list, joined := strings.Cut(argument, "=")
		if name != "--feature-gates" {
			continue
		}
		if !joined && i+1 < len(arguments) {
			list = arguments[i+1]
		}
		for gate := range strings.SplitSeq(list, ",") {
			if name, value, found := strings.Cut(strings.TrimSpace(gate), "="); found {
				if gates == nil {
					gates = map[string]bool{}
				}
				gates[name] = value == "true"
			}
		}
	}
	c.FeatureGates = gates
}

// SharesFairly reports whether fair sharing is on.
func (c *Configuration) SharesFairly() bool {
	return c.FairSharing != nil && (c.FairSharing.Enable == nil || *c.FairSharing.Enable)
}

// UsageBased is admission fair sharing; nil where it is off.
func (c *Configuration) UsageBased() *AdmissionFairSharing {
	if !c.Gate("AdmissionFairSharing") {
		return nil
	}
	return c.AdmissionFairSharing
}

// IgnoresUndeclared reports whether workloads may request resources that their queue does not cover.
func (c *Configuration) IgnoresUndeclared() bool {
	return c.Resources.QuotaCheckStrategy == ignoreUndeclared && c.Gate("QuotaCheckStrategy")
}

// ReadyTimeout is how long Kueue waits for a workload's pods; 0 if it does not.
func (c *Configuration) ReadyTimeout() time.Duration {
	switch {
	case c.Gate("DisableWaitForPodsReady"):
		return 0
	case c.WaitForPodsReady.Timeout.Duration == 0:
		return defaultTimeout
	}
	return c.WaitForPodsReady.Timeout.Duration
}

// BlocksAdmission reports whether a workload is admitted only when the pods of all admitted ones are ready.
func (c *Configuration) BlocksAdmission() bool {
	return c.ReadyTimeout() > 0 && c.WaitForPodsReady.BlockAdmission
}

// KeepsPlace reports whether a workload that was evicted because its pods were late keeps its place in its queue.
func (c *Configuration) KeepsPlace() bool {
	return c.WaitForPodsReady.RequeuingStrategy.Timestamp == "Creation"
}

// Gate reports whether a feature gate is on.
func (c *Configuration) Gate(name string) bool {
	if on, set := c.FeatureGates[name]; set {
		return on
	}
	return defaults[name]
}

// defaults are the feature gates of Kueue 0.19 that decide about workloads, and their values. The decisions of Kueue with
// other values were not compared with this project's engine, except for those in followed.
var defaults = map[string]bool{
	"AdmissionFairSharing": true, "AdmissionGatedBy": true, "ConcurrentAdmission": false, "DisableWaitForPodsReady": false,
	"ElasticJobsViaWorkloadSlices": true, "ElasticJobsViaWorkloadSlicesWithTAS": false, "FairSharingPreemptWithinNominal": true,
	"FairSharingPrioritizeNonBorrowing": true, "FastQuotaReleaseInPodIntegration": false, "FlavorFungibility": true,
	"FlavorFungibilityPreserveScanProgress": true, "KueueDRAIntegration": true, "KueueDRAIntegrationConsumableCapacity": false,
	"KueueDRAIntegrationExtendedResource": true, "KueueDRAIntegrationPartitionableDevices": true,
	"KueueDRARejectWorkloadsWhenDRADisabled": true, "MultiKueueOrchestratedPreemption": false, "PartialAdmission": true,
	"PrioritizePreemptorWorkloads": false, "PriorityBoost": false, "PrioritySortingWithinCohort": true, "QuotaCheckStrategy": true,
	"ReclaimablePods": true, "RecomputeAssignmentUponPreemptionTargetsOverlap": false, "SchedulerLibraryIntegration": false,
	"SchedulerLongRequeueInterval": false, "SchedulerTimestampPreemptionBuffer": false, "SchedulingEquivalenceHashing": true,
	"SkipReassignmentForPodOwnedWorkloads": true, "TASBalancedPlacement": false, "TASFailedNodeReplacement": true,
	"TASFailedNodeReplacementFailFast": true, "TASHandleOverlappingFlavors": true, "TASMultiLayerTopology": true, "TASProfileMixed": true,
	"TASRecomputeAssignmentWithinSchedulingCycle": true, "TASReplaceNodeDueToNotReadyOverFixedTime": false,
	"TASReplaceNodeOnNodeTaints": true, "TASReplaceNodeOnPodTermination": true, "TASRespectNodeAffinityPreferred": false,
	"TopologyAwareScheduling": true, "WorkloadPriorityClassDefaulting": false,
}

// followed are the gates that the engine follows.
var followed = []string{"AdmissionFairSharing", "DisableWaitForPodsReady", "PriorityBoost", "QuotaCheckStrategy"}

// Untested lists the feature gates that decide about workloads and have values that the engine does not follow.
func (c *Configuration) Untested() []string {
	var names []string
	for name, on := range c.FeatureGates {
		if usual, decides := defaults[name]; decides && on != usual && !slices.Contains(followed, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
