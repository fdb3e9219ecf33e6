package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/versions"
)

// MoveState converts state of the hashicorp/kubernetes provider, for a moved block (Terraform 1.8). It does not change
// the object in the cluster; the first apply takes ownership of its fields.
func (o *object[T]) MoveState(context.Context) []resource.StateMover {
	return []resource.StateMover{{StateMover: o.move}}
}

func (o *object[T]) move(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
	if !strings.HasSuffix(req.SourceProviderAddress, "/hashicorp/kubernetes") || req.SourceRawState == nil {
		return
	}
	read, ok := o.moves[req.SourceTypeName]
	switch {
	case req.SourceTypeName == "kubernetes_manifest":
		read = o.movedFromManifest
	case !ok:
		return
	}
	object, err := read(req.SourceRawState.JSON)
	if err == nil && object.GetName() == "" {
		err = fmt.Errorf("it has no metadata with a name")
	}
	v := values{}
	if err == nil {
		err = o.flatten(ctx, v, object)
	}
	if err != nil {
		resp.Diagnostics.AddError("Cannot move the state", fmt.Sprintf("State of %s: %v.", req.SourceTypeName, err))
		return
	}
	v.setText("name", object.GetName())
	v.setTextOrNull("generate_name", object.GetGenerateName())
	if o.namespaced {
		v.setText("namespace", object.GetNamespace())
	}
	if uid := object.GetUID(); uid != "" {
		v.setText("uid", string(uid))
	}
	for field, texts := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		if len(texts) > 0 {
			v[field] = textMap(texts)
		}
	}
	o.setDefaults(v)
	resp.TargetState.Raw = o.raw(ctx, v)
	resp.Diagnostics.Append(o.setIdentity(ctx, v, resp.TargetIdentity)...)
}

// movedFromManifest reads the state of kubernetes_manifest, whose attributes are dynamic: a value beside its type. The
// manifest is the configuration, the object the API server's answer.
func (k *kind[T]) movedFromManifest(state []byte) (T, error) {
	object := k.empty()
	var source struct {
		Manifest struct{ Value json.RawMessage }
		Object   struct {
			Value struct{ Metadata movedMetadata }
		}
	}
	if err := json.Unmarshal(state, &source); err != nil {
		return object, err
	}
	manifest := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(source.Manifest.Value, &manifest.Object); err != nil {
		return object, fmt.Errorf("its manifest: %w", err)
	}
	group, _, _ := strings.Cut(k.apiVersion, "/")
	isKueues := group == kueue.SchemeGroupVersion.Group && manifest.GroupVersionKind().Group == group
	if manifest.GetKind() != k.title || manifest.GetAPIVersion() != k.apiVersion && !isKueues {
		return object, fmt.Errorf("the source manifest has kind %s (%s); expected %s (%s). Change and apply the manifest before the move, or import the object",
			manifest.GetKind(), manifest.GetAPIVersion(), k.title, k.apiVersion)
	}
	read := func(manifest *unstructured.Unstructured, object any) error {
		return json.Unmarshal(source.Manifest.Value, object)
	}
	if isKueues {
		read = versions.Decode
	}
	if err := read(manifest, object); err != nil {
		return object, fmt.Errorf("its manifest: %w", err)
	}
	object.SetUID(source.Object.Value.Metadata.UID)
	return object, nil
}
