// Package eventlog is the log of a scenario or a simulation: one JSON object per line, in the order of observation.
// Assertions, reports and the timeline are functions of the log, so a log from another machine can be checked and drawn
// again. The package is pure except for reading and writing lines.
package eventlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// Event is one observation. Time is when the recorder saw it; exactly one of the others is set.
type Event struct {
	Time time.Time `json:"time"`

	Node      *Node             `json:"node,omitempty"`
	Pod       *Pod              `json:"pod,omitempty"`
	Workload  *Workload         `json:"workload,omitempty"`
	Job       *Job              `json:"job,omitempty"`
	Stage     *Stage            `json:"stage,omitempty"`
	Lost      *Lost             `json:"lost,omitempty"`
	Fault     *Fault            `json:"fault,omitempty"`
	Plan      *Plan             `json:"plan,omitempty"`
	Forecast  *Forecast         `json:"forecast,omitempty"`
	Listing   *Listing          `json:"listing,omitempty"`
	Queried   *QueriedWorkloads `json:"answer,omitempty"`
	Result    *Result           `json:"result,omitempty"`
	Script    *ScriptResult     `json:"script,omitempty"`
	Leftovers *Leftovers        `json:"left,omitempty"`
}

// Node is a node that exists from this moment on, or no longer.
type Node struct {
	Name   string            `json:"name"`
	CPU    string            `json:"cpu"`             // allocatable, a quantity
	Memory string            `json:"memory"`          // allocatable, a quantity
	Other  map[string]string `json:"other,omitempty"` // allocatable of other resources
	Lost   bool              `json:"lost,omitempty"`  // it no longer exists
	// Domains of a topology that it is in, from the widest, without the host itself.
	Domains []Domain `json:"domains,omitempty"`
}

// Domain is the nodes with the same value of a label, and of those of the wider levels.
type Domain struct {
	Level string `json:"level"` // the key of the label
	Name  string `json:"name"`  // its value
}

// Pod is the state of a job's pod at one moment.
type Pod struct {
	Name          string `json:"name"`
	UID           string `json:"uid"`
	Job           string `json:"job"`
	Role          string `json:"role"` // "master" or "worker"; "task" for a pod of a queued task
	PriorityClass string `json:"priority_class,omitempty"`
	Node          string `json:"node,omitempty"` // "" until it is bound
	Phase         string `json:"phase"`          // Kubernetes' PodPhase

	Requests map[string]string `json:"requests,omitempty"` // quantities; in the first state of a pod only

	Unschedulable string `json:"unschedulable,omitempty"` // the scheduler's message while the pod is unschedulable
	Disruption    string `json:"disruption,omitempty"`    // reason of the DisruptionTarget condition
	Cause         string `json:"cause,omitempty"`         // its message
	Preemptor     string `json:"preemptor,omitempty"`     // name of the pod that it was preempted for, where that is known
	Deleting      bool   `json:"deleting,omitempty"`      // a deletion timestamp is set
	Deleted       bool   `json:"deleted,omitempty"`       // the object is gone
	ExitCode      *int32 `json:"exit_code,omitempty"`
	Reason        string `json:"reason,omitempty"` // of the container's waiting or terminated state
}

// PreemptionByScheduler is Pod.Disruption of a pod that kube-scheduler preempted.
const PreemptionByScheduler = "PreemptionByScheduler"

// PreemptionByQueue is Pod.Disruption of a pod whose workload Kueue preempted. Replay sets it, because the pod's own
// conditions do not show it.
const PreemptionByQueue = "PreemptionByQueue"

// Workload is the state of a Kueue workload at one moment.
type Workload struct {
	Name          string  `json:"name"`
	UID           string  `json:"uid"`
	Owners        []Owner `json:"owners,omitempty"` // one Job, or the pods of a group
	Queue         string  `json:"queue"`            // the LocalQueue
	PriorityClass string  `json:"priority_class,omitempty"`
	Priority      int32   `json:"priority"`

	ReservedIn string `json:"reserved_in,omitempty"` // the ClusterQueue; "" while it has no quota
	Admitted   bool   `json:"admitted,omitempty"`
	Finished   bool   `json:"finished,omitempty"`
	Waits      string `json:"waits,omitempty"`     // why it has no quota
	Evicted    string `json:"evicted,omitempty"`   // reason of the Evicted condition while it is true
	Preempted  string `json:"preempted,omitempty"` // reason of the Preempted condition while it is true
	Cause      string `json:"cause,omitempty"`     // message of the Evicted condition
	Deleted    bool   `json:"deleted,omitempty"`   // the object is gone
}

