package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

// observationKey is the key of the last refresh's observation in a resource's private data.
const observationKey = "observation"

// privateData is the data that Terraform keeps with a state and passes to plans and applies; nil if there is none.
type privateData interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// observationIn is the observation of the last refresh; empty if an earlier release of the provider made it.
func observationIn(ctx context.Context, private privateData) drift.Observation {
	var o drift.Observation
	if text, diags := private.GetKey(ctx, observationKey); !diags.HasError() && len(text) > 0 {
		_ = json.Unmarshal(text, &o) // damaged data count as empty
	}
	return o
}

func keepObservation(ctx context.Context, private privateData, o drift.Observation) diag.Diagnostics {
	text, err := json.Marshal(o)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Cannot save field owners", err.Error())}
	}
	return private.SetKey(ctx, observationKey, text)
}

// observationOf is the last writer of each attribute of an object, and the labels and annotations that the given state
// lacks. attributesOf are the attributes of a field.
func observationOf(client *cluster.Client, object metav1.Object, state values, attributesOf func(field string) []path.Path) (drift.Observation, error) {
	written, err := cluster.WrittenByOthers(client, object)
	o := drift.Observation{Others: map[string]string{}}
	for _, w := range written {
		for _, attribute := range attributesOf(w.Field) {
			o.Writers = append(o.Writers, drift.Writer{Attribute: attribute.String(), Manager: w.Manager, Time: w.Time})
		}
	}
	for name, entries := range map[string]map[string]string{"labels": object.GetLabels(), "annotations": object.GetAnnotations()} {
		managed := drift.Entries(state[name])
		for key, value := range entries {
			if _, ok := managed[key]; !ok {
				o.Others[path.Root(name).AtMapKey(key).String()] = drift.Digest(value)
			}
		}
	}
	return o, err
}

// warnOfDrift names the planned changes that set back what others have written.
func warnOfDrift(diags *diag.Diagnostics, of string, changes []drift.Change, o drift.Observation, config values, consequence func(drift.Change) string) {
	if summary, detail, ok := drift.Warning(of, changes, o, config, consequence); ok {
		diags.AddWarning(summary, detail)
	}
}

// metadataAttribute is the attribute behind a field of metadata: ".metadata.labels.team" is labels["team"].
func metadataAttribute(field string) (path.Path, bool) {
	if field == ".metadata.generateName" {
		return path.Root("generate_name"), true
	}
	for _, name := range []string{"labels", "annotations"} {
		if key, ok := strings.CutPrefix(field, ".metadata."+name+"."); ok {
			return path.Root(name).AtMapKey(key), true
		}
	}
	return path.Empty(), false
}

// cannotTellWriters is the error of managedFields that cannot be read.
func cannotTellWriters(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Cannot read field owners", fmt.Sprintf("%v.", err))
}
