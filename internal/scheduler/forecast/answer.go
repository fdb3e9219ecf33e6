package forecast

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Outcome is what becomes of a job, in a word.
type Outcome string

// The outcomes, the best first.
const (
	Fits     Outcome = "fits"     // it starts at once, and nobody is evicted
	Preempts Outcome = "preempts" // it starts, and others are evicted for it
	Pends    Outcome = "waits"    // it does not start before others end
	Never    Outcome = "never"    // it cannot start as the cluster and its queues are, whoever ends
)

// State is what becomes of one pod.
type State string

// The states of a planned pod.
const (
	Starts  State = "starts"
	Waits   State = "waits"       // for room
	Queued  State = "queued"      // for quota
	Follows State = "not_created" // it is created when others run, which wait
	Unfit   State = "never"       // no node could run it, even an empty one
	// Rejected is a pod that the API server would not accept, and Suspended one of a Job that is made suspended.
	Rejected  State = "rejected"
	Suspended State = "suspended"
	// NotAdmitted is a pod that names its node, whose kubelet rejects it: it fails.
	NotAdmitted State = "not_admitted"
)

// Answer is a forecast: what would become of a job, and of others for its sake, on the cluster as it was.
type Answer struct {
	Noun      string    `json:"noun,omitempty"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	AsOf      time.Time `json:"as_of"`
	Outcome   Outcome   `json:"outcome"`
	// Counting are the jobs that are planned before it and were counted.
	Counting []string `json:"assumed_jobs,omitempty"`
	// Beside are the jobs that are planned after it, and may start before it.
	Beside []string `json:"beside,omitempty"`
	// Queues is what queues decide about its parts, in their order; empty for a job without a queue.
	Queues []Standing `json:"queues,omitempty"`
	// Pods are the planned ones, in the order in which they are made.
	Pods []PodForecast `json:"pods,omitempty"`
	// Alike are rows of pods by their roles that are alike to the scheduler, and that are made at the same time, in
	// whatever order: they may change places among each other.
	Alike [][]string `json:"alike,omitempty"`
	// DryRun says that the API server was asked what it would make of the job's pods. Else that was computed.
	DryRun bool `json:"dry_run"`
	// Evicts are the pods and workloads that stop for it, in the order in which they do.
	Evicts []Eviction `json:"evicts,omitempty"`
	// MaySpareAll says that perhaps none of those stops that are not certain.
	MaySpareAll bool `json:"may_spare_all,omitempty"`
	// Choices is in how many ways equal choices of the scheduler were followed to the end.
	Choices int `json:"choices"`
	// Estimate is when room is expected for what waits; nil where nothing says so.
	Estimate *Estimate `json:"estimate,omitempty"`
	// Approximate says what was not looked at, or not to the end.
	Approximate []Reason `json:"approximate,omitempty"`
	// Asks are training jobs whose own ConfigMaps would make the answer more exact; see Snapshot.Jobs.
	Asks []types.NamespacedName `json:"-"`
}

// Standing is where a part of a job stands with its queue.
type Standing struct {
	Roles        []string `json:"roles,omitempty"`         // of its pods
	Queue        string   `json:"queue,omitempty"`         // the LocalQueue
	ClusterQueue string   `json:"cluster_queue,omitempty"` // "" where it leads to none
	Admitted     bool     `json:"admitted"`
	Pods         int      `json:"pods"`              // how many of its pods start, where it is admitted
	Flavors      []string `json:"flavors,omitempty"` // of its quota
	Borrows      bool     `json:"borrows,omitempty"`
	Checks       []string `json:"checks,omitempty"` // admission checks that are awaited
	Why          string   `json:"reason,omitempty"` // it waits
	Ahead        []string `json:"ahead,omitempty"`  // what is before it in its queue, while it waits
	Never        bool     `json:"never,omitempty"`  // not even an empty queue would admit it
}

// PodForecast is what becomes of a planned pod.
type PodForecast struct {
	Role     string `json:"role,omitempty"`
	Optional bool   `json:"optional,omitempty"` // its job can do without it
	State    State  `json:"state"`
	// Nodes are where it may start: where there are several, they are equal to the scheduler. Others is how many more.
	// A pod that waits has some where an equal choice of the scheduler lets it start.
	Nodes  []string `json:"nodes,omitempty"`
	Others int      `json:"others"`
	// After is who has to stop before it starts, and Grace how long that may take.
	After []string      `json:"after,omitempty"`
	Grace time.Duration `json:"grace_nanoseconds"`
	// Victims says that all of those are evicted for this pod.
	Victims bool   `json:"victims,omitempty"`
	Why     string `json:"reason,omitempty"` // it waits, or is rejected
	passing bool   // it is rejected only as long as a quota is used up
	spread  bool   // it is spread by its Services, as it has no constraints of its own
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
	Fate      string        `json:"outcome,omitempty"` // what becomes of the owner
	For       string        `json:"for,omitempty"`     // the role of the pod that evicts it
	Reason    string        `json:"reason,omitempty"`  // of the queue, in Kueue's word
	Grace     time.Duration `json:"grace_nanoseconds"`
	Pods      []string      `json:"pods,omitempty"` // of a workload, namespace/name
	// Certain is false for one of several among which the scheduler chooses.
	Certain bool `json:"certain"`
	// Planned says that it is planned itself, and not in the cluster yet.
	Planned bool `json:"planned,omitempty"`
	// Own says that it is of the job that is forecast.
	Own bool `json:"own,omitempty"`
}

// Estimate is when something is expected.
type Estimate struct {
	At   time.Time `json:"at"`
	From string    `json:"from,omitempty"` // what it is reckoned from
}

// outcome is the worst that becomes of the pods that the job cannot do without.
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

// Reasons are why some of the job waits or never runs, each once.
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

// Ahead is how many workloads are before the first part of the job that waits in its queue; false when none does.
func (a Answer) Ahead() (ahead int, waits bool) {
	for _, s := range a.Queues {
		if !s.Admitted {
			return len(s.Ahead), true
		}
	}
	return 0, false
}
