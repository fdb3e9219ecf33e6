// Package conformance compares the quota engine with recordings of a real Kueue: it reads them, gives their steps to
// the engine, and names the first difference.
//
// A recording (format 1) is a scenario: flavors, priority classes, cohorts and queues, a list of steps such as "submit"
// or "stopPolicy", and for each step the outcome: what Kueue did until it came to rest, and how every workload and
// queue stood then. There are two kinds, equal in form: those of a running Kueue with an API server, and those of
// Kueue's own scheduler in one process with a fake clock. Recordings say themselves which of their steps do not depend
// on timing and may be asserted. Fields that are not known are ignored.
//
// The package guarantees that Replay's results have the form of the recordings. Package quota makes the decisions.
package conformance

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
)

// Format is the version of the recordings that are understood.
const Format = 1

// Scenario is one recording.
type Scenario struct {
	Format      int    `json:"format"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Kueue is the release that answered.
	Kueue string `json:"kueue,omitempty"`
	// FairSharing is there when Kueue was configured for it.
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
	// AdmissionFairSharing is there when Kueue was configured for it.
	AdmissionFairSharing *configuration.AdmissionFairSharing `json:"admissionFairSharing,omitempty"`
	// WaitForPodsReady is there when Kueue was configured for it.
	WaitForPodsReady *WaitForPodsReady `json:"waitForPodsReady,omitempty"`
	// PriorityBoost is true when Kueue's feature gate of this name was on.
	PriorityBoost bool `json:"priorityBoost,omitempty"`
	// Topologies, Nodes and Pods are there when it is about topology-aware scheduling.
	Topologies      []Topology      `json:"topologies,omitempty"`
	Nodes           []Node          `json:"nodes,omitempty"`
	Pods            []Pod           `json:"pods,omitempty"`
	Flavors         []Flavor        `json:"flavors"`
	PriorityClasses []PriorityClass `json:"priorityClasses"`
	Cohorts         []Cohort        `json:"cohorts"`
	ClusterQueues   []ClusterQueue  `json:"clusterQueues"`
	LocalQueues     []LocalQueue    `json:"localQueues"`
	Steps           []Step          `json:"steps"`
	// Outcomes has one entry for each of Steps.
	Outcomes []Outcome `json:"outcomes"`
	Checks   Checks    `json:"checks"`
}

// UIDs are those of the workloads in the outcomes, with which Kueue broke ties. Others look random, so that they do not follow
// the order of creation, and are the same whenever the scenario is played.
func (s *Scenario) UIDs() func(workload string) string {
	recorded := map[string]string{}
	for _, o := range s.Outcomes {
		for name, w := range o.Workloads {
			recorded[name] = w.UID
		}
	}
	return func(workload string) string {
		if uid := recorded[workload]; uid != "" {
			return uid
		}
		h := sha256.Sum256([]byte(s.Name + "/" + workload))
		return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
	}
}

// Family is the kind of the recording, by its name: LETTER-FAMILY-…, after "min-" for one that was made small.
func (s *Scenario) Family() string {
	_, family, _ := strings.Cut(strings.TrimPrefix(s.Name, "min-"), "-")
	family, _, _ = strings.Cut(family, "-")
	return family
}

// FairSharing is Kueue's fairSharing configuration.
type FairSharing struct {
	PreemptionStrategies []string `json:"preemptionStrategies,omitempty"`
}

// WaitForPodsReady is Kueue's waitForPodsReady with its requeuingStrategy.
type WaitForPodsReady struct {
	// BlockAdmission lets Kueue wait, before it admits a workload, until the pods of all admitted ones are ready. Here
	// they are at once; who is admitted is the same.
	BlockAdmission bool `json:"blockAdmission,omitempty"`
	// Timestamp is Eviction, the default, or Creation.
	Timestamp string `json:"timestamp,omitempty"`
	// BackoffBaseSeconds is how long a workload waits after its first eviction; each time, it waits twice as long.
	BackoffBaseSeconds int32 `json:"backoffBaseSeconds"`
	// BackoffLimitCount is how often a workload is queued again; the next time, it is deactivated. nil: without end.
	BackoffLimitCount *int32 `json:"backoffLimitCount,omitempty"`
}

// Flavor is a ResourceFlavor.
type Flavor struct {
	Name string                   `json:"name"`
	Spec kueue.ResourceFlavorSpec `json:"spec"`
}

// Topology is a Topology.
type Topology struct {
	Name string             `json:"name"`
	Spec kueue.TopologySpec `json:"spec"`
}

// Node is a node.
type Node struct {
	Name          string              `json:"name"`
	Labels        map[string]string   `json:"labels,omitempty"`
	Taints        []corev1.Taint      `json:"taints,omitempty"`
	Allocatable   corev1.ResourceList `json:"allocatable"`
	Unschedulable bool                `json:"unschedulable,omitempty"`
	NotReady      bool                `json:"notReady,omitempty"`
}

// Pod is a pod on a node that Kueue did not place there.
type Pod struct {
	Name     string              `json:"name"`
	Node     string              `json:"node"`
	Requests corev1.ResourceList `json:"requests"`
}

// PriorityClass is a WorkloadPriorityClass.
type PriorityClass struct {
	Name  string `json:"name"`
	Value int32  `json:"value"`
}

// Cohort is a Cohort object.
type Cohort struct {
	Name string           `json:"name"`
	Spec kueue.CohortSpec `json:"spec"`
}

// ClusterQueue is one without its namespaceSelector, which selects everything.
type ClusterQueue struct {
	Name string                 `json:"name"`
	Spec kueue.ClusterQueueSpec `json:"spec"`
}

// LocalQueue leads to a ClusterQueue.
type LocalQueue struct {
	Name         string            `json:"name"`
	ClusterQueue string            `json:"clusterQueue"`
	StopPolicy   *kueue.StopPolicy `json:"stopPolicy,omitempty"`
	// FairSharing has its weight under admission fair sharing.
	FairSharing *kueue.FairSharing `json:"fairSharing,omitempty"`
}

// Op names what a step does.
type Op string

// The steps that are known.
const (
	Submit      Op = "submit"      // Workload
	SubmitMany  Op = "submitMany"  // Workloads, one second apart
	Finish      Op = "finish"      // Target
	SetQuota    Op = "setQuota"    // ClusterQueue, Flavor, Resource, Set
	StopPolicy  Op = "stopPolicy"  // ClusterQueue (or LocalQueue), Value
	SetActive   Op = "setActive"   // Target, Value
	SetPriority Op = "setPriority" // Target, PriorityClass
	SetBoost    Op = "setBoost"    // Target, Value
	Resize      Op = "resize"      // Target, Value: the number of pods in its first pod set
	SetNode     Op = "setNode"     // Node: it is added or replaced
	DeleteNode  Op = "deleteNode"  // Name
	SetPod      Op = "setPod"      // Pod: it is added or replaced
	DeletePod   Op = "deletePod"   // Name
	// UnhealthyNode: a node with pods of Target has failed (Name); one second later Kueue looks for another.
	UnhealthyNode Op = "unhealthyNode"
	// PodsNotReady: the pods of Target were not ready in time; nothing happens if it is not admitted.
	PodsNotReady Op = "podsNotReady"
	// Wait: time passes (Value: seconds).
	Wait Op = "wait"
)

// Step is one thing that was done.
type Step struct {
	Op           Op              `json:"op"`
	Workload     json.RawMessage `json:"workload,omitempty"` // a Workload to submit, or the name of one
	Workloads    []Workload      `json:"workloads,omitempty"`
	ClusterQueue string          `json:"clusterQueue,omitempty"`
	LocalQueue   string          `json:"localQueue,omitempty"`
	Flavor       string          `json:"flavor,omitempty"`
	Resource     string          `json:"resource,omitempty"`
	// Set has the fields of a quota that are replaced; null takes a limit away.
	Set           map[string]*resource.Quantity `json:"set,omitempty"`
	Value         json.RawMessage               `json:"value,omitempty"`
	PriorityClass string                        `json:"priorityClass,omitempty"`
	Node          *Node                         `json:"node,omitempty"`
	Pod           *Pod                          `json:"pod,omitempty"`
	Name          string                        `json:"name,omitempty"`
}

// Workload is one to submit: a single pod set named main in the fields of its own, or several in PodSets.
type Workload struct {
	Name          string `json:"name"`
	Queue         string `json:"queue"`
	PriorityClass string `json:"priorityClass"`
	// Boost is added to the priority (annotation kueue.x-k8s.io/priority-boost).
	Boost int32 `json:"boost,omitempty"`
	// Replaces is the workload whose quota it takes over (a workload slice).
	Replaces string `json:"replaces,omitempty"`
	PodSet
	PodSets []PodSet `json:"podSets,omitempty"`
}

// PodSet is a set of equal pods; Requests are those of one. One in the fields of its workload has no name of its own.
type PodSet struct {
	Name         string              `json:"name,omitempty"`
	Count        int32               `json:"count"`
	MinCount     *int32              `json:"minCount,omitempty"`
	Requests     corev1.ResourceList `json:"requests"`
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	Affinity     *corev1.Affinity    `json:"affinity,omitempty"`
	// TopologyRequest is where the pods want to be.
	TopologyRequest *kueue.PodSetTopologyRequest `json:"topologyRequest,omitempty"`
}

// Sets are the pod sets of a workload.
func (w *Workload) Sets() []PodSet {
	if len(w.PodSets) > 0 {
		return w.PodSets
	}
	one := w.PodSet
	one.Name = "main"
	return []PodSet{one}
}

// Submitted reads the workload of a submit step.
func (s *Step) Submitted() (w Workload, err error) {
	if err := json.Unmarshal(s.Workload, &w); err != nil {
		return w, fmt.Errorf("workload: %w", err)
	}
	if w.Name == "" {
		return w, fmt.Errorf("workload: it has no name")
	}
	return w, nil
}

// Target reads the name of the workload that a step is about.
func (s *Step) Target() (name string, err error) {
	if err := json.Unmarshal(s.Workload, &name); err != nil || name == "" {
		return "", fmt.Errorf("workload: want the name of one, got %s", s.Workload)
	}
	return name, nil
}

// String reports what a step does, for messages.
func (s *Step) String() string {
	switch s.Op {
	case Submit:
		if w, err := s.Submitted(); err == nil {
			return fmt.Sprintf("%s %s", s.Op, w.Name)
		}
	case SubmitMany:
		return fmt.Sprintf("%s of %d", s.Op, len(s.Workloads))
	case Finish, SetActive, SetPriority, SetBoost, Resize, UnhealthyNode, PodsNotReady:
		if name, err := s.Target(); err == nil {
			return fmt.Sprintf("%s %s %s%s", s.Op, name, s.Value, s.PriorityClass)
		}
	case SetQuota:
		return fmt.Sprintf("%s %s %s/%s", s.Op, s.ClusterQueue, s.Flavor, s.Resource)
	case SetNode:
		return fmt.Sprintf("%s %s", s.Op, s.Node.Name)
	case SetPod:
		return fmt.Sprintf("%s %s", s.Op, s.Pod.Name)
	case DeleteNode, DeletePod:
		return fmt.Sprintf("%s %s", s.Op, s.Name)
	case Wait:
		return fmt.Sprintf("%s %s s", s.Op, s.Value)
	case StopPolicy:
		return fmt.Sprintf("%s %s%s %s", s.Op, s.ClusterQueue, s.LocalQueue, s.Value)
	}
	return string(s.Op)
}

// Checks say which steps do not depend on timing.
type Checks struct {
	// AssertedSteps: only steps before this index are asserted; nil: see the others.
	AssertedSteps *int `json:"assertedSteps,omitempty"`
	// The others are "equal", "differs from step N on", or something else for "not done".
	ReplayedOnRealKueue string `json:"replayedOnRealKueue,omitempty"`
	InProcessScheduler  string `json:"inProcessScheduler,omitempty"`
}

var differsFrom = regexp.MustCompile(`^differs from step (\d+)`)

// Asserted is the number of steps that must match.
func (s *Scenario) Asserted() int {
	all := len(s.Steps)
	if s.Checks.AssertedSteps != nil {
		return max(0, min(all, *s.Checks.AssertedSteps))
	}
	// A step is good if either way of doing it again gave the same.
	good, done := 0, false
	for _, check := range []string{s.Checks.ReplayedOnRealKueue, s.Checks.InProcessScheduler} {
		if check == "equal" {
			return all
		}
		if m := differsFrom.FindStringSubmatch(check); m != nil {
			n, err := strconv.Atoi(m[1])
			if err == nil {
				good, done = max(good, min(all, n)), true
			}
		}
	}
	if !done {
		return all
	}
	return good
}
