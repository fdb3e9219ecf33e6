package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

// explain adds an error of the cluster to the diagnostics.
func explain(diags *diag.Diagnostics, err error) {
	summary, detail := cluster.Explain(err)
	diags.AddError(summary, detail)
}

// collectWarnings returns a context for the requests of an operation, and what adds to the diagnostics, at its end, what
// the API server has warned of in its answers to them.
func collectWarnings(ctx context.Context, diags *diag.Diagnostics) (context.Context, func()) {
	ctx, warnings := cluster.CollectWarnings(ctx)
	return ctx, func() {
		for _, text := range warnings.Texts() {
			diags.AddWarning("Warning from the API server", text)
		}
	}
}

// subject is the resource that an error is about.
type subject struct {
	resourceType string                      // "elastic_priority_class"
	importID     string                      // what terraform import takes
	attributes   map[string]schema.Attribute // those that are fields of the API, to point at the one in question
}

// explain adds an error of the cluster to the diagnostics, in the terms of the configuration: a conflict names the
// attributes, and an existing object comes with the way to import it.
func (s subject) explain(diags *diag.Diagnostics, err error) {
	if err == nil {
		return
	}
	summary, detail := cluster.Explain(err)
	var exists *cluster.AlreadyExistsError
	if errors.As(err, &exists) && exists.Terminating == nil {
		detail += fmt.Sprintf("\n\nTo import it, with ADDRESS for the name of the resource block:\n\n  terraform import %s.ADDRESS %s\n\n"+
			"or in the configuration:\n\n  import {\n    to = %s.ADDRESS\n    id = %q\n  }", s.resourceType, s.importID, s.resourceType, s.importID)
	}
	var conflict *drift.ConflictError
	if errors.As(err, &conflict) {
		summary, detail = conflict.Explain()
		diags.AddAttributeError(conflict.Conflicts[0].Path, summary, detail)
		return
	}
	diags.AddError(summary, detail)
}

// attributeOf finds the attribute behind a managed field: ".metadata.labels.team" is labels["team"], ".globalDefault"
// is global_default, ".spec.preemption.withinClusterQueue" is preemption.within_cluster_queue.
func (s subject) attributeOf(field string) (path.Path, bool) {
	if strings.HasPrefix(field, ".metadata.") {
		return metadataAttribute(field)
	}
	return apifield.Path(s.attributes, strings.TrimPrefix(field, ".spec"))
}
