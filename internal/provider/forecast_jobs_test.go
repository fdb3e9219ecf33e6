package provider

import (
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestAnUnknownAttributeThatAForecastDependsOnIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		resource   resource.Resource
		except     []string
		dependsOn  []string
		independOf []string
	}{
		"elastic_training_job": {
			newTrainingJob(), trainingJobNotForecast,
			[]string{"annotations", "labels", "master", "name", "namespace", "queue", "service_account_name", "volumes", "workers"},
			[]string{"image", "model", "training"},
		},
		"elastic_task": {
			newTask("")(), taskNotForecast,
			[]string{"accelerators", "cpus", "init_containers", "labels", "security_context", "volumes", "yaml"},
			[]string{"env", "image", "run", "secrets"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var described resource.SchemaResponse
			c.resource.Schema(t.Context(), resource.SchemaRequest{}, &described)
			object := described.Schema.Type().TerraformType(t.Context()).(tftypes.Object)
			plan := func(unknown string) tftypes.Value {
				values := map[string]tftypes.Value{}
				for attribute, kind := range object.AttributeTypes {
					var value any
					if attribute == unknown {
						value = tftypes.UnknownValue
					}
					values[attribute] = tftypes.NewValue(kind, value)
				}
				return tftypes.NewValue(object, values)
			}
			for _, attribute := range c.except {
				if object.AttributeTypes[attribute] == nil && !slices.Contains(jobNotForecast, attribute) {
					t.Errorf("%s has no attribute %s", name, attribute)
				}
			}
			for _, attribute := range c.dependsOn {
				if got, want := unknownOf(plan(attribute), c.except), "its "+attribute+" is not known until apply"; got != want {
					t.Errorf("%q, want %q", got, want)
				}
			}
			for _, attribute := range c.independOf {
				if got := unknownOf(plan(attribute), c.except); got != "" {
					t.Errorf("%s: %q", attribute, got)
				}
			}
			for attribute, described := range described.Schema.Attributes {
				if described.IsComputed() && !described.IsOptional() && !slices.Contains(c.except, attribute) {
					t.Errorf("%s is unknown in every plan of a new object: list it", attribute)
				}
			}
		})
	}
}
