package provider

import (
	"context"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// checkReferences warns about missing objects that the job needs: classes, a queue, a node that is large enough. It
// fails a plan only where master_priority_check asks for it. If nothing is planned, it checks only the queue, which
// others share; made is true if the job will be created, even as a replacement.
func (r *trainingJob) checkReferences(ctx context.Context, stateRaw, planRaw tftypes.Value, plan *trainingJobModel, d trainingjob.Definition, made bool) diag.Diagnostics {
	var diags diag.Diagnostics
	if plan.Namespace.IsUnknown() {
		return diags
	}
	if made {
		diags.Append(r.connection.checkNamespace(ctx, d.Job.Namespace, "training job")...)
	}
	if q := d.Queue; q != nil {
		diags.Append(r.connection.plansQueued(ctx, path.Root("queue").AtName("name"), TypeName+"_training_job "+d.Job.Name, d.Job.Namespace, q.Name, q.MinClass())...)
	}
	if planRaw.Equal(stateRaw) {
		return diags
	}
	diags.Append(r.checkPriorities(ctx, d, plan.MasterPriorityCheck.ValueString())...)
	if !plan.at("queue").IsUnknown() && made {
		diags.Append(r.checkDefaultQueue(ctx, d)...)
	}
	if d.Queue != nil {
		diags.Append(r.checkQueueReferences(ctx, d)...)
	}
	workers := valueAt(planRaw, "workers")
	changes := made || !workers.Equal(valueAt(stateRaw, "workers"))
	if changes && workers.IsFullyKnown() && valueAt(planRaw, "master").IsFullyKnown() {
		diags.Append(r.checkRoom(ctx, d)...)
	}
	return diags
}

// checkPriorities warns about classes that do not exist, and about a master that the scheduler may preempt before its
// workers.
func (r *trainingJob) checkPriorities(ctx context.Context, d trainingjob.Definition, check string) diag.Diagnostics {
	var diags diag.Diagnostics
	const otherwise = "Without it the job cannot be created."
	for _, use := range classesOf(d) {
		diags.Append(r.connection.checkReference(ctx, use.at, reference{kind: aPriorityClass, name: use.name}, otherwise)...)
	}
	return append(diags, r.checkMasterPriority(ctx, d, check)...)
}

// The values of master_priority_check.
const (
	masterPriorityWarn  = "warn"
	masterPriorityError = "error"
	masterPriorityOff   = "off"
)

// checkMasterPriority warns, or refuses, that the scheduler may preempt the master as soon as a worker, which stops the
// job where the loss of a worker would only slow it down. Values that are not known are no reason.
func (r *trainingJob) checkMasterPriority(ctx context.Context, d trainingjob.Definition, check string) diag.Diagnostics {
	var diags diag.Diagnostics
	unset := d.Master.PriorityClassName == "" && d.Workers.PriorityClassName == ""
	if check == masterPriorityOff || check == masterPriorityWarn && unset {
		return diags // jobs without any class are those of a cluster that does not use priorities
	}
	master, isMaster := r.connection.podPriority(ctx, d.Master.PriorityClassName)
	workers, areWorkers := r.connection.podPriority(ctx, d.Workers.PriorityClassName)
	if !isMaster || !areWorkers || master > workers {
		return diags
	}
	at, summary := path.Root("master").AtName("priority_class_name"), "The master has no higher priority than its workers"
	detail := fmt.Sprintf("The priority of the master is %d (%s), that of its workers %d (%s). The scheduler may then preempt the master, which stops the job, "+
		"instead of a worker, which only slows it down. Set a PriorityClass with a higher value for the master.",
		master, classOrDefault(d.Master.PriorityClassName), workers, classOrDefault(d.Workers.PriorityClassName))
	if check == masterPriorityError {
		diags.AddAttributeError(at, summary, detail+` This is an error because of master_priority_check = "error".`)
	} else {
		diags.AddAttributeWarning(at, summary, detail+` To plan without this warning, set master_priority_check = "off".`)
	}
	return diags
}

func classOrDefault(name string) string {
	if name == "" {
		return "no PriorityClass is set: the cluster's default"
	}
	return fmt.Sprintf("PriorityClass %q", name)
}

// podPriority is the priority of pods with a class, or with the cluster's default ("") among those planned and those in
// the cluster; false if that is not known.
func (c *connection) podPriority(ctx context.Context, class string) (value int32, known bool) {
	if class != "" {
		f, found, _ := c.findReference(ctx, reference{kind: aPriorityClass, name: class})
		return f.value, found
	}
	listed := c.catalogue(ctx, aPriorityClass, "")
	if listed.err != nil {
		return 0, false
	}
	attributes := maps.Clone(listed.attributes)
	c.planned.mu.Lock()
	for ref, f := range c.planned.attributes {
		if ref.kind == aPriorityClass {
			attributes[ref.name] = f
		}
	}
	c.planned.mu.Unlock()
	found := false
	for _, f := range attributes {
		if f.isDefault && (!found || f.value < value) { // of several, Kubernetes takes the lowest
			value, found = f.value, true
		}
	}
	return value, true
}

// checkDefaultQueue warns where Kueue queues Jobs that name no queue: this job's among them.
func (r *trainingJob) checkDefaultQueue(ctx context.Context, d trainingjob.Definition) diag.Diagnostics {
	var diags diag.Diagnostics
	if _, found, _ := r.connection.findReference(ctx, reference{aLocalQueue, d.Job.Namespace, trainingjob.DefaultQueue}); !found {
		return diags
	}
	if d.Queue != nil {
		diags.AddAttributeWarning(path.Root("queue"), defaultQueueInTheWay, defaultQueueDetail(d)+" While that queue exists the job cannot be created.")
		return diags
	}
	diags.AddAttributeWarning(path.Root("namespace"), "Job will be queued by default", fmt.Sprintf(
		"Namespace %s has a LocalQueue named %q, to which Kueue assigns every Job and pod without a queue. The master and each worker will wait there separately; "+
			"the master is an ordinary workload there, and may be evicted for its own workers. Use a namespace without such a queue, or set queue to a LocalQueue with another name.",
		d.Job.Namespace, trainingjob.DefaultQueue))
	return diags
}

// checkQueueReferences warns about a queue and classes that are not there, and about minimum workers that Kueue would
// rather evict than what is above it.
func (r *trainingJob) checkQueueReferences(ctx context.Context, d trainingjob.Definition) diag.Diagnostics {
	var diags diag.Diagnostics
	at, q := path.Root("queue"), d.Queue
	diags.Append(r.connection.checkReference(ctx, at.AtName("name"), reference{aLocalQueue, d.Job.Namespace, q.Name}, "Until it exists, the job waits.")...)
	burst, minimum := reference{kind: aWorkloadPriorityClass, name: q.PriorityClass}, reference{kind: aWorkloadPriorityClass, name: q.MinPriorityClass}
	const otherwise = "Without it the job cannot be created."
	diags.Append(r.connection.checkReference(ctx, at.AtName("workload_priority_class"), burst, otherwise)...)
	diags.Append(r.connection.checkReference(ctx, at.AtName("min_workload_priority_class"), minimum, otherwise)...)
	if q.PriorityClass == "" || q.MinPriorityClass == "" {
		return diags
	}
	low, isLow, _ := r.connection.findReference(ctx, burst)
	high, isHigh, _ := r.connection.findReference(ctx, minimum)
	if isLow && isHigh && high.value <= low.value && burst != minimum {
		diags.AddAttributeWarning(at.AtName("min_workload_priority_class"), "The minimum workers have no higher priority", fmt.Sprintf(
			"WorkloadPriorityClass %q has value %d and %q, of the workers above the minimum, %d. Kueue may then evict the master with the minimum workers, which stops the job, instead of a worker above the minimum.",
			q.MinPriorityClass, high.value, q.PriorityClass, low.value))
	}
	return diags
}

// checkRoom warns about pods that fit on no node, even an empty one.
func (r *trainingJob) checkRoom(ctx context.Context, d trainingjob.Definition) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, of := range []struct {
		attribute, what string
		template        func() (corev1.PodTemplateSpec, error)
	}{{"master", "The master of ", d.MasterTemplate}, {"workers", "A worker of ", d.WorkerTemplate}} {
		template, err := of.template()
		if err != nil {
			continue // validation has reported it
		}
		diags.Append(r.connection.checkFits(ctx, path.Root(of.attribute), of.what+d.Job.Name, &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec})...)
	}
	return diags
}
