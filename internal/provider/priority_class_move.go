package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
)

// MoveState takes over priority classes from the hashicorp/kubernetes provider, with a moved block (Terraform 1.8). The
// object in the cluster is not touched; the first apply takes its fields over.
func (r *priorityClass) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{StateMover: movePriorityClass}}
}

func movePriorityClass(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
	if !strings.HasSuffix(req.SourceProviderAddress, "/hashicorp/kubernetes") || req.SourceRawState == nil {
		return
	}
	var class movedPriorityClass
	var err error
	switch req.SourceTypeName {
	case "kubernetes_priority_class", "kubernetes_priority_class_v1":
		class, err = movedFromPriorityClass(req.SourceRawState.JSON)
	case "kubernetes_manifest":
		class, err = movedFromManifest(req.SourceRawState.JSON)
	default:
		return
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot move the state", fmt.Sprintf("State of %s: %v.", req.SourceTypeName, err))
		return
	}
	model := class.model()
	resp.Diagnostics.Append(resp.TargetState.Set(ctx, &model)...)
	if resp.TargetIdentity != nil {
		resp.Diagnostics.Append(resp.TargetIdentity.Set(ctx, model.identity())...)
	}
}

// movedPriorityClass is what other providers' states say of a priority class.
type movedPriorityClass struct {
	Metadata         movedMetadata
	Value            int64
	GlobalDefault    bool
	Description      string
	PreemptionPolicy string
}

type movedMetadata struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// movedFromPriorityClass reads the state of kubernetes_priority_class and kubernetes_priority_class_v1.
func movedFromPriorityClass(state []byte) (movedPriorityClass, error) {
	var source struct {
		Metadata         []movedMetadata `json:"metadata"`
		Value            int64           `json:"value"`
		GlobalDefault    bool            `json:"global_default"`
		Description      string          `json:"description"`
		PreemptionPolicy string          `json:"preemption_policy"`
	}
	if err := json.Unmarshal(state, &source); err != nil {
		return movedPriorityClass{}, err
	}
	if len(source.Metadata) != 1 || source.Metadata[0].Name == "" {
		return movedPriorityClass{}, fmt.Errorf("it has no metadata with a name")
	}
	return movedPriorityClass{
		Metadata:         source.Metadata[0],
		Value:            source.Value,
		GlobalDefault:    source.GlobalDefault,
		Description:      source.Description,
		PreemptionPolicy: source.PreemptionPolicy,
	}, nil
}

// movedFromManifest reads the state of kubernetes_manifest, whose attributes are dynamic: a value beside its type. The
// manifest is what was configured, the object what the API server made of it.
func movedFromManifest(state []byte) (movedPriorityClass, error) {
	type dynamic struct {
		Value struct {
			APIVersion       string        `json:"apiVersion"`
			Kind             string        `json:"kind"`
			Metadata         movedMetadata `json:"metadata"`
			Value            int64         `json:"value"`
			GlobalDefault    bool          `json:"globalDefault"`
			Description      string        `json:"description"`
			PreemptionPolicy string        `json:"preemptionPolicy"`
		} `json:"value"`
	}
	var source struct {
		Manifest dynamic `json:"manifest"`
		Object   dynamic `json:"object"`
	}
	if err := json.Unmarshal(state, &source); err != nil {
		return movedPriorityClass{}, err
	}
	manifest := source.Manifest.Value
	if manifest.Kind != "PriorityClass" || manifest.APIVersion != "scheduling.k8s.io/v1" {
		return movedPriorityClass{}, fmt.Errorf("its manifest is a %s of %s, not a PriorityClass of scheduling.k8s.io/v1", manifest.Kind, manifest.APIVersion)
	}
	if manifest.Metadata.Name == "" {
		return movedPriorityClass{}, fmt.Errorf("its manifest has no name")
	}
	metadata := manifest.Metadata
	metadata.UID = source.Object.Value.Metadata.UID
	return movedPriorityClass{
		Metadata:         metadata,
		Value:            manifest.Value,
		GlobalDefault:    manifest.GlobalDefault,
		Description:      manifest.Description,
		PreemptionPolicy: manifest.PreemptionPolicy,
	}, nil
}

// model is the state of the class as ours; the refresh that follows reads the rest.
func (c movedPriorityClass) model() priorityClassModel {
	text := func(s string) types.String {
		if s == "" {
			return types.StringNull()
		}
		return types.StringValue(s)
	}
	entries := func(m map[string]string) types.Map {
		if len(m) == 0 {
			return types.MapNull(types.StringType)
		}
		values := map[string]attr.Value{}
		for key, value := range m {
			values[key] = types.StringValue(value)
		}
		return types.MapValueMust(types.StringType, values) // strings only
	}
	policy := c.PreemptionPolicy
	if policy == "" {
		policy = string(corev1.PreemptLowerPriority)
	}
	return priorityClassModel{
		Name:             types.StringValue(c.Metadata.Name),
		Value:            types.Int64Value(c.Value),
		GlobalDefault:    types.BoolValue(c.GlobalDefault),
		PreemptionPolicy: types.StringValue(policy),
		Description:      text(c.Description),
		Labels:           entries(c.Metadata.Labels),
		Annotations:      entries(c.Metadata.Annotations),
		UID:              text(c.Metadata.UID),
	}
}
