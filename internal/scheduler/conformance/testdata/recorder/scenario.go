package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// scenario has the fields of a recording that say what is done (package conformance describes them). The others are
// copied from the input.
type scenario struct {
	Name        string `json:"name"`
	FairSharing *struct {
		PreemptionStrategies []string `json:"preemptionStrategies"`
	} `json:"fairSharing"`
	PriorityBoost   bool                              `json:"priorityBoost"`
	Topologies      []named[kueue.TopologySpec]       `json:"topologies"`
	Nodes           []node                            `json:"nodes"`
	Pods            []pod                             `json:"pods"`
	Flavors         []named[kueue.ResourceFlavorSpec] `json:"flavors"`
	PriorityClasses []struct {
		Name  string `json:"name"`
		Value int32  `json:"value"`
	} `json:"priorityClasses"`
	Cohorts       []named[kueue.CohortSpec]       `json:"cohorts"`
	ClusterQueues []named[kueue.ClusterQueueSpec] `json:"clusterQueues"`
	LocalQueues   []struct {
		Name         string `json:"name"`
		ClusterQueue string `json:"clusterQueue"`
	} `json:"localQueues"`
	Steps    []step `json:"steps"`
	Outcomes []struct {
		Workloads map[string]struct {
			UID string `json:"uid"`
		} `json:"workloads"`
	} `json:"outcomes"`
}

type named[T any] struct {
	Name string `json:"name"`
	Spec T      `json:"spec"`
}

type node struct {
	Name          string              `json:"name"`
	Labels        map[string]string   `json:"labels"`
	Taints        []corev1.Taint      `json:"taints"`
	Allocatable   corev1.ResourceList `json:"allocatable"`
	Unschedulable bool                `json:"unschedulable"`
	NotReady      bool                `json:"notReady"`
}

type pod struct {
	Name     string              `json:"name"`
	Node     string              `json:"node"`
	Requests corev1.ResourceList `json:"requests"`
}

type step struct {
	Op            string                        `json:"op"`
	Workload      json.RawMessage               `json:"workload"`
	Workloads     []submitted                   `json:"workloads"`
	ClusterQueue  string                        `json:"clusterQueue"`
	LocalQueue    string                        `json:"localQueue"`
	Flavor        string                        `json:"flavor"`
	Resource      string                        `json:"resource"`
	Set           map[string]*resource.Quantity `json:"set"`
	Value         json.RawMessage               `json:"value"`
	PriorityClass string                        `json:"priorityClass"`
	Node          *node                         `json:"node"`
	Pod           *pod                          `json:"pod"`
	Name          string                        `json:"name"`
}

type submitted struct {
	Name          string   `json:"name"`
	Queue         string   `json:"queue"`
	PriorityClass string   `json:"priorityClass"`
	Boost         int32    `json:"boost"`
	Replaces      string   `json:"replaces"`
	PodSets       []podSet `json:"podSets"`
	podSet
}

type podSet struct {
	Name            string                       `json:"-"`
	Count           int32                        `json:"count"`
	MinCount        *int32                       `json:"minCount"`
	Requests        corev1.ResourceList          `json:"requests"`
	NodeSelector    map[string]string            `json:"nodeSelector"`
	Tolerations     []corev1.Toleration          `json:"tolerations"`
	Affinity        *corev1.Affinity             `json:"affinity"`
	TopologyRequest *kueue.PodSetTopologyRequest `json:"topologyRequest"`
}

func (w *submitted) UnmarshalJSON(text []byte) error {
	type namedSet struct {
		Name string `json:"name"`
		podSet
	}
	var p struct {
		Name          string     `json:"name"`
		Queue         string     `json:"queue"`
		PriorityClass string     `json:"priorityClass"`
		Boost         int32      `json:"boost"`
		Replaces      string     `json:"replaces"`
		PodSets       []namedSet `json:"podSets"`
		podSet
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	*w = submitted{Name: p.Name, Queue: p.Queue, PriorityClass: p.PriorityClass, Boost: p.Boost, Replaces: p.Replaces, podSet: p.podSet}
	for _, s := range p.PodSets {
		s.podSet.Name = s.Name
		w.PodSets = append(w.PodSets, s.podSet)
	}
	if len(w.PodSets) == 0 {
		one := p.podSet
		one.Name = "main"
		w.PodSets = []podSet{one}
	}
	return nil
}
