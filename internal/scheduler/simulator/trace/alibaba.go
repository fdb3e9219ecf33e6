package trace

import (
	"errors"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// Terms of Alibaba's traces that Kubernetes does not have.
const (
	gpuMilli   corev1.ResourceName = "alibabacloud.com/gpu-milli"
	modelLabel string              = "alibabacloud.com/gpu-model"
)

// each reads a table to its end.
func each(path string, row func(t *table) error, needed ...string) error {
	t, err := openTable(path, needed...)
	if err != nil {
		return err
	}
	defer t.file.Close()
	for {
		err := t.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = row(t)
		}
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// errEnough ends the reading of a table.
var errEnough = errors.New("enough")

// amounts reads several fields; the first error counts.
func (t *table) amounts(into map[string]*int64) error {
	for _, name := range sorted(into) {
		n, err := t.count(name)
		if err != nil {
			return err
		}
		*into[name] = n
	}
	return nil
}

func (b *builder) alibaba2023() error {
	if !b.nodesGiven {
		if err := each(b.trace.Nodes, b.alibabaNode2023, "sn", "cpu_milli", "memory_mib", "gpu", "model"); err != nil {
			return err
		}
	}
	return each(b.trace.Jobs, b.alibabaPod2023, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time", "scheduled_time")
}

func (b *builder) alibabaNode2023(t *table) error {
	var cpu, memory, gpus int64
	if err := t.amounts(map[string]*int64{"cpu_milli": &cpu, "memory_mib": &memory, "gpu": &gpus}); err != nil {
		return err
	}
	allocatable := scenariofile.Resources{corev1.ResourceCPU: milli(cpu), corev1.ResourceMemory: mebibytes(memory)}
	labels := map[string]string{}
	if gpus > 0 {
		allocatable[gpuMilli] = quantity(1000 * gpus)
		labels[modelLabel] = t.text("model")
	}
	return t.at(b.node(t.text("sn"), allocatable, labels))
}

func (b *builder) alibabaPod2023(t *table) error {
	if b.full() {
		return errEnough
	}
	var cpu, memory, gpus, share, created int64
	if err := t.amounts(map[string]*int64{
		"cpu_milli": &cpu, "memory_mib": &memory, "num_gpu": &gpus, "gpu_milli": &share, "creation_time": &created,
	}); err != nil {
		return err
	}
	if t.text("scheduled_time") == "" || t.text("deletion_time") == "" {
		b.omit("of pods that were not scheduled or not deleted")
		return nil
	}
	var scheduled, deleted int64
	if err := t.amounts(map[string]*int64{"scheduled_time": &scheduled, "deletion_time": &deleted}); err != nil {
		return err
	}
	r := row{
		name: t.text("name"), submitted: created, runs: deleted - scheduled, pods: 1,
		important: t.text("qos") == "LS" || t.text("qos") == "Guaranteed",
		requests:  scenariofile.Resources{corev1.ResourceCPU: milli(cpu), corev1.ResourceMemory: mebibytes(memory)},
	}
	if gpus > 0 {
		r.requests[gpuMilli] = quantity(gpus * share)
	}
	if _, there := t.column["gpu_spec"]; there && t.text("gpu_spec") != "" {
		r.affinity = requireModel(strings.Split(t.text("gpu_spec"), "|"))
	}
	return t.at(b.add(r))
}

// requireModel wants one of some GPUs.
func requireModel(models []string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: modelLabel, Operator: corev1.NodeSelectorOpIn, Values: models,
		}}}},
	}}}
}

func (b *builder) alibaba2026() error {
	if !b.nodesGiven {
		if err := each(b.trace.Nodes, b.alibabaNode2026, "node_name", "gpu_model", "gpu_capacity_num", "cpu_num"); err != nil {
			return err
		}
	}
	return each(b.trace.Jobs, b.alibabaJob2026,
		"job_name", "organization", "gpu_model", "cpu_request", "gpu_request", "worker_num", "submit_time", "duration", "job_type")
}

func (b *builder) alibabaNode2026(t *table) error {
	var gpus, cpus int64
	if err := t.amounts(map[string]*int64{"gpu_capacity_num": &gpus, "cpu_num": &cpus}); err != nil {
		return err
	}
	allocatable := scenariofile.Resources{corev1.ResourceCPU: quantity(cpus), gpu: quantity(gpus)}
	return t.at(b.node("node-"+t.text("node_name"), allocatable, map[string]string{modelLabel: t.text("gpu_model")}))
}

func (b *builder) alibabaJob2026(t *table) error {
	if b.full() {
		return errEnough
	}
	cpus, err := t.amount("cpu_request", 1000)
	if err != nil {
		return err
	}
	var gpus, workers, submitted, runs int64
	if err := t.amounts(map[string]*int64{"gpu_request": &gpus, "worker_num": &workers, "submit_time": &submitted, "duration": &runs}); err != nil {
		return err
	}
	kind := t.text("job_type")
	if kind != "HP" && kind != "Spot" {
		return t.wrong("job_type", "is %q; it is HP or Spot", short(kind))
	}
	r := row{
		name: "job-" + t.text("job_name"), group: t.text("organization"), important: kind == "HP", submitted: submitted, runs: runs, pods: int(workers),
		requests: scenariofile.Resources{corev1.ResourceCPU: milli(cpus), gpu: quantity(gpus)},
	}
	if model := t.text("gpu_model"); model != "" {
		r.selector = map[string]string{modelLabel: model}
	}
	return t.at(b.add(r))
}
