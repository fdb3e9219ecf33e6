package provider

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

type securityContextModel struct {
	RunAsUser                types.Int64  `tfsdk:"run_as_user"`
	RunAsGroup               types.Int64  `tfsdk:"run_as_group"`
	RunAsNonRoot             types.Bool   `tfsdk:"run_as_non_root"`
	FSGroup                  types.Int64  `tfsdk:"fs_group"`
	SupplementalGroups       types.Set    `tfsdk:"supplemental_groups"`
	SeccompProfile           types.Object `tfsdk:"seccomp_profile"`
	ReadOnlyRootFilesystem   types.Bool   `tfsdk:"read_only_root_filesystem"`
	AllowPrivilegeEscalation types.Bool   `tfsdk:"allow_privilege_escalation"`
	Capabilities             types.Object `tfsdk:"capabilities"`
}

type seccompProfileModel struct {
	Type             types.String `tfsdk:"type"`
	LocalhostProfile types.String `tfsdk:"localhost_profile"`
}

type capabilitiesModel struct {
	Add  types.Set `tfsdk:"add"`
	Drop types.Set `tfsdk:"drop"`
}

type initContainerModel struct {
	Name         types.String `tfsdk:"name"`
	Image        types.String `tfsdk:"image"`
	Command      types.List   `tfsdk:"command"`
	Args         types.List   `tfsdk:"args"`
	Env          types.Map    `tfsdk:"env"`
	VolumeMounts types.List   `tfsdk:"volume_mounts"`
	Resources    types.Object `tfsdk:"resources"`
}

type volumeMountModel struct {
	Name      types.String `tfsdk:"name"`
	MountPath types.String `tfsdk:"mount_path"`
	SubPath   types.String `tfsdk:"sub_path"`
	ReadOnly  types.Bool   `tfsdk:"read_only"`
}

// securityContext is nil if it is not set: {} means the same as null.
func (r *expander) securityContext(object types.Object) *trainingjob.SecurityContext {
	m := into[securityContextModel](r, object)
	s := trainingjob.SecurityContext{
		RunAsUser: integerOrNil(m.RunAsUser), RunAsGroup: integerOrNil(m.RunAsGroup), RunAsNonRoot: boolOrNil(m.RunAsNonRoot), FSGroup: integerOrNil(m.FSGroup),
		ReadOnlyRootFilesystem: boolOrNil(m.ReadOnlyRootFilesystem), AllowPrivilegeEscalation: boolOrNil(m.AllowPrivilegeEscalation),
	}
	said := s.RunAsUser != nil || s.RunAsGroup != nil || s.RunAsNonRoot != nil || s.FSGroup != nil || s.ReadOnlyRootFilesystem != nil || s.AllowPrivilegeEscalation != nil
	for _, group := range members[types.Int64](r, m.SupplementalGroups) {
		s.SupplementalGroups = append(s.SupplementalGroups, group.ValueInt64())
	}
	slices.Sort(s.SupplementalGroups)
	if p := into[seccompProfileModel](r, m.SeccompProfile); p.Type.ValueString() != "" {
		s.SeccompProfile = &trainingjob.SeccompProfile{Type: corev1.SeccompProfileType(p.Type.ValueString()), LocalhostProfile: p.LocalhostProfile.ValueString()}
	}
	given := into[capabilitiesModel](r, m.Capabilities)
	if c := (trainingjob.Capabilities{Add: r.capabilities(given.Add), Drop: r.capabilities(given.Drop)}); len(c.Add)+len(c.Drop) > 0 {
		s.Capabilities = &c
	}
	if !said && len(s.SupplementalGroups) == 0 && s.SeccompProfile == nil && s.Capabilities == nil {
		return nil
	}
	return &s
}

func (r *expander) capabilities(set types.Set) []corev1.Capability {
	var names []corev1.Capability
	for _, name := range members[types.String](r, set) {
		names = append(names, corev1.Capability(name.ValueString()))
	}
	slices.Sort(names)
	return names
}

func (r *expander) initContainers(at path.Path, list types.List) []trainingjob.InitContainer {
	var containers []trainingjob.InitContainer
	for i, m := range elements[initContainerModel](r, list) {
		c := trainingjob.InitContainer{
			Name: m.Name.ValueString(), Image: m.Image.ValueString(), Command: r.words(m.Command), Args: r.words(m.Args), Env: r.texts(m.Env),
			Resources: r.resources(at.AtListIndex(i), m.Resources),
		}
		for _, v := range elements[volumeMountModel](r, m.VolumeMounts) {
			c.VolumeMounts = append(c.VolumeMounts, trainingjob.VolumeMount{
				Name: v.Name.ValueString(), MountPath: v.MountPath.ValueString(), SubPath: v.SubPath.ValueString(), ReadOnly: v.ReadOnly.ValueBool(),
			})
		}
		containers = append(containers, c)
	}
	return containers
}

