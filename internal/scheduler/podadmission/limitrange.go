package podadmission

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelpers "k8s.io/component-helpers/resource"
)

// limitRanges are those of a pod's namespace.
func (c *Controller) limitRanges(pod *corev1.Pod) []*corev1.LimitRange {
	var all []*corev1.LimitRange
	for _, limits := range c.cluster.LimitRanges {
		if limits.Namespace == pod.Namespace {
			all = append(all, limits)
		}
	}
	return all
}

// limitDefaults gives the pod the defaults of its namespace's LimitRanges (the mutating part of
// plugin/pkg/admission/limitranger).
func (c *Controller) limitDefaults(pod *corev1.Pod) *Refusal {
	for _, limits := range c.limitRanges(pod) {
		// Of several items in one LimitRange the last counts, of several LimitRanges the first.
		together := corev1.LimitRangeItem{Default: corev1.ResourceList{}, DefaultRequest: corev1.ResourceList{}}
		for i := range limits.Spec.Limits {
			if item := withDefaults(&limits.Spec.Limits[i]); item.Type == corev1.LimitTypeContainer {
				maps.Copy(together.Default, item.Default)
				maps.Copy(together.DefaultRequest, item.DefaultRequest)
			}
		}
		addDefaults(pod, &together)
	}
	return nil
}

// limitBounds holds the pod to the bounds of its namespace's LimitRanges (the validating part).
func (c *Controller) limitBounds(pod *corev1.Pod) *Refusal {
	for _, limits := range c.limitRanges(pod) {
		var violations []string
		for i := range limits.Spec.Limits {
			violations = append(violations, exceeds(pod, withDefaults(&limits.Spec.Limits[i]))...)
		}
		if refusal := joined(violations); refusal != nil {
			return refusal
		}
	}
	return nil
}

// withDefaults is an item as the API server stores it (SetDefaults_LimitRangeItem).
func withDefaults(item *corev1.LimitRangeItem) *corev1.LimitRangeItem {
	if item.Type != corev1.LimitTypeContainer {
		return item
	}
	item = item.DeepCopy()
	item.Default = missing(item.Default, item.Max)
	item.DefaultRequest = missing(item.DefaultRequest, item.Default)
	item.DefaultRequest = missing(item.DefaultRequest, item.Min)
	return item
}

// missing is a list with what it lacks of another.
func missing(list, other corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range other {
		if _, has := list[name]; !has {
			if list == nil {
				list = corev1.ResourceList{}
			}
			list[name] = quantity
		}
	}
	return list
}

func addDefaults(pod *corev1.Pod, item *corev1.LimitRangeItem) {
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			r.Limits, r.Requests = missing(r.Limits, item.Default), missing(r.Requests, item.DefaultRequest)
		}
	}
}

// exceeds lists the bounds of an item that the pod violates (PodValidateLimitFunc).
func exceeds(pod *corev1.Pod, item *corev1.LimitRangeItem) []string {
	var violations []string
	switch item.Type {
	case corev1.LimitTypeContainer:
		for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range containers {
				violations = append(violations, outside(item, containers[i].Resources.Requests, containers[i].Resources.Limits)...)
			}
		}
	case corev1.LimitTypePod:
		options := resourcehelpers.PodResourcesOptions{ExcludeOverhead: true}
		violations = outside(item, resourcehelpers.PodRequests(pod, options), resourcehelpers.PodLimits(pod, options))
	}
	return violations
}

// outside compares requests and limits with an item's minima, maxima and ratios, in the words of the API server.
func outside(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) []string {
	var violations []string
	violation := func(format string, args ...any) { violations = append(violations, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		bound := item.Min[name]
		request, requested := requests[name]
		limit, limited := limits[name]
		switch {
		case !requested:
			violation("minimum %s usage per %s is %s.  No request is specified", name, item.Type, bound.String())
		case request.Cmp(bound) < 0:
			violation("minimum %s usage per %s is %s, but request is %s", name, item.Type, bound.String(), request.String())
		case limited && limit.Cmp(bound) < 0:
			violation("minimum %s usage per %s is %s, but limit is %s", name, item.Type, bound.String(), limit.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		bound := item.Max[name]
		request, requested := requests[name]
		limit, limited := limits[name]
		switch {
		case !limited:
			violation("maximum %s usage per %s is %s.  No limit is specified", name, item.Type, bound.String())
		case limit.Cmp(bound) > 0:
			violation("maximum %s usage per %s is %s, but limit is %s", name, item.Type, bound.String(), limit.String())
		case requested && request.Cmp(bound) > 0:
			violation("maximum %s usage per %s is %s, but request is %s", name, item.Type, bound.String(), request.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		bound, request, limit := item.MaxLimitRequestRatio[name], requests[name], limits[name]
		switch {
		case request.IsZero():
			violation("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, item.Type, bound.String())
		case limit.IsZero():
			violation("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, item.Type, bound.String())
		case ratio(limit, request) > bound.AsApproximateFloat64():
			violation("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, item.Type, bound.String(), ratio(limit, request))
		}
	}
	return violations
}

func ratio(limit, request resource.Quantity) float64 {
	return limit.AsApproximateFloat64() / request.AsApproximateFloat64()
}
