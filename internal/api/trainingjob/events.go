package trainingjob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EventsAbout are those of the events whose object has one of the UIDs. The names of objects do not select events:
// those of an earlier job of the same name stay in the namespace for an hour.
func EventsAbout(events []corev1.Event, objects map[types.UID]bool) []corev1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return !objects[e.InvolvedObject.UID] })
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