// members are a set's; those of a null or unknown set are none.
func members[T any](r *expander, set types.Set) []T {
	var values []T
	if !set.IsNull() && !set.IsUnknown() {
		r.diags.Append(set.ElementsAs(r.ctx, &values, false)...)
	}
	return values
}

// integerOrNil and boolOrNil are nil for null and unknown.
func integerOrNil(value types.Int64) *int64 {
	if value.IsUnknown() {
		return nil
	}
	return value.ValueInt64Pointer()
}

func boolOrNil(value types.Bool) *bool {
	if value.IsUnknown() {
		return nil
	}
	return value.ValueBoolPointer()
}

func (w *flattener) securityContext(t attr.Type, s *trainingjob.SecurityContext) types.Object {
	attributes := attributesOf(t)
	if s == nil {
		return types.ObjectNull(attributes)
	}
	m := securityContextModel{
		RunAsUser: types.Int64PointerValue(s.RunAsUser), RunAsGroup: types.Int64PointerValue(s.RunAsGroup), RunAsNonRoot: types.BoolPointerValue(s.RunAsNonRoot),
		FSGroup: types.Int64PointerValue(s.FSGroup), SupplementalGroups: w.set(types.Int64Type, s.SupplementalGroups, len(s.SupplementalGroups)),
		SeccompProfile: types.ObjectNull(attributesOf(attributes["seccomp_profile"])), Capabilities: types.ObjectNull(attributesOf(attributes["capabilities"])),
		ReadOnlyRootFilesystem: types.BoolPointerValue(s.ReadOnlyRootFilesystem), AllowPrivilegeEscalation: types.BoolPointerValue(s.AllowPrivilegeEscalation),
	}
	if p := s.SeccompProfile; p != nil {
		m.SeccompProfile = w.objectOf(attributesOf(attributes["seccomp_profile"]), seccompProfileModel{
			Type: types.StringValue(string(p.Type)), LocalhostProfile: textOrNull(p.LocalhostProfile),
		})
	}
	if c := s.Capabilities; c != nil {
		m.Capabilities = w.objectOf(attributesOf(attributes["capabilities"]), capabilitiesModel{
			Add: w.set(types.StringType, c.Add, len(c.Add)), Drop: w.set(types.StringType, c.Drop, len(c.Drop)),
		})
	}
	return w.objectOf(attributes, m)
}

func (w *flattener) initContainers(t attr.Type, containers []trainingjob.InitContainer) types.List {
	attributes := attributesOf(t)
	var models []initContainerModel
	for _, c := range containers {
		m := initContainerModel{
			Name: types.StringValue(c.Name), Image: textOrNull(c.Image), Env: w.texts(c.Env),
			Command: w.list(types.StringType, c.Command, len(c.Command)), Args: w.list(types.StringType, c.Args, len(c.Args)),
			Resources: types.ObjectNull(attributesOf(attributes["resources"])),
		}
		var mounts []volumeMountModel
		for _, v := range c.VolumeMounts {
			mount := volumeMountModel{Name: types.StringValue(v.Name), MountPath: types.StringValue(v.MountPath), SubPath: textOrNull(v.SubPath), ReadOnly: types.BoolNull()}
			if v.ReadOnly {
				mount.ReadOnly = types.BoolValue(true)
			}
			mounts = append(mounts, mount)
		}
		m.VolumeMounts = w.list(types.ObjectType{AttrTypes: attributesOf(attributes["volume_mounts"])}, mounts, len(mounts))
		if c.Resources != nil {
			m.Resources = w.objectOf(attributesOf(attributes["resources"]), resourcesModel{Requests: w.amounts(c.Resources.Requests), Limits: w.amounts(c.Resources.Limits)})
		}
		models = append(models, m)
	}
	return w.list(types.ObjectType{AttrTypes: attributes}, models, len(models))
}

func (w *flattener) set(element attr.Type, values any, length int) types.Set {
	if length == 0 {
		return types.SetNull(element)
	}
	set, diags := types.SetValueFrom(w.ctx, element, values)
	w.diags.Append(diags...)
	return set
}
