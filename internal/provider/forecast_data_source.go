package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/snapshot"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/numeric"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/quantity"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/jobfile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// forecastData is data.elastic_forecast.
type forecastData struct{ dataSource }

var _ datasource.DataSourceWithConfigure = &forecastData{}

func newForecastData() datasource.DataSource {
	return &forecastData{dataSource{name: "forecast"}}
}

// maxForecastPods bounds how many pods of one group may be described.
const maxForecastPods = 10_000

func (d *forecastData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Forecast of a job that is not created: whether it fits, its position in its queue, where and when its pods start, and which pods they evict. " +
			"It is based on the state of the cluster and reserves nothing. Every plan reads it again, so outputs that use it may change at every plan. " +
			"If no forecast is possible, `available` is false, `reason` contains the cause, and all other attributes are null, so that a check that compares them fails.",
		Attributes: map[string]schema.Attribute{
			// The job of the forecast.
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the job, with `pods`. An existing job with this name, in the cluster or in the plan, is treated as this job.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthBetween(1, 253), stringvalidator.AlsoRequires(path.MatchRoot("pods"))},
			},
			"namespace": schema.StringAttribute{MarkdownDescription: "Namespace of the job; `default` by default.", Optional: true, Validators: []validator.String{namespaceName}},
			"queue": schema.SingleNestedAttribute{
				MarkdownDescription: "Kueue's queue for the pods: the minimum pods are queued together, and each further pod separately. Without it, the pods are not queued.",
				Optional:            true,
				Attributes: map[string]schema.Attribute{
					"name":                    schema.StringAttribute{MarkdownDescription: "LocalQueue in the job's namespace.", Required: true, Validators: []validator.String{subdomain}},
					"workload_priority_class": schema.StringAttribute{MarkdownDescription: "WorkloadPriorityClass in the queue; the priority of the pods by default.", Optional: true, Validators: []validator.String{subdomain}},
				},
			},
			"pods": schema.ListNestedAttribute{
				MarkdownDescription: "Pods of the job, in the order in which they are created. Set `name` and `pods`, or `manifest`.",
				Optional:            true,
				Validators: []validator.List{
					listvalidator.SizeAtLeast(1), listvalidator.AlsoRequires(path.MatchRoot("name")), listvalidator.ExactlyOneOf(path.MatchRoot("manifest")),
				},
				NestedObject: schema.NestedAttributeObject{Attributes: forecastPodAttributes()},
			},
			"manifest": schema.StringAttribute{
				MarkdownDescription: "The job as YAML, in one or more documents, instead of `name` and `pods`: a Job, Deployment, StatefulSet, DaemonSet, JobSet, TrainJob, RayJob, MPIJob, PyTorchJob, LeaderWorkerSet, AppWrapper, the Pods of a group, " +
					"or another kind that `elastic-sim forecast -f` accepts. If it contains several jobs, the result is that of the last one; the others are assumed to be applied before it. Classes, queues, quotas, limits and Services in it are treated as applied.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.ConflictsWith(path.MatchRoot("name"), path.MatchRoot("queue"))},
			},

			"snapshot": schema.StringAttribute{
				MarkdownDescription: "Path of a snapshot file, which `elastic-sim snapshot` has written, or of a list of Kubernetes objects in YAML or JSON. The forecast is then made from the file, for the time of the file, " +
					"and the cluster is not contacted. Jobs, classes and queues of the same plan are not counted.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},

			"accepted_reasons": schema.ListAttribute{
				MarkdownDescription: "Codes of reasons for approximate forecasts that do not affect `certain`, such as `too-many-choices`; the provider's `forecast_accepted_reasons` by default.",
				ElementType:         types.StringType,
				Optional:            true,
			},

			// The answer.
			"available":         readBoolean("Whether a forecast could be made."),
			"reason":            readText("Why no forecast was possible; null otherwise."),
			"as_of":             readText("When the cluster was read, in RFC 3339."),
			"outcome":           readText("`fits` (the job starts immediately and evicts no pods), `preempts` (the job starts and evicts other pods), `waits` (the job starts only after other jobs end) or `never` (the job cannot start)."),
			"fits":              readBoolean("Whether the outcome is `fits`."),
			"summary":           readText("Title of the forecast, as in the warning of a plan."),
			"text":              readText("Lines of the forecast, as in the warning of a plan."),
			"queue_position":    readInteger("Number of workloads ahead of the job in its ClusterQueue; null if it does not wait in a queue."),
			"expected_at":       readText("Expected start time, in RFC 3339: half of such jobs start earlier. It follows from the progress and the deadlines of running jobs, and from the run times of finished Workloads of the same LocalQueue and kind of owner (at least five); null if the job does not wait or no time can be estimated."),
			"expected_earliest": readText("Start of the interval in which the job starts with a probability of 80 %, in RFC 3339; null if `expected_at` is."),
			"expected_latest":   readText("End of that interval, in RFC 3339; null if `expected_at` is."),
			"assumed_jobs":      readTexts("Jobs of the same plan or file that were assumed to be applied before it, or together with it."),
			"reasons":           readTexts("Why pods of the job wait or never run."),
			"approximate":       readTexts("What could not be determined. `claims` has the claims that are uncertain for each reason."),
			"approximate_codes": readTexts("The codes of these reasons, each once."),
			"certain":           readBoolean("True if the outcome and the evictions are certain, or uncertain only for reasons in `accepted_reasons`; null if no forecast was possible. `claims` has the others."),
			"claims": readObject("How certain each claim of the forecast is: certain means that what happens is what the forecast says, or one of the alternatives that it names, as long as the cluster does not change.", map[string]schema.Attribute{
				"outcome":   readObject("Whether the job fits, preempts, waits or can never run.", certaintyAttributes()),
				"evictions": readObject("Which pods and workloads of others stop for the job, and what becomes of them.", evictedAttributes()),
				"placement": readObject("The nodes of its pods.", certaintyAttributes()),
				"start":     readObject("When its pods start, and which pods must terminate first.", certaintyAttributes()),
				"queue":     readObject("What its queue decides, and its position; null for a job without a queue.", certaintyAttributes()),
			}),
			"starts": readObjects("Outcome for each pod.", map[string]schema.Attribute{
				"pod":           readText("Name of the pod in `pods`, with a number if there are several."),
				"state":         readText("`starts`, `waits` (for capacity), `queued` (for quota), `not_created` (it is created only after other pods, which wait, have started) or `never`."),
				"nodes":         readTexts("Nodes on which the pod may start; the scheduler chooses one of them at random."),
				"after":         readTexts("Pods that must terminate first."),
				"grace_seconds": readInteger("Grace period of these pods."),
				"reason":        readText("Reason why the pod waits; null if it starts."),
			}),
			"victims": readObjects("Pods and workloads that the job evicts; empty if there are none.", map[string]schema.Attribute{
				"kind":      readText("`Pod`, evicted by the scheduler, or `Workload`, evicted by its queue."),
				"namespace": readText("Its namespace."),
				"name":      readText("Its name."),
				"node":      readText("The node of a pod; null for a workload."),
				"priority":  readInteger("Priority: of a pod, from its PriorityClass; of a workload, in the queue."),
				"job":       readText("Name of the job to which it belongs; null for a pod without a job."),
				"job_kind":  readText("Kind of the job: `training job`, `task`, `Job`, `Deployment`, …"),
				"outcome":   readText("Effect on the job."),
				"certain":   readBoolean("Whether it is evicted in every possible outcome; false if the scheduler chooses one of several victims."),
			}),
		},
	}
}

func certaintyAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"certain": readBoolean("Whether the claim is certain."),
		"reasons": readTexts("Codes of the reasons why it is not."),
	}
}

func evictedAttributes() map[string]schema.Attribute {
	attributes := certaintyAttributes()
	attributes["min_pods"] = readInteger("The smallest number of pods of others that stop.")
	attributes["max_pods"] = readInteger("The largest number of them.")
	attributes["highest_priority"] = readInteger("The highest priority among them, candidates included: of a workload, its priority in Kueue; null if none stops.")
	attributes["choice"] = readObject("The pods among which the scheduler chooses; null if it has no choice.", map[string]schema.Attribute{
		"min": readInteger("The smallest number of pods that it takes."),
		"max": readInteger("The largest number of them."),
		"of":  readTexts("The candidates, as namespace/name."),
	})
	return attributes
}

func forecastPodAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": schema.StringAttribute{MarkdownDescription: "Name of the pods in the results: `worker`.", Required: true, Validators: []validator.String{subdomain}},
		"count": schema.Int64Attribute{
			CustomType:          numeric.Int64{},
			MarkdownDescription: "Number of pods; 1 by default.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.Between(1, maxForecastPods)},
		},
		"min": schema.Int64Attribute{
			CustomType:          numeric.Int64{},
			MarkdownDescription: "Minimum number of these pods that the job needs; all by default. Each further pod starts and stops separately; the outcome does not depend on whether further pods wait.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.Between(0, maxForecastPods)},
		},
		"starts_after_previous": schema.BoolAttribute{MarkdownDescription: "Whether the pods are created after all previous pods run, as a master creates its workers. False by default.", Optional: true},
		"requests": schema.MapAttribute{
			MarkdownDescription: "Resource requests of each pod: `{ cpu = \"3\", memory = \"4Gi\" }`.",
			ElementType:         quantity.Type{},
			Required:            true,
		},
		"priority_class_name": schema.StringAttribute{MarkdownDescription: "PriorityClass of the pods; the cluster's default if not set.", Optional: true, Validators: []validator.String{subdomain}},
		"labels":              schema.MapAttribute{MarkdownDescription: "Labels of the pods, which PodDisruptionBudgets and affinities of other pods select.", ElementType: types.StringType, Optional: true, Validators: []validator.Map{labels{}}},
		"node_selector":       schema.MapAttribute{MarkdownDescription: "Labels that a node must have.", ElementType: types.StringType, Optional: true, Validators: []validator.Map{labels{}}},
		"tolerations": schema.ListNestedAttribute{
			MarkdownDescription: "Taints that the pods tolerate.",
			Optional:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":                schema.StringAttribute{MarkdownDescription: "The taint's key; if not set, all keys match.", Optional: true},
				"operator":           schema.StringAttribute{MarkdownDescription: "`Exists` or `Equal`.", Optional: true, Validators: []validator.String{stringvalidator.OneOf("Exists", "Equal")}},
				"value":              schema.StringAttribute{MarkdownDescription: "The taint's value, with `Equal`.", Optional: true},
				"effect":             schema.StringAttribute{MarkdownDescription: "`NoSchedule`, `PreferNoSchedule` or `NoExecute`; if not set, all effects match.", Optional: true, Validators: []validator.String{stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")}},
				"toleration_seconds": schema.Int64Attribute{CustomType: numeric.Int64{}, MarkdownDescription: "Seconds for which a `NoExecute` taint is tolerated.", Optional: true},
			}},
		},
	}
}

