package provider

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestAnEmptyLogIsReportedAsEmpty(t *testing.T) {
	for text, want := range map[string][]string{
		"": {"(the container wrote nothing)"}, "\n": {"(the container wrote nothing)"}, "one\ntwo\n": {"one", "two"},
	} {
		if got := logLines(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAQueueFromWhichNothingIsAdmittedIsNamed(t *testing.T) {
	queue := func(conditions ...metav1.Condition) []*kueue.LocalQueue {
		return []*kueue.LocalQueue{{Spec: kueue.LocalQueueSpec{ClusterQueue: "team"}, Status: kueue.LocalQueueStatus{Conditions: conditions}}}
	}
	inactive := func(reason string) metav1.Condition {
		return metav1.Condition{Type: kueue.LocalQueueActive, Status: metav1.ConditionFalse, Reason: reason, Message: "Can't submit new workloads to clusterQueue"}
	}
	for name, c := range map[string]struct {
		found []*kueue.LocalQueue
		want  string
	}{
		"there is none":                  {nil, "LocalQueue ns/q does not exist"},
		"Kueue has not processed it yet": {queue(), ""},
		"it is active":                   {queue(metav1.Condition{Type: kueue.LocalQueueActive, Status: metav1.ConditionTrue, Reason: "Ready"}), ""},
		"its ClusterQueue is missing":    {queue(inactive(clusterQueueDoesNotExist)), "ClusterQueue team of LocalQueue ns/q does not exist (Can't submit new workloads to clusterQueue)"},
		"its ClusterQueue is held":       {queue(inactive("ClusterQueueIsInactive")), ""}, // it may be released during the wait
	} {
		t.Run(name, func(t *testing.T) {
			if got := queueProblem("ns", "q", c.found); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}
