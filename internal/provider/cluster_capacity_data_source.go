package provider

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// clusterCapacityData is data.elastic_cluster_capacity.
type clusterCapacityData struct{ dataSource }

var _ datasource.DataSourceWithConfigure = &clusterCapacityData{}

func newClusterCapacityData() datasource.DataSource {
	return &clusterCapacityData{dataSource{name: "cluster_capacity"}}
}

func (d *clusterCapacityData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	ofNode := roomAttributes("the node")
	maps.Copy(ofNode, map[string]schema.Attribute{
		"name":        readText("Name of the node."),
		"ready":       readBoolean("Whether the node's condition `Ready` is true."),
		"schedulable": readBoolean("Whether pods may be scheduled on it: false for a node that is cordoned."),
	})
	resp.Schema = schema.Schema{
		MarkdownDescription: "The resources of nodes and queues: in total, used and free. They are read at every plan, so an output that uses them may change at every plan.",
		Attributes: map[string]schema.Attribute{
			"node_selector": schema.MapAttribute{
				MarkdownDescription: "Selects the nodes with these labels; all nodes by default.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Map{labels{}},
			},
			"as_of": readText("Time at which the cluster was read, in RFC 3339."),
			"nodes": readObjects("The nodes, in order of name.", ofNode),
			"total": readObject("Sum over all nodes that are ready and schedulable. A pod may not fit on any single node even if the sum is large enough.", roomAttributes("these nodes")),
			"queues": readObjects("The ClusterQueues, in order of name; null where Kueue is not installed.", map[string]schema.Attribute{
				"name":                readText("Name of the ClusterQueue."),
				"cohort":              readText("Cohort of the queue, from which it may borrow; null for none."),
				"active":              readBoolean("Whether the queue admits workloads."),
				"message":             readText("Kueue's reason why the queue is not active; null if it is active."),
				"pending_workloads":   readInteger("Number of workloads that wait in the queue."),
				"reserving_workloads": readInteger("Number of workloads that hold quota of the queue."),
				"admitted_workloads":  readInteger("Number of workloads that are admitted and have not finished."),
				"quotas": readObjects("Its quota of each resource of each flavor, in the order of its specification.", map[string]schema.Attribute{
					"flavor":          readText("The ResourceFlavor."),
					"resource":        readText("The resource: `cpu`, `memory`, `nvidia.com/gpu`, …"),
					"nominal":         readText("Its own quota."),
					"used":            readText("Quota that workloads hold, whether or not they are admitted yet."),
					"borrowed":        readText("The part of `used` that is beyond `nominal`."),
					"free":            readText("The unused part of `nominal`. The queue may borrow more from its cohort, and can get less if other queues have borrowed this quota."),
					"borrowing_limit": readText("Maximum amount that the queue may borrow; null for no limit."),
					"lending_limit":   readText("Maximum amount that the queue may lend; null for no limit."),
				}),
			}),
		},
	}
}

func roomAttributes(of string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"allocatable": readTextMap("Allocatable resources of " + of + "."),
		"requested":   readTextMap("Requests of the pods on " + of + ", by resource."),
		"free":        readTextMap("Allocatable minus requested, by resource; at least zero."),
	}
}

// clusterCapacityModel is the data source's value.
type clusterCapacityModel struct {
	NodeSelector types.Map    `tfsdk:"node_selector"`
	AsOf         types.String `tfsdk:"as_of"`
	Nodes        []nodeModel  `tfsdk:"nodes"`
	Total        *roomModel   `tfsdk:"total"`
	Queues       []queueModel `tfsdk:"queues"`
}

type nodeModel struct {
	Name        types.String `tfsdk:"name"`
	Ready       types.Bool   `tfsdk:"ready"`
	Schedulable types.Bool   `tfsdk:"schedulable"`
	roomModel
}

type roomModel struct {
	Allocatable types.Map `tfsdk:"allocatable"`
	Requested   types.Map `tfsdk:"requested"`
	Free        types.Map `tfsdk:"free"`
}

type queueModel struct {
	Name      types.String `tfsdk:"name"`
	Cohort    types.String `tfsdk:"cohort"`
	Active    types.Bool   `tfsdk:"active"`
	Message   types.String `tfsdk:"message"`
	Pending   types.Int64  `tfsdk:"pending_workloads"`
	Reserving types.Int64  `tfsdk:"reserving_workloads"`
	Admitted  types.Int64  `tfsdk:"admitted_workloads"`
	Quotas    []quotaModel `tfsdk:"quotas"`
}

