package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// workloadsData is data.elastic_workloads.
type workloadsData struct{ dataSource }

var _ datasource.DataSourceWithConfigure = &workloadsData{}

func newWorkloadsData() datasource.DataSource {
	return &workloadsData{dataSource{name: "workloads"}}
}

func (d *workloadsData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The Workloads that `kubectl get workloads` shows, and the reason why each one waits. It is read at every plan, so an output that uses it may change at every plan.",
		Attributes: map[string]schema.Attribute{
			"namespace": schema.StringAttribute{
				MarkdownDescription: "Selects the workloads of this namespace; all by default. The position in the queue is known only if the workloads of all namespaces are read.",
				Optional:            true,
				Validators:          []validator.String{namespaceName},
			},
			"queue": schema.StringAttribute{
				MarkdownDescription: "Selects the workloads of LocalQueues with this name.",
				Optional:            true,
				Validators:          []validator.String{subdomain},
			},
			"as_of": readText("Time at which the workloads were read, in RFC 3339."),
			"workloads": readObjects("The workloads, in order of namespace and name.", map[string]schema.Attribute{
				"namespace":      readText("Namespace of the workload."),
				"name":           readText("Name of the workload."),
				"uid":            readText("UID of the workload."),
				"owner":          ownerAttribute(),
				"queue":          readText("The LocalQueue."),
				"cluster_queue":  readText("ClusterQueue in which the workload holds quota; null if it holds none."),
				"flavors":        readTexts("ResourceFlavors of the workload's quota."),
				"priority":       readInteger("Priority of the workload; a higher priority is admitted first."),
				"priority_class": readText("WorkloadPriorityClass or PriorityClass that determines the priority."),
				"admitted":       readBoolean("Whether the workload is admitted."),
				"finished":       readBoolean("Whether the workload has finished."),
				"phase": readText("`Pending`; `QuotaReserved`, while admission checks are open; `Admitted`; `Evicting`, until its quota is free; " +
					"`Inactive`, when it was deactivated; or `Finished`."),
				"reason":   readText("Kueue's reason why the workload waits, is evicted or has finished; null if it is admitted."),
				"message":  readText("Kueue's message with the reason, such as what the workload waits for."),
				"position": readInteger("Position among the waiting workloads of the ClusterQueue, from 1; null if the workload does not wait, or if `namespace` is set, because workloads of other namespaces are then not read."),
				"requests": readTextMap("Sum of the requests of all pods, by resource."),
				"created":  readText("Creation time, in RFC 3339. It determines the position among workloads of equal priority, also after a preemption."),
				"evictions": schema.MapAttribute{
					MarkdownDescription: "Number of evictions, by reason: `Preempted`, `PodsReadyTimeout`, …", ElementType: types.Int64Type, Computed: true,
				},
				"preempted_by": preemptedByAttribute(),
			}),
		},
	}
}

func ownerAttribute() schema.Attribute {
	return readObject("Owner of the workload: a Job, or the first pod of a group.", map[string]schema.Attribute{
		"kind": readText("Kind of the owner: `Job`, `Pod`, …"),
		"name": readText("Name of the owner."),
		"uid":  readText("UID of the owner."),
	})
}

func preemptedByAttribute() schema.Attribute {
	return readObject("Workload for which this one was evicted; null after it is admitted again.", map[string]schema.Attribute{
		"namespace": readText("Namespace; null if it is not among the workloads that were read."),
		"name":      readText("Name; null if it is not among the workloads that were read."),
		"uid":       readText("Its UID."),
	})
}

// workloadsModel is the data source's value.
type workloadsModel struct {
	Namespace types.String    `tfsdk:"namespace"`
	Queue     types.String    `tfsdk:"queue"`
	AsOf      types.String    `tfsdk:"as_of"`
	Workloads []workloadModel `tfsdk:"workloads"`
}

type workloadModel struct {
	Namespace     types.String   `tfsdk:"namespace"`
	Name          types.String   `tfsdk:"name"`
	UID           types.String   `tfsdk:"uid"`
	Owner         *ownerModel    `tfsdk:"owner"`
	Queue         types.String   `tfsdk:"queue"`
	ClusterQueue  types.String   `tfsdk:"cluster_queue"`
	Flavors       types.List     `tfsdk:"flavors"`
	Priority      types.Int64    `tfsdk:"priority"`
	PriorityClass types.String   `tfsdk:"priority_class"`
	Admitted      types.Bool     `tfsdk:"admitted"`
	Finished      types.Bool     `tfsdk:"finished"`
	Phase         types.String   `tfsdk:"phase"`
	Reason        types.String   `tfsdk:"reason"`
	Message       types.String   `tfsdk:"message"`
	Position      types.Int64    `tfsdk:"position"`
	Requests      types.Map      `tfsdk:"requests"`
	Created       types.String   `tfsdk:"created"`
	Evictions     types.Map      `tfsdk:"evictions"`
	PreemptedBy   *workloadNamed `tfsdk:"preempted_by"`
}

