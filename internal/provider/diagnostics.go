package provider

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// subject is the resource that an error is about.
type subject struct {
	resourceType string   // "elastic_priority_class"
	importID     string   // what terraform import takes
	attributes   []string // the schema's top-level names, to point at the one in question
}

// explain adds an error of the cluster to the diagnostics, in words for who wrote the configuration: a conflict points
// at the attribute, and an object that exists comes with the way to import it.
func (s subject) explain(diags *diag.Diagnostics, err error) {
	if err == nil {
		return
	}
	summary, detail := cluster.Explain(err)
	var exists *cluster.AlreadyExistsError
	if errors.As(err, &exists) {
		detail += fmt.Sprintf("\n\nTo import it, with ADDRESS for the name of the resource block:\n\n  terraform import %s.ADDRESS %s\n\n"+
			"or in the configuration:\n\n  import {\n    to = %s.ADDRESS\n    id = %q\n  }", s.resourceType, s.importID, s.resourceType, s.importID)
	}
	var conflict *cluster.ConflictError
	if errors.As(err, &conflict) {
		for _, c := range conflict.Conflicts {
			if attribute, ok := s.attributeOf(c.Field); ok {
				diags.AddAttributeError(attribute, summary, detail)
				return
			}
		}
	}
	diags.AddError(summary, detail)
}

// attributeOf finds the attribute behind a managed field: ".metadata.labels.team" is labels["team"], ".globalDefault" is
// global_default. Fields below spec are found by their first name.
func (s subject) attributeOf(field string) (path.Path, bool) {
	field = strings.TrimPrefix(strings.TrimPrefix(field, ".spec"), ".")
	if key, ok := strings.CutPrefix(field, "metadata."); ok {
		for _, name := range []string{"labels", "annotations"} {
			if entry, ok := strings.CutPrefix(key, name+"."); ok {
				return path.Root(name).AtMapKey(entry), true
			}
		}
		return path.Empty(), false
	}
	name, _, _ := strings.Cut(field, ".")
	name, _, _ = strings.Cut(name, "[")
	for _, attribute := range s.attributes {
		if attribute == snakeCase(name) {
			return path.Root(attribute), true
		}
	}
	return path.Empty(), false
}

// snakeCase is global_default for globalDefault.
func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
