package provider

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

// objectTimeout bounds an operation without a configured timeout: API servers answer immediately, and a deletion that
// takes longer is blocked for as long as the object is in use.
const objectTimeout = 2 * time.Minute

// object is the resource of one kind of plain object: one whose attributes are the API's fields, and for which creating
// is a POST, reading a GET, updating a server-side apply and deleting a DELETE. What is special to a kind is in kind.
type object[T cluster.Object] struct {
	*kind[T]
	connection *connection
}

// newObject is the constructor of the resource of a kind. What follows from the kind's schema is made once for all of
// them.
func newObject[T cluster.Object](k *kind[T]) func() resource.Resource {
	return func() resource.Resource { return &object[T]{kind: k} }
}

// kind is the parameters of one kind of plain object. Only the first group is required.
type kind[T cluster.Object] struct {
	name       string // the resource's type without the provider's name: "cluster_queue"
	title      string // the kind as the API calls it: "ClusterQueue"
	apiVersion string // "kueue.x-k8s.io/v1beta2"
	attributes func(ctx context.Context) schema.Schema
	empty      func() T
	in         func(client *cluster.Client, namespace string) cluster.Resource[T]

	namespaced bool
	// parentField is the field that the attributes' fields are in: "spec", or "" where they are the object's own.
	parentField string
	// afterRecreation is the meaning of the object's re-creation by another client, to end a sentence.
	afterRecreation string
	// problems are the rules by which a creation is refused, and changes those of an update, of which the former are a
	// part.
	problems func(desired T) field.ErrorList
	changes  func(desired, live T) field.ErrorList
	// concerns names attributes that a rule about the given one also looks at, besides its neighbours.
	concerns func(at string) []string
	// active is the condition that wait_for = "active" waits for.
	active func(live T) *metav1.Condition
	watch  func(ctx context.Context, client *cluster.Client, namespace, name string, done func([]T) (bool, error)) error
	// plannedAttributes returns the attributes that other resources need; nil for kinds without references to them.
	plannedAttributes func(desired T) plannedAttributes
	// checks compares a planned object that is made or changed with those that it refers to.
	checks func(ctx context.Context, c *connection, desired T) []check
	// stops reports that the kind is a queue, whose stop_policy actions set, too.
	stops bool
	// consequence is a sentence about the effect of setting an attribute back that others have changed; "" for nothing
	// special.
	consequence func(change drift.Change) string
	// holders are the causes that block a deletion, in a phrase each, and release is the remedy.
	holders func(ctx context.Context, client *cluster.Client, name string) ([]string, error)
	release string
	// moves are other providers' resources whose state can be taken over, besides kubernetes_manifest.
	moves map[string]func(state []byte) (T, error)

	layout layout
}

var (
	_ resource.ResourceWithConfigure      = &object[*metav1.PartialObjectMetadata]{}
	_ resource.ResourceWithValidateConfig = &object[*metav1.PartialObjectMetadata]{}
	_ resource.ResourceWithModifyPlan     = &object[*metav1.PartialObjectMetadata]{}
	_ resource.ResourceWithImportState    = &object[*metav1.PartialObjectMetadata]{}
	_ resource.ResourceWithIdentity       = &object[*metav1.PartialObjectMetadata]{}
	_ resource.ResourceWithMoveState      = &object[*metav1.PartialObjectMetadata]{}
)

func (o *object[T]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + o.name
}

func (o *object[T]) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = o.laidOut(ctx).schema
}

func (o *object[T]) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	o.connection = connectionOf(req.ProviderData, &resp.Diagnostics)
}

func (o *object[T]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	o.connection.applies()
	ctx, addWarnings := collectWarnings(ctx, &resp.Diagnostics)
	defer addWarnings()
	plan := valuesOf(req.Plan.Raw)
	ctx, cancel := context.WithTimeoutCause(ctx, plan.timeout("create"), errTimeIsUp)
	defer cancel()
	desired := o.desired(ctx, plan, &resp.Diagnostics)
	client, diags := o.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	created, err := createNamed(plan.text("name"), plan.text("generate_name"), func(name string) (T, error) {
		plan.setText("name", name)
		desired.SetName(name)
		return cluster.Create(ctx, client, o.in(client, plan.text("namespace")), desired)
	})
	if err != nil {
		o.subject(ctx, plan).explain(&resp.Diagnostics, err)
		return
	}
	plan.setText("uid", string(created.GetUID()))
	resp.State.Raw = o.raw(ctx, plan)
	resp.Diagnostics.Append(o.setIdentity(ctx, plan, resp.Identity)...)
	resp.Diagnostics.Append(o.wait(ctx, client, plan, created)...)
}