// forecastDataModel is the data source's value.
type forecastDataModel struct {
	Name      types.String `tfsdk:"name"`
	Namespace types.String `tfsdk:"namespace"`
	Queue     types.Object `tfsdk:"queue"`
	Pods      types.List   `tfsdk:"pods"`
	Manifest  types.String `tfsdk:"manifest"`
	Snapshot  types.String `tfsdk:"snapshot"`
	Accepted  types.List   `tfsdk:"accepted_reasons"`

	Available types.Bool   `tfsdk:"available"`
	Reason    types.String `tfsdk:"reason"`
	Certain   types.Bool   `tfsdk:"certain"`
	forecastAnswerModel
}

type forecastPodModel struct {
	Name              types.String `tfsdk:"name"`
	Count             types.Int64  `tfsdk:"count"`
	Min               types.Int64  `tfsdk:"min"`
	Follows           types.Bool   `tfsdk:"starts_after_previous"`
	Requests          types.Map    `tfsdk:"requests"`
	PriorityClassName types.String `tfsdk:"priority_class_name"`
	Labels            types.Map    `tfsdk:"labels"`
	NodeSelector      types.Map    `tfsdk:"node_selector"`
	Tolerations       types.List   `tfsdk:"tolerations"`
}

// Read makes the forecast for the described job. Only a wrong description is an error: that no forecast is possible is
// an answer too.
func (d *forecastData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	ctx, cancel := context.WithTimeout(ctx, dataSourceTimeout)
	defer cancel()
	var model forecastDataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	accepted, err := forecast.ParseReasonCodes(textsOf(model.Accepted))
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("accepted_reasons"), "Invalid reason code", sentenceOf("", err.Error()))
		return
	}
	if model.Accepted.IsNull() {
		accepted = d.connection.forecasts.accepted
	}
	forecastFrom := d.forecastFromCluster
	if !model.Snapshot.IsNull() {
		forecastFrom = d.forecastFromFile
	}
	answer, diags, err := forecastFrom(ctx, &model)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	model.Available, model.Certain = types.BoolValue(err == nil), types.BoolNull()
	if err != nil {
		model.Reason = types.StringValue(sentenceOf("", err.Error()))
		model.forecastAnswerModel = noForecastAnswer()
	} else {
		model.Certain = types.BoolValue(len(answer.Unaccepted(accepted...)) == 0)
		var diags diag.Diagnostics
		model.forecastAnswerModel, diags = forecastAnswerOf(ctx, answer)
		resp.Diagnostics.Append(diags...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// forecastFromCluster is the forecast for what the configuration describes. err is why none is possible.
func (d *forecastData) forecastFromCluster(ctx context.Context, m *forecastDataModel) (forecast.Answer, diag.Diagnostics, error) {
	given := jobfile.Given{
		Given: manifest.Given{
			Namespace: namespaceOf(m.Namespace),
			Runtime: func(kind, namespace, name string) (*unstructured.Unstructured, error) {
				client, diags := d.connection.cluster()
				if diags.HasError() {
					return nil, errors.New(diags.Errors()[0].Summary())
				}
				return snapshot.ReadRuntime(ctx, client, kind, namespace, name)
			},
		},
		Flavors: func(namespace, queue string) []map[string]string {
			return d.connection.plannedFlavors(ctx, namespace, queue)
		},
	}
	if !m.Manifest.IsNull() {
		if s, err := d.connection.snapshot(ctx, false); err == nil { // if the cluster cannot be read, the answer contains the reason
			given.Nodes = s.Nodes
		}
	}
	contents, diags := m.contents(ctx, given)
	if diags.HasError() {
		return forecast.Answer{}, diags, nil
	}
	job := contents.Jobs[len(contents.Jobs)-1]
	before, uncounted := d.connection.forecasts.otherPlanned(job)
	before = append(before, contents.Jobs[:len(contents.Jobs)-1]...)
	answer, err := d.connection.forecastPlan(ctx, before, &job, contents.Objects...)
	for _, name := range uncounted {
		answer.Approximate = append(answer.Approximate, notCounted(name))
	}
	return answer, nil, err
}

// forecastFromFile is forecastFromCluster from a snapshot file. A file that cannot be read is a wrong configuration.
func (d *forecastData) forecastFromFile(ctx context.Context, m *forecastDataModel) (forecast.Answer, diag.Diagnostics, error) {
	file, err := snapshot.Open(m.Snapshot.ValueString(), time.Time{})
	if err != nil {
		return forecast.Answer{}, diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("snapshot"), "Invalid snapshot", sentenceOf("", err.Error()))}, nil
	}
	contents, diags := m.contents(ctx, jobfile.Given{
		Given:   manifest.Given{Namespace: namespaceOf(m.Namespace), Nodes: file.Nodes, Runtime: file.Runtime},
		Flavors: file.Queues.FlavorLabels,
	})
	if diags.HasError() {
		return forecast.Answer{}, diags, nil
	}
	ctx, done := d.connection.forecasts.withTimeBudget(ctx)
	defer done()
	last := len(contents.Jobs) - 1
	return forecast.Run(ctx, file.With(contents.Objects), contents.Jobs[:last], contents.Jobs[last]), nil, nil
}

