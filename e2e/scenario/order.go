package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// The required order of moments, scenario by scenario. The order of moments in different chains is not checked: a pod's
// preemption, for instance, is observed before or after the condition that the preemptor is unschedulable.

// elasticSchedulingOrder are the chains of the elastic-scheduling scenario.
func elasticSchedulingOrder() []chain {
	return []chain{
		{
			runs(LowJob, "worker", 0), runs(LowJob, "worker", 1), created(HighJob, "worker", 0),
			{"a worker of " + LowJob + " is preempted", func(h *eventlog.History) time.Time { return victim(h).Disrupted }},
			{"it ends", func(h *eventlog.History) time.Time { return victim(h).Ended }},
			runs(HighJob, "worker", 0), firstEnds(HighJob, "worker"), runs(LowJob, "worker", 2), hasSucceeded(LowJob),
		},
		{becomesUnschedulable(HighJob, "worker", 0), runs(HighJob, "worker", 0), hasSucceeded(HighJob)},
		{becomesUnschedulable(LowJob, "worker", 2), firstEnds(HighJob, "worker")},
	}
}

// queuePrioritiesOrder are the chains of the queue-priorities scenario.
func queuePrioritiesOrder() []chain {
	return []chain{
		{
			admitted(LowTask, 0), runs(LowTask, taskRole, 0), evicted(LowTask, taskRole), admitted(HighTask, 0), runs(HighTask, taskRole, 0),
			firstEnds(HighTask, taskRole), admitted(LowTask, 1), runs(LowTask, taskRole, 1),
		},
		{evicted(LowTask, taskRole), firstEnds(LowTask, taskRole), runs(HighTask, taskRole, 0)},
	}
}

// underAQueueOrder are the chains of the under-a-queue scenario.
func underAQueueOrder() []chain {
	taken := func(stage string, number int) func(*eventlog.History) time.Time {
		return func(h *eventlog.History) time.Time {
			if pods := preemptedDuring(h, stage); number < len(pods) {
				return pods[number].Disrupted
			}
			return time.Time{}
		}
	}
	return []chain{
		{
			admitted(ElasticJob, 0), begins(StageShrink),
			{"two workers above the minimum are preempted", taken(StageShrink, elasticWorkers-shrunkWorkers-1)},
			admitted(UrgentJob, 0), hasSucceeded(UrgentJob),
			{"four workers run again", func(h *eventlog.History) time.Time {
				return nthWorkerRuns(h, 2*elasticWorkers-1-shrunkWorkers, isWorkerAboveMinimum)
			}},
			begins(StageEvict), evicted(ElasticJob, "master"), admitted(LargeJob, 0), hasSucceeded(LargeJob),
			admitted(ElasticJob, 1), hasSucceeded(ElasticJob),
		},
	}
}

// elasticPyTorchOrder are the chains of the elastic-pytorch scenario.
func elasticPyTorchOrder() []chain {
	var chains []chain
	for _, job := range []string{LoopJob, DDPJob} {
		chains = append(chains, chain{
			admitted(job, 0), begins(StageShrink),
			{"a worker of " + job + " is preempted", func(h *eventlog.History) time.Time {
				for _, pod := range h.PodsOf(job, trainingjob.RoleWorker) {
					if pod.Preempted() {
						return pod.Disrupted
					}
				}
				return time.Time{}
			}},
			runs(UrgentJob, taskRole, 0), firstEnds(UrgentJob, taskRole),
			{"three workers run again", func(h *eventlog.History) time.Time {
				return nthWorkerRuns(h, 2*pyTorchWorkers-pyTorchMinimum, func(pod *eventlog.PodHistory) bool { return pod.Job == job && pod.Role == trainingjob.RoleWorker })
			}},
			hasSucceeded(job),
		})
	}
	return chains
}

// chaosOrder are the chains of the chaos scenario.
func chaosOrder() []chain {
	injected := func(text string, kind eventlog.FaultKind, number int) moment {
		return moment{text, func(h *eventlog.History) time.Time {
			if faults := faultsOf(h, kind); number < len(faults) {
				return faults[number].Time
			}
			return time.Time{}
		}}
	}
	return []chain{
		{
			runs(ChaosJob, "worker", 2),
			injected("a worker is deleted", eventlog.PodDeleted, 0), runs(ChaosJob, "worker", 3),
			injected("another is killed", eventlog.PodKilled, 0), runs(ChaosJob, "worker", 4),
			injected("a node fails", eventlog.NodeStopped, 0), injected("its Node object is deleted", eventlog.NodeDeleted, 0), becomesUnschedulable(ChaosJob, "worker", 5),
			injected("the master is deleted", eventlog.PodDeleted, 1), firstEnds(ChaosJob, "master"), runs(ChaosJob, "master", 1),
			injected("the node is started again", eventlog.NodeStarted, 0), runs(ChaosJob, "worker", 5),
			injected("the API server is killed", eventlog.APIServerKilled, 0), hasSucceeded(ChaosJob),
		},
	}
}