// Read costs one GET.
func (o *object[T]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	ctx, cancel := context.WithTimeoutCause(ctx, objectTimeout, errTimeIsUp)
	defer cancel()
	state := valuesOf(req.State.Raw)
	client, diags := o.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	// Also for an object that is gone: Terraform before 1.12 keeps no identity, and the framework requires one.
	resp.Diagnostics.Append(o.setIdentity(ctx, state, resp.Identity)...)
	live, err := cluster.Get(ctx, client, o.in(client, state.text("namespace")), state.text("name"))
	switch {
	case cluster.IsNotServed(err) && !cluster.ServesGroup(ctx, client, o.group()):
		resp.Diagnostics.AddWarning(fmt.Sprintf("%s %s no longer exists", o.title, o.importID(state)), fmt.Sprintf(
			"The cluster at %s does not serve objects of %s, so this object no longer exists. The plan creates it again; "+
				"install Kueue 0.19 or later first.", client.Host(), o.apiVersion))
		resp.State.RemoveResource(ctx)
		return
	case apierrors.IsNotFound(err) && !cluster.IsNotServed(err):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		o.subject(ctx, state).explain(&resp.Diagnostics, err)
		return
	}
	if before := state.text("uid"); before != "" && before != string(live.GetUID()) {
		resp.Diagnostics.AddWarning(fmt.Sprintf("%s %s was recreated outside of Terraform", o.title, o.importID(state)),
			fmt.Sprintf("Its UID was %s and is now %s. Terraform manages the new object; %s.", before, live.GetUID(), o.afterRecreation))
	}
	o.warnTerminating(&resp.Diagnostics, state, live)
	before := maps.Clone(state)
	resp.Diagnostics.Append(o.read(ctx, client, state, live)...)
	state = valuesOf(withDefaults(ctx, o.laidOut(ctx).schema.Attributes, o.raw(ctx, state)))
	if resp.Private != nil { // a search for objects keeps nothing
		resp.Diagnostics.Append(o.observe(ctx, client, resp.Private, before, state, live)...)
	}
	resp.State.Raw = o.raw(ctx, state)
}

func (o *object[T]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	o.connection.applies()
	ctx, addWarnings := collectWarnings(ctx, &resp.Diagnostics)
	defer addWarnings()
	plan, state := valuesOf(req.Plan.Raw), valuesOf(req.State.Raw)
	ctx, cancel := context.WithTimeoutCause(ctx, plan.timeout("update"), errTimeIsUp)
	defer cancel()
	desired := o.desired(ctx, plan, &resp.Diagnostics)
	prior, err := o.expand(state)
	if err != nil {
		resp.Diagnostics.AddError(fmt.Sprintf("Not a %s", o.title), err.Error()+".")
	}
	client, diags := o.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	applied, err := cluster.Apply(ctx, client, o.in(client, plan.text("namespace")), desired, cluster.ApplyOptions[T]{
		UID: apitypes.UID(state.text("uid")), Complete: true, Prior: prior,
		Check: func(live T) error {
			return o.checkSincePlan(ctx, client, req.Private, state, plan, valuesOf(req.Config.Raw), live)
		},
	})
	if err != nil {
		o.subject(ctx, plan).explain(&resp.Diagnostics, err)
		return
	}
	plan.setText("uid", string(applied.GetUID()))
	observed, err := o.observation(ctx, client, plan, applied)
	if err != nil {
		resp.Diagnostics.Append(cannotTellWriters(err))
	}
	resp.Diagnostics.Append(keepObservation(ctx, resp.Private, observed)...)
	resp.State.Raw = o.raw(ctx, plan)
	resp.Diagnostics.Append(o.setIdentity(ctx, plan, resp.Identity)...)
	resp.Diagnostics.Append(o.wait(ctx, client, plan, applied)...)
}

func (o *object[T]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	o.connection.applies()
	ctx, addWarnings := collectWarnings(ctx, &resp.Diagnostics)
	defer addWarnings()
	state := valuesOf(req.State.Raw)
	ctx, cancel := context.WithTimeoutCause(ctx, state.timeout("delete"), errTimeIsUp)
	defer cancel()
	client, diags := o.connection.cluster()
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	err := cluster.Delete(ctx, client, o.in(client, state.text("namespace")),
		state.text("name"), apitypes.UID(state.text("uid")), metav1.DeletePropagationBackground)
	o.explainHeld(ctx, &resp.Diagnostics, client, state, err)
}

// ValidateConfig refuses what the API or a webhook of the kind would refuse.
func (o *object[T]) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	if resp.Diagnostics.Append(nullItems(req.Config.Raw)...); resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(withoutRepetition(ctx, o.laidOut(ctx).schema, req.Config.Raw, o.refusals(ctx, req.Config.Raw))...)
}

// ModifyPlan plans a replacement for changes of immutable attributes, names the changes by others, and checks the
// objects that the object refers to.
func (o *object[T]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	named, renamed := settledNames(req.Config.Raw, req.State.Raw, req.Plan.Raw)
	req.Plan.Raw, resp.Plan.Raw = named, named
	resp.RequiresReplace.Append(renamed...)
	if !req.State.Raw.IsNull() {
		attributes := o.laidOut(ctx).schema.Attributes
		planned := observedAsBefore(attributes, req.State.Raw, req.Plan.Raw)
		req.Plan.Raw = respelled(attributes, req.Config.Raw, req.State.Raw, planned, o.same(ctx))
		resp.Plan.Raw = req.Plan.Raw
	}
	o.keepHeld(ctx, &req, resp)
	for _, at := range o.replacing(ctx, req.State.Raw, req.Plan.Raw) {
		resp.RequiresReplace.Append(at)
	}
	if !req.State.Raw.IsNull() {
		o.warnOfDrift(ctx, req, resp)
	}
	if o.connection == nil {
		return
	}
	if namespace := valuesOf(req.Plan.Raw).text("namespace"); o.namespaced && namespace != valuesOf(req.State.Raw).text("namespace") {
		resp.Diagnostics.Append(o.connection.checkNamespace(ctx, namespace, o.title)...)
	}
	resp.Diagnostics.Append(o.compare(ctx, req.State.Raw, req.Plan.Raw)...)
}

// ImportState takes the name or namespace/name, or on Terraform 1.12 and later the identity.
func (o *object[T]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if !o.namespaced {
		importNamed(ctx, o.title, o.name, req, resp)
		return
	}
	importNamespaced(ctx, o.title, "default/user-queue", req, resp)
}