// contents are the jobs that the configuration describes, and what decides about their pods besides.
func (m *forecastDataModel) contents(ctx context.Context, given jobfile.Given) (manifest.Contents, diag.Diagnostics) {
	if m.Manifest.IsNull() {
		job, diags := m.job(ctx)
		return manifest.Contents{Jobs: []forecast.Job{job}}, diags
	}
	contents, err := jobfile.Read("manifest", []byte(m.Manifest.ValueString()), given)
	if err != nil {
		return contents, diag.Diagnostics{diag.NewAttributeErrorDiagnostic(path.Root("manifest"), "Invalid manifest", sentenceOf("", err.Error()))}
	}
	return contents, nil
}

// job is the job that the configuration describes.
func (m *forecastDataModel) job(ctx context.Context) (forecast.Job, diag.Diagnostics) {
	r := &expander{ctx: ctx}
	var groups []forecast.Group
	seen := map[string]bool{}
	for i, p := range elements[forecastPodModel](r, m.Pods) {
		at := path.Root("pods").AtListIndex(i)
		group := forecast.Group{Name: p.Name.ValueString(), Count: orOne(p.Count), Follows: p.Follows.ValueBool()}
		if seen[group.Name] {
			r.diags.AddAttributeError(at.AtName("name"), "Duplicate name", fmt.Sprintf("Two groups of pods have the name %q. Give each group a different name.", group.Name))
		}
		seen[group.Name] = true
		group.Least = group.Count
		if !p.Min.IsNull() {
			group.Least = int(p.Min.ValueInt64())
		}
		if group.Least > group.Count {
			r.diags.AddAttributeError(at.AtName("min"), "Invalid minimum", fmt.Sprintf("min is %d, and count is %d. Increase count to at least %[1]d, or reduce min.", group.Least, group.Count))
		}
		group.Template = corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: r.texts(p.Labels)},
			Spec: corev1.PodSpec{
				PriorityClassName: p.PriorityClassName.ValueString(), NodeSelector: r.texts(p.NodeSelector),
				Containers: []corev1.Container{{Name: "main"}},
			},
		}
		r.decode(at.AtName("tolerations"), p.Tolerations, &group.Template.Spec.Tolerations)
		r.decode(at.AtName("requests"), p.Requests, &group.Template.Spec.Containers[0].Resources.Requests)
		groups = append(groups, group)
	}
	queue := into[taskQueueModel](r, m.Queue)
	return forecast.OfGroups(namespaceOf(m.Namespace), m.Name.ValueString(), queue.Name.ValueString(), queue.WorkloadPriorityClass.ValueString(), groups), r.diags
}