// ordinals number the pods of a role in the order of their creation. The number is ambiguous for pods created at the
// same time, so the scenarios use it only where that makes no difference.
var ordinals = []string{"first", "second", "third", "fourth", "fifth", "sixth"}

// ofPod is a moment of a job's pod, which is identified by its number among the pods of its role.
func ofPod(job, role string, number int, what string, at func(*eventlog.PodHistory) time.Time) moment {
	return moment{fmt.Sprintf("the %s %s of %s %s", ordinals[number], role, job, what), func(h *eventlog.History) time.Time {
		if pods := h.PodsOf(job, role); number < len(pods) {
			return at(pods[number])
		}
		return time.Time{}
	}}
}

func created(job, role string, number int) moment {
	return ofPod(job, role, number, "is created", func(l *eventlog.PodHistory) time.Time { return l.Created })
}

func becomesUnschedulable(job, role string, number int) moment {
	return ofPod(job, role, number, "is unschedulable", func(l *eventlog.PodHistory) time.Time { return l.Unschedulable })
}

func runs(job, role string, number int) moment {
	return ofPod(job, role, number, "runs", func(l *eventlog.PodHistory) time.Time { return l.Running })
}

func firstEnds(job, role string) moment {
	return ofPod(job, role, 0, "ends", func(l *eventlog.PodHistory) time.Time { return l.Ended })
}

func hasSucceeded(job string) moment {
	return moment{job + " has succeeded", func(h *eventlog.History) time.Time { return h.Job(job).Reached(trainingjob.PhaseSucceeded) }}
}

func begins(stage string) moment {
	return moment{"stage " + stage, func(h *eventlog.History) time.Time {
		for _, s := range h.Stages {
			if s.Name == stage {
				return s.Time
			}
		}
		return time.Time{}
	}}
}

// admitted is when the job's own workload, not that of a single worker, is admitted for the first or the second time.
func admitted(job string, number int) moment {
	return moment{fmt.Sprintf("%s is admitted for the %s time", job, ordinals[number]), func(h *eventlog.History) time.Time {
		if intervals := admissions(ownWorkload(h, job)); number < len(intervals) {
			return intervals[number].From
		}
		return time.Time{}
	}}
}

// evicted is when Kueue evicts that workload, as recorded for its pod in that role.
func evicted(job, role string) moment {
	return moment{job + " is evicted", func(h *eventlog.History) time.Time {
		for _, pod := range h.PodsOf(job, role) {
			if pod.Disruption == eventlog.PreemptionByQueue {
				return pod.Disrupted
			}
		}
		return time.Time{}
	}}
}

// ownWorkload is a job's workload, of its Job or of its group of pods; an empty one where there is none.
func ownWorkload(h *eventlog.History, job string) *eventlog.WorkloadHistory {
	for _, workload := range h.Workloads {
		if !ofSinglePod(workload) && h.JobOf(workload) == job {
			return workload
		}
	}
	return &eventlog.WorkloadHistory{}
}

// ofSinglePod reports whether a workload belongs to a single pod: Kueue names these pod-NAME-HASH, and a pod group's
// workload after the group.
func ofSinglePod(workload *eventlog.WorkloadHistory) bool {
	return strings.HasPrefix(workload.Name, "pod-")
}

// victim is the pod that the scheduler preempted, an empty history if it preempted none.
func victim(h *eventlog.History) *eventlog.PodHistory {
	if victims := preempted(h); len(victims) > 0 {
		return victims[0]
	}
	return &eventlog.PodHistory{}
}

// nthWorkerRuns is when the given number of some workers have started, over the whole run.
func nthWorkerRuns(h *eventlog.History, number int, is func(*eventlog.PodHistory) bool) time.Time {
	for _, pod := range h.Pods {
		if is(pod) && !pod.Running.IsZero() {
			if number--; number == 0 {
				return pod.Running
			}
		}
	}
	return time.Time{}
}