type quotaModel struct {
	Flavor         types.String `tfsdk:"flavor"`
	Resource       types.String `tfsdk:"resource"`
	Nominal        types.String `tfsdk:"nominal"`
	Used           types.String `tfsdk:"used"`
	Borrowed       types.String `tfsdk:"borrowed"`
	Free           types.String `tfsdk:"free"`
	BorrowingLimit types.String `tfsdk:"borrowing_limit"`
	LendingLimit   types.String `tfsdk:"lending_limit"`
}

// Read costs a LIST of nodes, of pods that have not ended, and of ClusterQueues.
func (d *clusterCapacityData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, dataSourceTimeout)
	defer cancel()
	var model clusterCapacityModel
	client := d.begin(ctx, req, resp, &model)
	if client == nil {
		return
	}
	selector, diags := stringMap(ctx, model.NodeSelector)
	resp.Diagnostics.Append(diags...)
	kube := client.Kubernetes().CoreV1()
	nodes, err := cluster.List[*corev1.Node](ctx, client, kube.Nodes(), metav1.ListOptions{LabelSelector: k8slabels.SelectorFromSet(selector).String()})
	if err != nil {
		explain(&resp.Diagnostics, err)
		return
	}
	pods, err := cluster.List[*corev1.Pod](ctx, client, kube.Pods(""), metav1.ListOptions{FieldSelector: snapshot.NotEnded})
	if err != nil {
		explain(&resp.Diagnostics, err)
		return
	}
	queues, err := cluster.List[*kueue.ClusterQueue](ctx, client, client.Kueue().ClusterQueues(), metav1.ListOptions{})
	if err != nil && !cluster.IsNotServed(err) {
		explain(&resp.Diagnostics, err)
		return
	}
	if err == nil {
		model.Queues = queueModels(queues)
	}
	model.AsOf = types.StringValue(time.Now().UTC().Format(time.RFC3339))
	resp.Diagnostics.Append(model.readNodes(nodes, pods)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (m *clusterCapacityModel) readNodes(nodes []*corev1.Node, pods []*corev1.Pod) diag.Diagnostics {
	on := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		on[pod.Spec.NodeName] = append(on[pod.Spec.NodeName], pod)
	}
	m.Nodes = []nodeModel{}
	var total room
	var diags diag.Diagnostics
	for _, node := range nodes {
		r := roomOn(node, on[node.Name])
		if scheduler.NodeReady(node) && !node.Spec.Unschedulable {
			total = total.plus(r)
		}
		m.Nodes = append(m.Nodes, nodeModel{
			Name: types.StringValue(node.Name), Ready: types.BoolValue(scheduler.NodeReady(node)), Schedulable: types.BoolValue(!node.Spec.Unschedulable),
			roomModel: r.model(&diags),
		})
	}
	m.Total = new(total.model(&diags))
	return diags
}

func (r room) model(diags *diag.Diagnostics) roomModel {
	value := func(list corev1.ResourceList) types.Map {
		amounts, more := amountsValue(list)
		diags.Append(more...)
		return amounts
	}
	return roomModel{Allocatable: value(r.allocatable), Requested: value(r.requested), Free: value(r.free)}
}

func queueModels(queues []*kueue.ClusterQueue) []queueModel {
	models := []queueModel{}
	for _, queue := range queues {
		model := queueModel{
			Name: types.StringValue(queue.Name), Cohort: textOrNull(string(queue.Spec.CohortName)),
			Active:  types.BoolValue(apimeta.IsStatusConditionTrue(queue.Status.Conditions, kueue.ClusterQueueActive)),
			Pending: types.Int64Value(int64(queue.Status.PendingWorkloads)), Reserving: types.Int64Value(int64(queue.Status.ReservingWorkloads)),
			Admitted: types.Int64Value(int64(queue.Status.AdmittedWorkloads)),
			Quotas:   []quotaModel{},
		}
		if !model.Active.ValueBool() {
			model.Message = types.StringValue("Kueue has not processed it yet.")
			if c := apimeta.FindStatusCondition(queue.Status.Conditions, kueue.ClusterQueueActive); c != nil {
				model.Message = types.StringValue(c.Message)
			}
		}
		for _, q := range quotasOf(queue) {
			model.Quotas = append(model.Quotas, quotaModel{
				Flavor: types.StringValue(q.flavor), Resource: types.StringValue(q.resource), Nominal: types.StringValue(q.nominal.String()),
				Used: types.StringValue(q.used.String()), Borrowed: types.StringValue(q.borrowed.String()), Free: types.StringValue(q.free.String()),
				BorrowingLimit: amountOrNull(q.borrowingLimit), LendingLimit: amountOrNull(q.lendingLimit),
			})
		}
		models = append(models, model)
	}
	return models
}

func amountOrNull(amount *resource.Quantity) types.String {
	if amount == nil {
		return types.StringNull()
	}
	return types.StringValue(amount.String())
}
