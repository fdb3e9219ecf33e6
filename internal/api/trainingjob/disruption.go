package trainingjob

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/preemption"
)

// DisruptionKind is how a pod of a job was taken away.
type DisruptionKind string

// The kinds of disruptions.
const (
	DisruptionPreempted DisruptionKind = "preempted" // by kube-scheduler or Kueue, for a pod or workload of higher priority
	DisruptionEvicted   DisruptionKind = "evicted"   // through the eviction API, by its node or the node's taints, or by Kueue for another reason
	DisruptionDeleted   DisruptionKind = "deleted"   // by a client
	DisruptionFailed    DisruptionKind = "failed"    // a container ended
	DisruptionSuspended DisruptionKind = "suspended" // with its Job
	DisruptionLost      DisruptionKind = "lost"      // a master that did not report why it ended
)

// DisruptionKinds are all of them.
func DisruptionKinds() []DisruptionKind {
	return []DisruptionKind{
		DisruptionPreempted, DisruptionEvicted, DisruptionDeleted, DisruptionFailed, DisruptionSuspended, DisruptionLost,
	}
}

// DisruptionCause is which pod was taken away, how, why and for whom. What is not known is "".
type DisruptionCause struct {
	Pod     string         `json:"pod,omitempty"`
	UID     string         `json:"uid,omitempty"`
	Kind    DisruptionKind `json:"kind"`
	Reason  string         `json:"reason,omitempty"` // of the pod's condition, of Kueue's condition Preempted, or of the container
	Message string         `json:"message,omitempty"`
	By      string         `json:"preemptor,omitempty"`     // "pod NAMESPACE/NAME" or "workload NAMESPACE/NAME"
	ByUID   string         `json:"preemptor_uid,omitempty"` // which is all that Kueue's message and the scheduler's event have
}

// Disruption is a pod of a job that was taken away before its work was done, and what that cost.
type Disruption struct {
	At   time.Time `json:"at"`
	Role string    `json:"role"`
	DisruptionCause

	Step    int64 `json:"step"`    // the highest that was done
	Workers int   `json:"workers"` // that were ready, itself included

	// LostSteps are those that were done and had to be repeated, LostSeconds the time until it was recovered in which no
	// new step was computed. While several are not recovered the newest has both, so that sums count nothing twice.
	LostSteps   int64   `json:"lost_steps,omitempty"`
	LostSeconds float64 `json:"lost_seconds,omitempty"`
	// Recovered is when a step beyond Step was done, FullSize when as many workers were ready as before; nil: not yet.
	Recovered *float64 `json:"seconds_to_recover,omitempty"`
	FullSize  *float64 `json:"seconds_to_full_size,omitempty"`
}

// Disruptions are those of a job's life, over all of its masters: sums, and the newest ones, oldest first.
type Disruptions struct {
	Count       int64        `json:"count"`
	LostSteps   int64        `json:"lost_steps"`
	LostSeconds float64      `json:"lost_seconds"`
	Newest      []Disruption `json:"newest"`
	// MasterStopped: the master that reports this was signalled to stop, and one of them is its own.
	MasterStopped bool `json:"master_stopped,omitempty"`
}

// MostDisruptions is how many a status lists.
const MostDisruptions = 20

// longestDisruptionMessage bounds the text of one, in bytes.
const longestDisruptionMessage = 300

// CauseOf is why a pod ends; its Kind is "" for one that does not.
func CauseOf(pod *corev1.Pod) DisruptionCause {
	c := DisruptionCause{Pod: pod.Name, UID: string(pod.UID)}
	because := func(kind DisruptionKind, reason, message string) DisruptionCause {
		if c.Kind, c.Reason, c.Message = kind, reason, message; len(message) > longestDisruptionMessage {
			c.Message = strings.ToValidUTF8(message[:longestDisruptionMessage], "") + "…"
		}
		return c
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type != terminationTarget || condition.Status != corev1.ConditionTrue {
			continue
		}
		if uid, reason, preempted := preemption.ParseMessage(condition.Message); preempted {
			c.ByUID = uid
			return because(DisruptionPreempted, cmp.Or(reason, condition.Reason), condition.Message)
		}
		return because(DisruptionEvicted, condition.Reason, condition.Message)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			kind := DisruptionEvicted
			if condition.Reason == corev1.PodReasonPreemptionByScheduler {
				kind = DisruptionPreempted
			}
			return because(kind, condition.Reason, condition.Message)
		}
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return because(DisruptionDeleted, "", "")
	case pod.Status.Phase == corev1.PodFailed:
		reason := pod.Status.Reason
		for _, s := range pod.Status.ContainerStatuses {
			if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
				reason = cmp.Or(t.Reason, reason)
			}
		}
		return because(DisruptionFailed, reason, PodReason(pod, nil))
	}
	return c
}

// Preemptor is for whom the pod was taken away, as far as that is known.
func (c DisruptionCause) Preemptor() string {
	switch {
	case c.By != "":
		return c.By
	case c.ByUID != "":
		return "UID " + c.ByUID
	case c.Kind == DisruptionPreempted:
		return "unknown"
	}
	return ""
}

// Why is the reason and the preemptor in brackets, after a space; "" if neither is known.
func (c DisruptionCause) Why() string {
	var parts []string
	if c.Reason != "" {
		parts = append(parts, c.Reason)
	}
	if by := c.Preemptor(); by != "" && by != "unknown" {
		parts = append(parts, "for "+by)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

var preemptedBy = regexp.MustCompile(`^Preempted by (?:\S+ )?(\S+) on node `)

// NamePreemptors fills in what the scheduler's events about the pods say, most often a UID: its condition on a pod does
// not say which pod it makes room for. Events are kept for an hour.
func NamePreemptors(all []Disruption, events []corev1.Event) []Disruption {
	all = slices.Clone(all)
	for i := range all {
		d := &all[i]
		if d.Kind != DisruptionPreempted || d.By != "" || d.UID == "" {
			continue
		}
		for _, e := range events {
			if string(e.InvolvedObject.UID) != d.UID || e.Reason != "Preempted" {
				continue
			}
			if match := preemptedBy.FindStringSubmatch(e.Message); match != nil && d.ByUID == "" {
				d.ByUID = match[1]
			}
			if r := e.Related; r != nil && r.Name != "" {
				d.By = fmt.Sprintf("%s %s/%s", strings.ToLower(cmp.Or(r.Kind, "pod")), r.Namespace, r.Name)
			}
		}
	}
	return all
}

// NameUIDs fills in the preemptors of which only the UID is known, from names such as "pod NAMESPACE/NAME".
func NameUIDs(all []Disruption, names map[string]string) []Disruption {
	all = slices.Clone(all)
	for i := range all {
		if d := &all[i]; d.By == "" && d.ByUID != "" {
			d.By = names[d.ByUID]
		}
	}
	return all
}
