package simulator

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// The roles of pods, and their pod sets in a queue.
const (
	masterRole = trainingjob.RoleMaster
	workerRole = trainingjob.RoleWorker
)

func (e *elastic) makeMaster() {
	e.master = e.newPod(e, masterRole, 0, e.masterName(e.masters), &e.spec.Master, e.spec.Master.PriorityClass, e.group)
	e.masters++
}

func (e *elastic) makeWorker(id int, minimum bool, w *workload) {
	class := e.spec.Workers.PriorityClass
	if minimum && e.spec.Workers.MinPriorityClass != "" {
		class = e.spec.Workers.MinPriorityClass
	}
	name := trainingjob.WorkerName(e.name, id)
	if e.group != nil && minimum {
		name = e.minPodName(id)
	}
	p := e.newPod(e, workerRole, id, name, &e.spec.Workers.Pod, class, w)
	p.minimum = minimum
	e.workers = append(e.workers, p)
	e.lastID = max(e.lastID, id)
}

// createMinPods makes the master and the minimum workers of a job under a queue, those that are missing; they wait
// there to be admitted.
func (e *elastic) createMinPods() {
	if e.master == nil {
		e.makeMaster()
	}
	for id := range e.min {
		if e.worker(id) == nil {
			e.makeWorker(id, true, e.group)
			e.deliver(e.podState(e.worker(id)))
		}
	}
	e.group.kinds = e.groupPods()
}

func (e *elastic) worker(id int) *pod {
	if at := slices.IndexFunc(e.workers, func(p *pod) bool { return p.number == id }); at >= 0 {
		return e.workers[at]
	}
	return nil
}

// ready are the workers that compute.
func (e *elastic) ready() []*pod {
	var all []*pod
	for _, p := range e.workers {
		if p.joined && p.phase == running {
			all = append(all, p)
		}
	}
	return all
}

// groupPods are the pods of master and minimum workers, which make up the job's group.
func (e *elastic) groupPods() []eventlog.Owner {
	owners := []eventlog.Owner{{Kind: "Pod", Name: e.masterName(max(e.masters-1, 0))}}
	for id := range e.min {
		owners = append(owners, eventlog.Owner{Kind: "Pod", Name: e.minPodName(id)})
	}
	return owners
}

func (e *elastic) masterName(n int) string {
	return fmt.Sprintf("%s-%d", trainingjob.MasterName(e.name), n)
}

// minPodName is of a pod that a Job makes, not the master.
func (e *elastic) minPodName(id int) string {
	return fmt.Sprintf("%s-%d", trainingjob.MinJobName(e.name), id)
}
