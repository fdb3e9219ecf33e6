package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

func TestAttributeOfAManagedField(t *testing.T) {
	s := subject{attributes: map[string]schema.Attribute{
		"global_default": schema.BoolAttribute{}, "cluster_queue": schema.StringAttribute{},
		"preemption": schema.SingleNestedAttribute{Attributes: map[string]schema.Attribute{"within_cluster_queue": schema.StringAttribute{}}},
	}}
	for field, want := range map[string]path.Path{
		".metadata.labels.team":                     path.Root("labels").AtMapKey("team"),
		".metadata.labels.app.kubernetes.io/name":   path.Root("labels").AtMapKey("app.kubernetes.io/name"),
		".metadata.annotations.example.com/a":       path.Root("annotations").AtMapKey("example.com/a"),
		".globalDefault":                            path.Root("global_default"),
		".spec.preemption.withinClusterQueue":       path.Root("preemption").AtName("within_cluster_queue"),
		".spec.clusterQueue":                        path.Root("cluster_queue"),
		".spec.clusterQueue[name=\"x\"].anything.y": path.Root("cluster_queue"),
	} {
		if got, ok := s.attributeOf(field); !ok || !got.Equal(want) {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	for _, field := range []string{".metadata.finalizers", ".spec.other", "", "."} {
		if got, ok := s.attributeOf(field); ok {
			t.Errorf("%s is %s", field, got)
		}
	}
}

func TestExplainPointsAndOffers(t *testing.T) {
	s := subject{resourceType: "elastic_priority_class", importID: "high", attributes: map[string]schema.Attribute{"description": schema.StringAttribute{}}}
	around := func(err error) error {
		return fmt.Errorf("around: %w", &cluster.Error{Verb: "update", Ref: cluster.Ref{Kind: "PriorityClass", Name: "high"}, Err: err})
	}
	t.Run("a conflict names every attribute", func(t *testing.T) {
		var diags diag.Diagnostics
		conflict := func(attribute string) drift.Conflict {
			return drift.Conflict{Change: drift.Change{Path: path.Root(attribute)}, Ignore: attribute}
		}
		s.explain(&diags, around(&drift.ConflictError{
			Ref: cluster.Ref{Kind: "PriorityClass", Name: "high"}, Conflicts: []drift.Conflict{conflict("description"), conflict("value")},
		}))
		located, ok := diags[0].(interface{ Path() path.Path })
		if !ok || !located.Path().Equal(path.Root("description")) || !strings.Contains(diags[0].Detail(), "ignore_changes = [description, value]") {
			t.Errorf("got %v", diags)
		}
	})
	t.Run("what exists comes with its import", func(t *testing.T) {
		var diags diag.Diagnostics
		s.explain(&diags, around(&cluster.AlreadyExistsError{}))
		if !strings.Contains(diags[0].Detail(), "terraform import elastic_priority_class.ADDRESS high") {
			t.Errorf("got %v", diags)
		}
	})
	t.Run("a missing namespace is the attribute's", func(t *testing.T) {
		var diags diag.Diagnostics
		s.explain(&diags, around(apierrors.NewNotFound(apischema.GroupResource{Resource: "namespaces"}, "team-a")))
		located, ok := diags[0].(interface{ Path() path.Path })
		if !ok || !located.Path().Equal(path.Root("namespace")) || !strings.Contains(diags[0].Detail(), "make the resource depend on it") {
			t.Errorf("got %v", diags)
		}
	})
	t.Run("a webhook's refusal is in the words of the configuration", func(t *testing.T) {
		var diags diag.Diagnostics
		refused := apierrors.NewForbidden(apischema.GroupResource{}, "", nil)
		refused.ErrStatus.Message = `admission webhook "v.example.com" denied the request: [spec.description: Invalid value: "x", spec.other: Forbidden]`
		s.explain(&diags, around(refused))
		located, ok := diags[0].(interface{ Path() path.Path })
		if !ok || !located.Path().Equal(path.Root("description")) || !strings.Contains(diags[0].Detail(), `[description: Invalid value: "x", spec.other: Forbidden]`) {
			t.Errorf("got %v", diags)
		}
	})
	t.Run("so is a policy's, whichever reason it gives", func(t *testing.T) {
		var diags diag.Diagnostics
		refused := apierrors.NewForbidden(apischema.GroupResource{}, "", nil)
		refused.ErrStatus.Message = `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: spec.description is missing`
		s.explain(&diags, around(refused))
		located, ok := diags[0].(interface{ Path() path.Path })
		if !ok || !located.Path().Equal(path.Root("description")) {
			t.Errorf("got %v", diags)
		}
	})
	t.Run("no error is no diagnostic", func(t *testing.T) {
		var diags diag.Diagnostics
		s.explain(&diags, nil)
		if len(diags) != 0 {
			t.Errorf("got %v", diags)
		}
	})
}
