package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

func TestAMasterIsHeldToAHigherPriorityThanItsWorkers(t *testing.T) {
	classes := map[string]plannedAttributes{"low": {value: 100}, "low-too": {value: 100}, "high": {value: 1000}}
	byDefault := maps.Clone(classes)
	byDefault["default"] = plannedAttributes{value: 500, isDefault: true}
	byDefault["default-too"] = plannedAttributes{value: 600, isDefault: true}
	for behaviour, c := range map[string]struct {
		master, workers string
		inCluster       map[string]plannedAttributes
		check           string
		want            diag.Severity // SeverityInvalid for nothing
	}{
		"a higher one is fine":             {"high", "low", classes, "error", diag.SeverityInvalid},
		"a lower one is a warning":         {"low", "high", classes, "warn", diag.SeverityWarning},
		"an equal one too":                 {"low", "low-too", classes, "warn", diag.SeverityWarning},
		"and the same":                     {"high", "high", classes, "warn", diag.SeverityWarning},
		"or an error":                      {"high", "high", classes, "error", diag.SeverityError},
		"or nothing":                       {"low", "high", classes, "off", diag.SeverityInvalid},
		"a missing one counts as 0":        {"", "low", classes, "warn", diag.SeverityWarning},
		"a missing one of the workers too": {"low", "", classes, "error", diag.SeverityInvalid},
		"a missing one is the lowest of the cluster's default": {"", "low", byDefault, "error", diag.SeverityInvalid},
		"which may be too low":                                 {"", "high", byDefault, "error", diag.SeverityError},
		"without any class there is no warning":                {"", "", classes, "warn", diag.SeverityInvalid},
		"but an error, where it is asked for":                  {"", "", classes, "error", diag.SeverityError},
		"an unknown class is not checked":                      {"elsewhere", "low", classes, "error", diag.SeverityInvalid},
		"a missing one is not, where the cluster is silent":    {"", "low", nil, "error", diag.SeverityInvalid},
	} {
		t.Run(behaviour, func(t *testing.T) {
			r := &trainingJob{jobResource{connection: newConnection(cluster.Config{}, nil, forecastConfig{mode: forecastOff})}}
			listed := &catalogue{attributes: c.inCluster}
			if c.inCluster == nil {
				listed.err = errSilentCluster
				r.connection.addPlanned(reference{kind: aPriorityClass, name: "low"}, classes["low"])
			}
			listed.once.Do(func() {}) // it has answered
			r.connection.planned.catalogues[reference{kind: aPriorityClass}] = listed
			var d trainingjob.Definition
			d.Master.PriorityClassName, d.Workers.PriorityClassName = c.master, c.workers
			diags := r.checkMasterPriority(t.Context(), d, c.check)
			switch {
			case c.want == diag.SeverityInvalid && len(diags) > 0, c.want != diag.SeverityInvalid && (len(diags) != 1 || diags[0].Severity() != c.want):
				t.Errorf("got %v, want %s", diags, c.want)
			case len(diags) == 1 && !strings.Contains(diags[0].Detail(), "master_priority_check"):
				t.Errorf("no remedy: %s", diags[0].Detail())
			}
		})
	}
}

func TestAPlannedDefaultClassIsThatOfPodsWithoutAClass(t *testing.T) {
	c := newConnection(cluster.Config{}, nil, forecastConfig{mode: forecastOff})
	listed := &catalogue{attributes: map[string]plannedAttributes{}}
	listed.once.Do(func() {})
	c.planned.catalogues[reference{kind: aPriorityClass}] = listed
	c.addPlanned(reference{kind: aPriorityClass, name: "planned"}, plannedAttributes{value: 700, isDefault: true})
	if value, known := c.podPriority(t.Context(), ""); !known || value != 700 {
		t.Errorf("%d, %v", value, known)
	}
}
