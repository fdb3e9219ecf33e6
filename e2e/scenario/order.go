package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// What must happen before what, story by story. Where two things are not in one chain their order is open: a pod's
// preemption, for instance, is seen before or after the scheduler's word that there is no room.

// elasticSchedulingOrder are the chains of the tutorial's story.
func elasticSchedulingOrder() []chain {
	return []chain{
		{
			runs(LowJob, "worker", 0), runs(LowJob, "worker", 1), created(HighJob, "worker", 0),
			{"a worker of " + LowJob + " is preempted", func(h *eventlog.History) time.Time { return victim(h).Disrupted }},
			{"it ends", func(h *eventlog.History) time.Time { return victim(h).Ended }},
			runs(HighJob, "worker", 0), firstEnds(HighJob, "worker"), runs(LowJob, "worker", 2), hasSucceeded(LowJob),
		},
		{findsNoRoom(HighJob, "worker", 0), runs(HighJob, "worker", 0), hasSucceeded(HighJob)},
		{findsNoRoom(LowJob, "worker", 2), firstEnds(HighJob, "worker")},
	}
}

// queuePrioritiesOrder are the chains of the two tasks' story.
func queuePrioritiesOrder() []chain {
	return []chain{
		{
			admitted(LowTask, 0), runs(LowTask, taskRole, 0), evicted(LowTask, taskRole), admitted(HighTask, 0), runs(HighTask, taskRole, 0),
			firstEnds(HighTask, taskRole), admitted(LowTask, 1), runs(LowTask, taskRole, 1),
		},
		{evicted(LowTask, taskRole), firstEnds(LowTask, taskRole), runs(HighTask, taskRole, 0)},
	}
}

// underAQueueOrder are the chains of the story of an elastic job under a queue.
func underAQueueOrder() []chain {
	taken := func(stage string, number int) func(*eventlog.History) time.Time {
		return func(h *eventlog.History) time.Time {
			if lives := takenDuring(h, stage); number < len(lives) {
				return lives[number].Disrupted
			}
			return time.Time{}
		}
	}
	return []chain{
		{
			admitted(ElasticJob, 0), begins(StageShrink),
			{"two workers above the floor are preempted", taken(StageShrink, elasticWorkers-shrunkWorkers-1)},
			admitted(UrgentJob, 0), hasSucceeded(UrgentJob),
			{"four workers run again", func(h *eventlog.History) time.Time { return nthBurstRuns(h, 2*elasticWorkers-1-shrunkWorkers) }},
			begins(StageEvict), evicted(ElasticJob, "master"), admitted(LargeJob, 0), hasSucceeded(LargeJob),
			admitted(ElasticJob, 1), hasSucceeded(ElasticJob),
		},
	}
}

// chaosOrder are the chains of the chaos story.
func chaosOrder() []chain {
	broken := func(text string, kind eventlog.FaultKind, number int) moment {
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
			broken("a worker is deleted", eventlog.PodDeleted, 0), runs(ChaosJob, "worker", 3),
			broken("another is killed", eventlog.PodKilled, 0), runs(ChaosJob, "worker", 4),
			broken("a node dies", eventlog.NodeStopped, 0), broken("its object is deleted", eventlog.NodeDeleted, 0), findsNoRoom(ChaosJob, "worker", 5),
			broken("the master is deleted", eventlog.PodDeleted, 1), firstEnds(ChaosJob, "master"), runs(ChaosJob, "master", 1),
			broken("the node comes back", eventlog.NodeStarted, 0), runs(ChaosJob, "worker", 5),
			broken("the API server is killed", eventlog.APIServerKilled, 0), hasSucceeded(ChaosJob),
		},
	}
}

// ordinals of pods of a role, by their creation; those made at the same time are alike.
var ordinals = []string{"first", "second", "third", "fourth", "fifth", "sixth"}

// ofPod is a moment in the life of a job's pod, the one with a number among those of its role.
func ofPod(job, role string, number int, what string, at func(*eventlog.Life) time.Time) moment {
	return moment{fmt.Sprintf("the %s %s of %s %s", ordinals[number], role, job, what), func(h *eventlog.History) time.Time {
		if pods := h.PodsOf(job, role); number < len(pods) {
			return at(pods[number])
		}
		return time.Time{}
	}}
}

func created(job, role string, number int) moment {
	return ofPod(job, role, number, "is made", func(l *eventlog.Life) time.Time { return l.Created })
}

func findsNoRoom(job, role string, number int) moment {
	return ofPod(job, role, number, "finds no room", func(l *eventlog.Life) time.Time { return l.Unschedulable })
}

func runs(job, role string, number int) moment {
	return ofPod(job, role, number, "runs", func(l *eventlog.Life) time.Time { return l.Running })
}

func firstEnds(job, role string) moment {
	return ofPod(job, role, 0, "ends", func(l *eventlog.Life) time.Time { return l.Ended })
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

// admitted is when the workload that is a job's own, not that of a single worker, is admitted, for the first or the
// second time.
func admitted(job string, number int) moment {
	return moment{fmt.Sprintf("%s is admitted for the %s time", job, ordinals[number]), func(h *eventlog.History) time.Time {
		if spells := admissions(ownWorkload(h, job)); number < len(spells) {
			return spells[number].From
		}
		return time.Time{}
	}}
}

// evicted is when the queue takes the quota of that workload, as its pod in that role sees it.
func evicted(job, role string) moment {
	return moment{job + " is evicted", func(h *eventlog.History) time.Time {
		for _, life := range h.PodsOf(job, role) {
			if life.Disruption == eventlog.PreemptionByQueue {
				return life.Disrupted
			}
		}
		return time.Time{}
	}}
}

// ownWorkload is a job's workload, of its Job or of its group of pods; an empty one where there is none.
func ownWorkload(h *eventlog.History, job string) *eventlog.WorkloadLife {
	for _, workload := range h.Workloads {
		if !ofSinglePod(workload) && h.JobOf(workload) == job {
			return workload
		}
	}
	return &eventlog.WorkloadLife{}
}

// ofSinglePod says whether a workload stands for one pod by itself: Kueue names those pod-NAME-HASH, and a group's after
// the group.
func ofSinglePod(workload *eventlog.WorkloadLife) bool {
	return strings.HasPrefix(workload.Name, "pod-")
}

// victim is the pod that the scheduler preempted; an empty life where it preempted none.
func victim(h *eventlog.History) *eventlog.Life {
	if victims := preempted(h); len(victims) > 0 {
		return victims[0]
	}
	return &eventlog.Life{}
}

// nthBurstRuns is when so many workers above the elastic job's floor have begun to run, over its whole life.
func nthBurstRuns(h *eventlog.History, number int) time.Time {
	for _, life := range h.Pods {
		if isBurst(life) && !life.Running.IsZero() {
			if number--; number == 0 {
				return life.Running
			}
		}
	}
	return time.Time{}
}