// Owner is an owner of a workload: a Job or a pod.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// EvictedByPreemption is Workload.Evicted of a workload that was preempted.
const EvictedByPreemption = "Preempted"

// Job is what a job's master reported.
type Job struct {
	Name   string             `json:"name"`
	Status trainingjob.Status `json:"status"`
}

// Lost is work of a job that was done and has to be done again. Only a simulator knows it at once.
type Lost struct {
	Job     string  `json:"job"`
	Steps   int64   `json:"steps,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Stage is the beginning of a stage of the scenario.
type Stage struct {
	Name string `json:"name"`
	Text string `json:"text,omitempty"` // for a reader
}

// Fault is a fault that the scenario injects, or its repair.
type Fault struct {
	Kind   FaultKind `json:"kind"`
	Target string    `json:"target,omitempty"` // the pod's or node's name
}

// FaultKind is the kind of a fault.
type FaultKind string

// The faults.
const (
	PodDeleted      FaultKind = "pod deleted" // with its grace period
	PodKilled       FaultKind = "pod killed"  // deleted without one
	NodeStopped     FaultKind = "node stopped"
	NodeDeleted     FaultKind = "node deleted" // the object, after it was stopped
	NodeStarted     FaultKind = "node started"
	APIServerKilled FaultKind = "API server killed"
)

// Plan is the result of `terraform plan` after a stage: resource addresses with their actions, none without changes.
type Plan struct {
	After   string   `json:"after"`
	Changes []string `json:"changes,omitempty"`
}

// Forecast is what `terraform plan` says before a stage about the pods that the stage will evict.
type Forecast struct {
	Before string `json:"before"`
	Text   string `json:"text"`
}

// Listing is the list of the pods that match a label selector.
type Listing struct {
	Selector string   `json:"selector"`
	Pods     []string `json:"pods"`
}

// QueriedWorkloads is the result of data.elastic_workloads after a stage.
type QueriedWorkloads struct {
	After     string            `json:"after"`
	Workloads []QueriedWorkload `json:"workloads"`
}

// QueriedWorkload is one of the workloads in QueriedWorkloads.
type QueriedWorkload struct {
	Owner  string `json:"owner"` // the name of its Job or pod
	Queue  string `json:"queue"`
	Phase  string `json:"phase"`
	Reason string `json:"reason,omitempty"` // why it waits
}

// Result compares the final model of a job with an undisturbed run of the same flags.
type Result struct {
	Job               string        `json:"job"`
	SHA256            string        `json:"sha256"`
	UndisturbedSHA256 string        `json:"undisturbed_sha256"`
	UndisturbedTook   time.Duration `json:"undisturbed_took_ns"`
}

// ScriptResult is what the script of a job has written, compared with an undisturbed run of it.
type ScriptResult struct {
	Job     string    `json:"job"`
	Weights []float64 `json:"weights"` // that it has trained
	// Undisturbed are the weights after the undisturbed run. They may differ by rounding.
	Undisturbed []float64     `json:"undisturbed"`
	Uses        []float64     `json:"uses,omitempty"`   // how often each record was used, where the script counts it
	Epochs      int           `json:"epochs"`           // how often each record should be used
	Starts      []ScriptStart `json:"starts,omitempty"` // of a command that is started again
}

// ScriptStart is a start of a script: with how many ranks, and how many records it had used.
type ScriptStart struct {
	Ranks   int `json:"ranks"`
	Records int `json:"records"`
}

// Leftovers are the objects that `terraform destroy` did not delete, as kind/name.
type Leftovers struct {
	Objects []string `json:"objects,omitempty"`
}

// Write appends one event as a line.
func Write(w io.Writer, event Event) error {
	line, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return nil
}

// maxLine bounds a line of a log: a pod or a status is a few KiB.
const maxLine = 4 << 20

// ReadFile reads the log in a file.
func ReadFile(path string) ([]Event, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read an event log: %w", err)
	}
	return Read(bytes.NewReader(data))
}

// Read reads a log. The error for an invalid line contains its number.
func Read(r io.Reader) ([]Event, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var events []Event
	number := 0
	for lines.Scan() {
		number++
		var event Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("event log, line %d: %w", number, err)
		}
		events = append(events, event)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("event log, line %d: longer than %d bytes", number+1, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("event log, after line %d: %w", number, err)
	}
	return events, nil
}
