package workload

import (
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
)

// Defaults are what a namespace and the cluster add to pods' resources.
type Defaults struct {
	LimitRanges  []*corev1.LimitRange
	RuntimeClass func(name string) *nodev1.RuntimeClass
}

// WithDefaults is a workload whose pod sets ask for what their pods will ask for: with overheads and with the defaults
// of the namespace's LimitRanges. It is w itself where nothing is added.
func WithDefaults(w *kueue.Workload, defaults Defaults) *kueue.Workload {
	limits, requests := containerDefaults(defaults.LimitRanges)
	if len(limits)+len(requests) == 0 && !usesRuntimeClass(w) {
		return w
	}
	w = w.DeepCopy()
	for i := range w.Spec.PodSets {
		pod := &w.Spec.PodSets[i].Template.Spec
		if pod.RuntimeClassName != nil && len(pod.Overhead) == 0 {
			if class := defaults.RuntimeClass(*pod.RuntimeClassName); class != nil && class.Overhead != nil {
				pod.Overhead = class.Overhead.PodFixed
			}
		}
		for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
			for j := range containers {
				r := &containers[j].Resources
				r.Limits, r.Requests = keepFirst(r.Limits, limits), keepFirst(r.Requests, requests)
			}
		}
	}
	return w
}

func usesRuntimeClass(w *kueue.Workload) bool {
	for i := range w.Spec.PodSets {
		if w.Spec.PodSets[i].Template.Spec.RuntimeClassName != nil {
			return true
		}
	}
	return false
}

func containerDefaults(ranges []*corev1.LimitRange) (limits, requests corev1.ResourceList) {
	for _, r := range ranges {
		for _, item := range r.Spec.Limits {
			if item.Type == corev1.LimitTypeContainer {
				limits, requests = keepFirst(limits, item.Default), keepFirst(requests, item.DefaultRequest)
			}
		}
	}
	return limits, requests
}

// keepFirst adds to a what only b has.
func keepFirst(a, b corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range b {
		if _, there := a[name]; there {
			continue
		}
		if a == nil {
			a = corev1.ResourceList{}
		}
		a[name] = quantity
	}
	return a
}

// Requests are what the pod sets of a workload ask for in total; perPod is what one pod asks for.
func Requests(w *kueue.Workload, perPod func(*corev1.PodSpec) corev1.ResourceList) []kueue.PodSetRequest {
	var all []kueue.PodSetRequest
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		pods := int64(max(0, set.Count-reclaimed(w, set.Name)))
		total := corev1.ResourceList{}
		for name, quantity := range perPod(&set.Template.Spec) {
			sum := *resource.NewQuantity(quantity.Value()*pods, quantity.Format)
			if name == corev1.ResourceCPU {
				sum = *resource.NewMilliQuantity(quantity.MilliValue()*pods, quantity.Format)
			}
			total[name] = inForm(sum, quantity)
		}
		all = append(all, kueue.PodSetRequest{Name: set.Name, Resources: total})
	}
	return all
}
