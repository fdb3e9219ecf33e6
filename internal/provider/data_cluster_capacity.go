package provider

import (
	"context"
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

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/kueue"
)

// clusterCapacity is data.elastic_cluster_capacity.
type clusterCapacity struct {
	connection *connection
}

var _ datasource.DataSourceWithConfigure = &clusterCapacity{}

func newClusterCapacity() datasource.DataSource { return &clusterCapacity{} }

func (d *clusterCapacity) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cluster_capacity"
}

func (d *clusterCapacity) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.connection = connectionOf(req.ProviderData, &resp.Diagnostics)
}

func (d *clusterCapacity) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Computed: true}
	}
	integer := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	boolean := func(description string) schema.Attribute {
		return schema.BoolAttribute{MarkdownDescription: description, Computed: true}
	}
	with := func(more, attributes map[string]schema.Attribute) map[string]schema.Attribute {
		for name, attribute := range more {
			attributes[name] = attribute
		}
		return attributes
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "What nodes and queues have, what of it is taken, and what is free. It is read anew at every plan, and an output of it is a change at every plan.",
		Attributes: map[string]schema.Attribute{
			"node_selector": schema.MapAttribute{
				MarkdownDescription: "Only the nodes with these labels; all by default.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Map{labels{}},
			},
			"as_of": text("When it was read, in RFC 3339."),
			"nodes": schema.ListNestedAttribute{
				MarkdownDescription: "The nodes, in order of name.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: with(roomAttributes("the node"), map[string]schema.Attribute{
					"name":        text("Name of the node."),
					"ready":       boolean("Whether its kubelet reports that it can run pods."),
					"schedulable": boolean("Whether pods may be scheduled on it: false for a node that is cordoned."),
				})},
			},
			"total": schema.SingleNestedAttribute{
				MarkdownDescription: "All nodes together that are ready and schedulable. What is free of it may be in pieces too small for a pod.",
				Computed:            true,
				Attributes:          roomAttributes("these nodes"),
			},
			"queues": schema.ListNestedAttribute{
				MarkdownDescription: "The ClusterQueues, in order of name; null where Kueue is not installed.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name":                text("Name of the ClusterQueue."),
					"cohort":              text("Its cohort, from which it may borrow; null for none."),
					"active":              boolean("Whether it admits workloads."),
					"message":             text("Why it is not active, in Kueue's words; null when it is."),
					"pending_workloads":   integer("Workloads that wait in it."),
					"reserving_workloads": integer("Workloads that hold quota of it."),
					"admitted_workloads":  integer("Workloads that are admitted and have not ended."),
					"quotas": schema.ListNestedAttribute{
						MarkdownDescription: "Its quota of each resource of each flavor, in the order of its specification.",
						Computed:            true,
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"flavor":          text("The ResourceFlavor."),
							"resource":        text("The resource: `cpu`, `memory`, `nvidia.com/gpu`, …"),
							"nominal":         text("Its own quota."),
							"used":            text("What workloads with quota hold, admitted or not."),
							"borrowed":        text("The part of `used` that is beyond `nominal`."),
							"free":            text("What is left of `nominal`. More may be borrowed of the cohort, and less be there when others have borrowed."),
							"borrowing_limit": text("How much may be borrowed; null for no limit."),
							"lending_limit":   text("How much may be lent; null for no limit."),
						}},
					},
				}},
			},
		},
	}
}

func roomAttributes(of string) map[string]schema.Attribute {
	amounts := func(description string) schema.Attribute {
		return schema.MapAttribute{MarkdownDescription: description, ElementType: types.StringType, Computed: true}
	}
	return map[string]schema.Attribute{
		"allocatable": amounts("What " + of + " can give to pods, by resource."),
		"requested":   amounts("What the pods there request, by resource."),
		"free":        amounts("The difference, by resource; at least zero."),
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

// takingRoom selects the pods that hold what they request: those that have not ended.
const takingRoom = "status.phase!=Succeeded,status.phase!=Failed"

// Read costs a LIST of nodes, of pods that have not ended, and of ClusterQueues.
func (d *clusterCapacity) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, dataSourceTimeout)
	defer cancel()
	var model clusterCapacityModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	selector, diags := stringMap(ctx, model.NodeSelector)
	resp.Diagnostics.Append(diags...)
	client, diags := d.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	kube := client.Kubernetes().CoreV1()
	nodes, err := cluster.List[*corev1.Node](ctx, client, kube.Nodes(), metav1.ListOptions{LabelSelector: k8slabels.SelectorFromSet(selector).String()})
	if err != nil {
		explain(&resp.Diagnostics, err)
		return
	}
	pods, err := cluster.List[*corev1.Pod](ctx, client, kube.Pods(""), metav1.ListOptions{FieldSelector: takingRoom})
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
		if isReady(node) && !node.Spec.Unschedulable {
			total = total.plus(r)
		}
		m.Nodes = append(m.Nodes, nodeModel{
			Name: types.StringValue(node.Name), Ready: types.BoolValue(isReady(node)), Schedulable: types.BoolValue(!node.Spec.Unschedulable),
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
			Active:  types.BoolValue(apimeta.IsStatusConditionTrue(queue.Status.Conditions, kueue.ConditionActive)),
			Pending: types.Int64Value(int64(queue.Status.PendingWorkloads)), Reserving: types.Int64Value(int64(queue.Status.ReservingWorkloads)),
			Admitted: types.Int64Value(int64(queue.Status.AdmittedWorkloads)),
			Quotas:   []quotaModel{},
		}
		if !model.Active.ValueBool() {
			model.Message = types.StringValue("Kueue has not looked at it yet.")
			if c := apimeta.FindStatusCondition(queue.Status.Conditions, kueue.ConditionActive); c != nil {
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
