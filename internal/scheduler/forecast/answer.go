package forecast

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Outcome is the result of a forecast for a job, in one word.
type Outcome string

// The outcomes, from best to worst.
const (
	Fits     Outcome = "fits"     // it starts immediately, and evicts no pod
	Preempts Outcome = "preempts" // it starts, and others are evicted for it
	Pends    Outcome = "waits"    // it does not start before others end
	Never    Outcome = "never"    // it cannot start on this cluster with these queues, even when other pods end
)

// State is the predicted state of one pod.
type State string

// The states of a planned pod.
const (
	Starts  State = "starts"
	Waits   State = "waits"       // for room
	Queued  State = "queued"      // for quota
	Follows State = "not_created" // it is created only after other pods run, and those wait
	Unfit   State = "never"       // no node could run it, even an empty one
	// Rejected is a pod that the API server would not accept, and Suspended a pod of a Job that is created suspended.
	Rejected  State = "rejected"
	Suspended State = "suspended"
	// NotAdmitted is a pod that names its node and that the node's kubelet rejects: the pod fails.
	NotAdmitted State = "not_admitted"
)

// Answer is a forecast: what would happen to a job, and to other jobs because of it, on the cluster of a snapshot.
type Answer struct {
	Noun      string    `json:"noun,omitempty"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	AsOf      time.Time `json:"as_of"`
	Outcome   Outcome   `json:"outcome"`
	// Assumed are the jobs that are planned before it and that the forecast takes into account.
	Assumed []string `json:"assumed_jobs,omitempty"`
	// Beside are the jobs that are planned after it and may start before it.
	Beside []string `json:"beside,omitempty"`
	// Queues are the decisions of queues about its parts, in the order of the parts; empty for a job without a queue.
	Queues []QueueStatus `json:"queues,omitempty"`
	// Pods are the planned pods, in the order of their creation.
	Pods []PodForecast `json:"pods,omitempty"`
	// Alike are groups of pods, by their roles, that the scheduler does not distinguish and whose order of creation is
	// not defined: the pods of a group may exchange places.
	Alike [][]string `json:"alike,omitempty"`
	// DryRun is true if the pods are those that the API server returned in a dry run. Otherwise the forecast computed
	// them.
	DryRun bool `json:"dry_run"`
	// Adopts are the existing pods, as namespace/name, that its controller takes over: it creates fewer of its own.
	Adopts []string `json:"adopts,omitempty"`
	// Exists is true if an object of the name exists, and the planned pods are those that it gets in addition.
	Exists bool `json:"exists,omitempty"`
	// Evicts are the pods and workloads that stop for the job, in the order in which they stop.
	Evicts []Eviction `json:"evicts,omitempty"`
	// MaySpareAll is true if it is possible that none of the uncertain evictions happens.
	MaySpareAll bool `json:"may_spare_all,omitempty"`
	// Stops is how many pods of others stop for the job.
	Stops   Range `json:"-"`
	counted bool  // and their number is proved, not found by following choices
	// Choices is the number of ways of breaking ties in the scheduler that the forecast followed to the end.
	Choices int `json:"choices"`
	// Estimate is the expected time at which room is free for what waits; nil if nothing indicates one.
	Estimate *Estimate `json:"estimate,omitempty"`
	// Approximate lists the reasons why the answer is not exact.
	Approximate []Reason `json:"approximate,omitempty"`
	// Replacements are the pods that controllers create in the place of victims; see Snapshot.Barred.
	Replacements []*corev1.Pod `json:"-"`
	// NeedsConfigMaps are training jobs whose ConfigMaps would make the answer more exact; see Snapshot.Jobs.
	NeedsConfigMaps []types.NamespacedName `json:"-"`
}

// QueueStatus is the position of a part of a job in its queue.
type QueueStatus struct {
	Roles        []string `json:"roles,omitempty"`         // of its pods
	Queue        string   `json:"queue,omitempty"`         // the LocalQueue
	ClusterQueue string   `json:"cluster_queue,omitempty"` // "" if the LocalQueue has none
	Admitted     bool     `json:"admitted"`
	Perhaps      bool     `json:"perhaps,omitempty"` // it is admitted, or waits: other planned jobs may reach their queues first
	Pods         int      `json:"pods"`              // number of its pods that start, if it is admitted
	Flavors      []string `json:"flavors,omitempty"` // of its quota
	Borrows      bool     `json:"borrows,omitempty"`
	Checks       []string `json:"checks,omitempty"` // admission checks that it waits for
	Why          string   `json:"reason,omitempty"` // why it waits
	Ahead        []string `json:"ahead,omitempty"`  // workloads before it in its queue, while it waits
	Never        bool     `json:"never,omitempty"`  // not even an empty queue would admit it
	// Outside is true for a part that waits without a Workload: its queue does not know of it.
	Outside bool `json:"outside,omitempty"`
	// ReadyTimeout is the time after its admission at which Kueue evicts it because some of its pods still wait; 0 if it does
	// not.
	ReadyTimeout time.Duration `json:"ready_timeout_nanoseconds,omitempty"`
}

// PodForecast is the forecast for one planned pod.
type PodForecast struct {
	Role     string `json:"role,omitempty"`
	Optional bool   `json:"optional,omitempty"` // its job can run without it
	State    State  `json:"state"`
	// Nodes are the nodes on which it may start: several are equal to the scheduler. Others is the number of further
	// nodes. A pod that waits has nodes if another way of breaking a tie lets it start, and one that a quota rejects if
	// another order of creation does.
	Nodes  []string `json:"nodes,omitempty"`
	Others int      `json:"others"`
	// After are the pods that have to stop before it starts, and Grace the longest time that this takes.
	After []string      `json:"after,omitempty"`
	Grace time.Duration `json:"grace_nanoseconds"`
	// Victims is true if all of those are evicted for this pod.
	Victims bool   `json:"victims,omitempty"`
	Why     string `json:"reason,omitempty"` // why it waits, or is rejected
	passing bool   // it is rejected only while a quota is exhausted
	expires bool   // it waits only if the deadline of its Job is over before its victims have stopped
	spread  bool   // its Services spread it, as it has no constraints of its own
}

// Eviction is a pod, or a workload with its pods, that stops for a job.
type Eviction struct {
	Workload  bool          `json:"workload"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Node      string        `json:"node,omitempty"` // of a pod
	Priority  int32         `json:"priority"`
	Owner     string        `json:"owner,omitempty"` // "training job low-prio-job"; "" for a pod of its own
	OwnerKind string        `json:"owner_kind,omitempty"`
	OwnerName string        `json:"owner_name,omitempty"`
	Outcome   string        `json:"outcome,omitempty"` // what happens to the owner
	For       string        `json:"for,omitempty"`     // the role of the pod that evicts it
	Reason    string        `json:"reason,omitempty"`  // of the queue, as Kueue spells it
	Grace     time.Duration `json:"grace_nanoseconds"`
	Pods      []string      `json:"pods,omitempty"` // of a workload, namespace/name
	// Certain is false for one of several candidates among which the scheduler chooses.
	Certain bool `json:"certain"`
	// Planned is true for a pod that is planned too, and not in the cluster yet.
	Planned bool `json:"planned,omitempty"`
	// Own is true for a pod or workload of the job that is forecast.
	Own bool `json:"own,omitempty"`
}

