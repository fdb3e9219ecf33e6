package trace

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// heliosGPUs are in each of the cluster's machines.
const heliosGPUs = 8

func (b *builder) helios() error {
	if !b.nodesGiven {
		total := int64(0)
		err := each(b.trace.Nodes, func(t *table) (err error) {
			total, err = t.count("total")
			return err
		}, "date", "total")
		if err != nil {
			return err
		}
		count := int(min(total/heliosGPUs, scenariofile.MaxNodes))
		group := scenariofile.NodeGroup{Name: "node", Count: &count, Allocatable: scenariofile.Resources{gpu: quantity(heliosGPUs)}}
		group.Complete()
		b.scenario.Nodes = []scenariofile.NodeGroup{group}
	}
	return each(b.trace.Jobs, b.heliosJob, "job_id", "vc", "gpu_num", "cpu_num", "node_num", "submit_time", "start_time", "end_time")
}

func (b *builder) heliosJob(t *table) error {
	if b.full() {
		return errEnough
	}
	var gpus, cpus, nodes int64
	if err := t.amounts(map[string]*int64{"gpu_num": &gpus, "cpu_num": &cpus, "node_num": &nodes}); err != nil {
		return err
	}
	submitted, known, err := t.date("submit_time")
	if err != nil {
		return err
	}
	started, began, err := t.date("start_time")
	if err != nil {
		return err
	}
	ended, over, err := t.date("end_time")
	if err != nil {
		return err
	}
	if !known || !began || !over {
		b.omit("of jobs without a start or an end")
		return nil
	}
	if gpus == 0 && !b.nodesGiven {
		b.omit("of jobs without GPUs, on nodes of which only the GPUs are known")
		return nil
	}
	pods := max(nodes, 1)
	r := row{name: "job-" + t.text("job_id"), group: t.text("vc"), submitted: submitted, runs: ended - started, pods: int(pods), requests: scenariofile.Resources{}}
	if gpus > 0 {
		r.requests[gpu] = quantity((gpus + pods - 1) / pods)
	}
	if b.nodesGiven && cpus > 0 {
		r.requests[corev1.ResourceCPU] = quantity((cpus + pods - 1) / pods)
	}
	return t.at(b.add(r))
}
