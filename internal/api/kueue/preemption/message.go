// Package preemption knows the sentences in which Kueue reports preemptions.
package preemption

import "regexp"

// Texts say a reason of Preempted as Kueue's message does. The reasons are those of its package v1beta2, which would register all
// types of the API in the image of every worker.
func Texts() map[string]string {
	return map[string]string{
		"InClusterQueue":                "prioritization in the ClusterQueue",
		"InCohortReclamation":           "reclamation within the cohort",
		"InCohortFairSharing":           "Fair Sharing within the cohort",
		"InCohortReclaimWhileBorrowing": "reclamation within the cohort while borrowing",
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