type ownerModel struct {
	Kind types.String `tfsdk:"kind"`
	Name types.String `tfsdk:"name"`
	UID  types.String `tfsdk:"uid"`
}

type workloadNamed struct {
	Namespace types.String `tfsdk:"namespace"`
	Name      types.String `tfsdk:"name"`
	UID       types.String `tfsdk:"uid"`
}

// Read costs a LIST of the workloads, and where all are read one of the LocalQueues.
func (d *workloadsData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, dataSourceTimeout)
	defer cancel()
	var model workloadsModel
	client := d.begin(ctx, req, resp, &model)
	if client == nil {
		return
	}
	namespace := model.Namespace.ValueString()
	found, err := cluster.List[*kueue.Workload](ctx, client, client.Kueue().Workloads(namespace), metav1.ListOptions{})
	if err != nil {
		explain(&resp.Diagnostics, err)
		return
	}
	places := map[apitypes.UID]int64{}
	if namespace == "" {
		queues, err := cluster.List[*kueue.LocalQueue](ctx, client, client.Kueue().LocalQueues(""), metav1.ListOptions{})
		if err != nil {
			explain(&resp.Diagnostics, err)
			return
		}
		places = positions(found, clusterQueuesOf(queues))
	}
	model.AsOf = types.StringValue(time.Now().UTC().Format(time.RFC3339))
	var diags diag.Diagnostics
	model.Workloads, diags = rows(ctx, found, model.Queue.ValueString(), places)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// clusterQueuesOf is the ClusterQueue of every LocalQueue.
func clusterQueuesOf(queues []*kueue.LocalQueue) map[apitypes.NamespacedName]string {
	of := make(map[apitypes.NamespacedName]string, len(queues))
	for _, queue := range queues {
		of[apitypes.NamespacedName{Namespace: queue.Namespace, Name: queue.Name}] = string(queue.Spec.ClusterQueue)
	}
	return of
}

// rows are the workloads of the queue, or of all queues for "".
func rows(ctx context.Context, found []*kueue.Workload, queue string, places map[apitypes.UID]int64) ([]workloadModel, diag.Diagnostics) {
	var diags diag.Diagnostics
	byUID := make(map[apitypes.UID]*kueue.Workload, len(found))
	for _, w := range found {
		byUID[w.UID] = w
	}
	models := []workloadModel{}
	for _, w := range found {
		if queue != "" && string(w.Spec.QueueName) != queue {
			continue
		}
		model, more := row(ctx, w)
		diags.Append(more...)
		if place, waits := places[w.UID]; waits {
			model.Position = types.Int64Value(place)
		}
		if uid := preemptorOf(w); uid != "" {
			model.PreemptedBy = &workloadNamed{UID: types.StringValue(string(uid))}
			if by, known := byUID[uid]; known {
				model.PreemptedBy.Namespace, model.PreemptedBy.Name = types.StringValue(by.Namespace), types.StringValue(by.Name)
			}
		}
		models = append(models, model)
	}
	return models, diags
}

// row converts a workload to a row of the data source.
func row(ctx context.Context, w *kueue.Workload) (workloadModel, diag.Diagnostics) {
	s := workloadStatusOf(w)
	model := workloadModel{
		Namespace: types.StringValue(w.Namespace), Name: types.StringValue(w.Name), UID: types.StringValue(string(w.UID)),
		Queue:    textOrNull(string(w.Spec.QueueName)),
		Priority: types.Int64Value(int64(priorityOf(w))),
		Admitted: types.BoolValue(apimeta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted)),
		Finished: types.BoolValue(apimeta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadFinished)),
		Phase:    types.StringValue(s.phase), Reason: textOrNull(s.reason), Message: textOrNull(s.message),
		Created: types.StringValue(w.CreationTimestamp.UTC().Format(time.RFC3339)),
	}
	if w.Status.Admission != nil {
		model.ClusterQueue = types.StringValue(string(w.Status.Admission.ClusterQueue))
	}
	if w.Spec.PriorityClassRef != nil {
		model.PriorityClass = types.StringValue(w.Spec.PriorityClassRef.Name)
	}
	if len(w.OwnerReferences) > 0 {
		owner := w.OwnerReferences[0]
		model.Owner = &ownerModel{Kind: types.StringValue(owner.Kind), Name: types.StringValue(owner.Name), UID: types.StringValue(string(owner.UID))}
	}
	var diags, more diag.Diagnostics
	model.Flavors, more = types.ListValueFrom(ctx, types.StringType, flavorsOf(w))
	diags.Append(more...)
	model.Evictions, more = types.MapValueFrom(ctx, types.Int64Type, evictionsOf(w))
	diags.Append(more...)
	model.Requests, more = amountsValue(requestsOf(w))
	diags.Append(more...)
	return model, diags
}

// amountsValue are amounts in their canonical form.
func amountsValue(list corev1.ResourceList) (types.Map, diag.Diagnostics) {
	values := make(map[string]attr.Value, len(list))
	for name, amount := range list {
		values[string(name)] = types.StringValue(amount.String())
	}
	return types.MapValue(types.StringType, values)
}
