// Package preemption knows the sentences in which Kueue reports preemptions.
package preemption

import (
	"regexp"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Texts say a reason of Preempted as Kueue's message does.
func Texts() map[string]string {
	return map[string]string{
		kueue.InClusterQueueReason:                "prioritization in the ClusterQueue",
		kueue.InCohortReclamationReason:           "reclamation within the cohort",
		kueue.InCohortFairSharingReason:           "Fair Sharing within the cohort",
		kueue.InCohortReclaimWhileBorrowingReason: "reclamation within the cohort while borrowing",
	}
}

var preempted = regexp.MustCompile(`to accommodate a workload \(UID: ([^,)]+)(?:, JobUID: [^)]*)?\)(?: due to ([^;]+))?`)

// ParseMessage reads Kueue's message of a preemption: the UID of the workload that it made room for, and the reason of
// condition Preempted. Both are "" where the message does not have them; ok is false for another message.
func ParseMessage(message string) (uid, reason string, ok bool) {
	match := preempted.FindStringSubmatch(message)
	if match == nil {
		return "", "", false
	}
	if uid = match[1]; uid == "UNKNOWN" {
		uid = ""
	}
	for of, text := range Texts() {
		if text == match[2] {
			reason = of
		}
	}
	return uid, reason, true
}