// Estimate is the expected time of an event.
type Estimate struct {
	// At is the median; the event is between Earliest and Latest with a probability of 80 %.
	At       time.Time `json:"at"`
	Earliest time.Time `json:"earliest"`
	Latest   time.Time `json:"latest"`
	From     string    `json:"from,omitempty"` // the basis of the estimate
}

// outcome is the worst outcome among the pods that the job cannot run without.
func (a *Answer) outcome() Outcome {
	outcome := Fits
	if slices.ContainsFunc(a.Evicts, func(e Eviction) bool { return !e.Own }) {
		outcome = Preempts
	}
	for _, s := range a.Queues {
		if s.Never {
			return Never
		}
	}
	for _, pod := range a.Pods {
		switch {
		case pod.Optional && pod.State != Unfit:
		case pod.State == Unfit, pod.State == Rejected && !pod.passing:
			return Never
		case pod.State != Starts:
			outcome = Pends
		}
	}
	return outcome
}

// Reasons lists, without repetition, why some of the job's pods wait or can never run.
func (a Answer) Reasons() []string {
	var reasons []string
	add := func(reason string) {
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	for _, s := range a.Queues {
		add(s.Why)
	}
	for _, pod := range a.Pods {
		if pod.State != Starts {
			add(pod.Why)
		}
	}
	return reasons
}

// Ahead returns the number of workloads before the first part of the job that waits in its queue; false if none waits.
func (a Answer) Ahead() (ahead int, waits bool) {
	for _, s := range a.Queues {
		if !s.Admitted {
			return len(s.Ahead), true
		}
	}
	return 0, false
}
