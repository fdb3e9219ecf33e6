package kueue

import "regexp"

// PreemptionTexts say a reason of Preempted as Kueue's message does.
func PreemptionTexts() map[string]string {
	return map[string]string{
		InClusterQueueReason:                "prioritization in the ClusterQueue",
		InCohortReclamationReason:           "reclamation within the cohort",
		InCohortFairSharingReason:           "Fair Sharing within the cohort",
		InCohortReclaimWhileBorrowingReason: "reclamation within the cohort while borrowing",
	}
}

var preempted = regexp.MustCompile(`to accommodate a workload \(UID: ([^,)]+)(?:, JobUID: [^)]*)?\)(?: due to ([^;]+))?`)

// ParsePreempted reads Kueue's message of a preemption: the UID of the workload that it made room for, and the reason of
// condition Preempted. Both are "" where the message does not have them; ok is false for another message.
func ParsePreempted(message string) (uid, reason string, ok bool) {
	match := preempted.FindStringSubmatch(message)
	if match == nil {
		return "", "", false
	}
	if uid = match[1]; uid == "UNKNOWN" {
		uid = ""
	}
	for of, text := range PreemptionTexts() {
		if text == match[2] {
			reason = of
		}
	}
	return uid, reason, true
}
