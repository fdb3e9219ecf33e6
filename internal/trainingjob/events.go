package trainingjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// LastEvents are the newest n events about a job's own objects and pods, oldest first, a line each.
func LastEvents(job string, events []corev1.Event, n int) []string {
	var ours []corev1.Event
	for _, e := range events {
		name := e.InvolvedObject.Name
		if name == job || name == MasterName(job) || name == FloorName(job) || strings.HasPrefix(name, job+"-worker-") || jobPodOf(job, e) {
			ours = append(ours, e)
		}
	}
	return EventLines(ours, n)
}

// EventLines are the newest n of the events, oldest first, a line each.
func EventLines(events []corev1.Event, n int) []string {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b)) })
	sorted = sorted[max(0, len(sorted)-n):]
	out := make([]string, len(sorted))
	for i, e := range sorted {
		out[i] = fmt.Sprintf("%s %s %s/%s: %s", eventTime(e).UTC().Format(time.RFC3339), e.Reason,
			strings.ToLower(e.InvolvedObject.Kind), e.InvolvedObject.Name, strings.TrimSpace(e.Message))
	}
	return out
}

// jobPodOf says whether an event is about a pod that one of the Jobs made: its name is the Job's and five characters,
// the floor's has the index between them.
func jobPodOf(job string, e corev1.Event) bool {
	suffix, ok := strings.CutPrefix(e.InvolvedObject.Name, job+"-")
	if index, random, isFloor := strings.Cut(strings.TrimPrefix(suffix, "floor-"), "-"); isFloor && strings.HasPrefix(suffix, "floor-") {
		_, err := strconv.Atoi(index)
		return e.InvolvedObject.Kind == "Pod" && err == nil && len(random) == 5
	}
	return ok && e.InvolvedObject.Kind == "Pod" && len(suffix) == 5 && !strings.Contains(suffix, "-")
}

// eventTime is when an event was seen last; the newer API leaves the older fields empty.
func eventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}
