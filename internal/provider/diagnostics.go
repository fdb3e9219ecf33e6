package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	if isOfNamespace(err) {
		diags.AddAttributeError(path.Root("namespace"), summary, "namespace: "+detail+" Create it first. "+dependOnNamespace+".")
		return
	}
	if said := refusalOf(err); said != nil {
		detail = s.inAttributes(detail)
		if at, ok := s.attributeOfRefusal(said); ok {
			diags.AddAttributeError(at, summary, detail)
			return
		}
	}
	diags.AddError(summary, detail)
}

// refusalOf is what the API server says of an object that it, a policy or a webhook refuses; nil for other errors.
func refusalOf(err error) *metav1.Status {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) && !denied.MatchString(err.Error()) {
		return nil
	}
	said := status.Status()
	return &said
}

// denied matches what a webhook or a policy says, whichever reason a policy gives.
var denied = regexp.MustCompile(`denied (the )?request`)

// isOfNamespace holds when the namespace of an object is not there.
func isOfNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// fieldPath matches the path of a field in a message of the API server or a webhook.
var fieldPath = regexp.MustCompile(`\b(?:spec|metadata)(?:\.\w+|\[[^]]*])+`)

// attributeOfRefusal is the attribute of the first field that a refusal names. The provider's own rules are Kueue's of one
// version; a cluster may have others.
func (s subject) attributeOfRefusal(said *metav1.Status) (path.Path, bool) {
	var fields []string
	if said.Details != nil {
		for _, cause := range said.Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	for _, field := range append(fields, fieldPath.FindAllString(said.Message, -1)...) {
		if at, ok := s.attributeOfWrong(field); ok {
			return at, true
		}
	}
	return apifield.Root(s.attributes, said.Message) // a rule about all of an object names its fields in a sentence
}

// inAttributes is a message in the words of the configuration.
func (s subject) inAttributes(message string) string {
	message = fieldPath.ReplaceAllStringFunc(message, func(field string) string {
		if at, ok := s.attributeOfWrong(field); ok {
			return at.String()
		}
		return field
	})
	return apifield.InAttributes(s.attributes, message)
}

// attributeOfWrong is the attribute of a field with an error. An error about metadata names no keys.
func (s subject) attributeOfWrong(field string) (path.Path, bool) {
	if of, ok := strings.CutPrefix(field, "metadata."); ok {
		of, _, _ = strings.Cut(of, "[")
		return path.Root(apifield.Snake(of)), !isField(apifield.Snake(of))
	}
	return s.attributeOf("." + field)
}

// attributeOf finds the attribute behind a managed field: ".metadata.labels.team" is labels["team"], ".globalDefault"
// is global_default, ".spec.preemption.withinClusterQueue" is preemption.within_cluster_queue.
func (s subject) attributeOf(field string) (path.Path, bool) {
	if strings.HasPrefix(field, ".metadata.") {
		return metadataAttribute(field)
	}
	return apifield.Path(s.attributes, strings.TrimPrefix(field, ".spec"))
}
