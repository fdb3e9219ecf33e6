package provider

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// What drawDefinition never draws proves nothing about reading, replacing and writing it: a field that is new fails
// here until it is drawn, and is then lost in TestTrainingJobModelAndDefinition wherever it was forgotten.
func TestTheDrawnDefinitionsSetEveryFieldOfAJob(t *testing.T) {
	elsewhere := map[string]string{
		"Job.Model.File": "is set when a job is rendered",
		"Labels":         "are read from the Job",
		"Annotations":    "are read from the Job",
	}
	fields := map[string]bool{}
	for seed := range 300 {
		recordFields(reflect.ValueOf(rapid.Custom(drawDefinition).Example(seed)), "", fields)
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if !fields[field] && elsewhere[field] == "" {
			t.Errorf("drawDefinition never sets %s", field)
		}
	}
	for field, why := range elsewhere {
		if drawn, known := fields[field]; drawn || !known {
			t.Errorf("%s, which %s, is drawn or is no field", field, why)
		}
	}
}

// say notes for every field of package trainingjob's types whether a value sets it; an absent value sets none.
func recordFields(v reflect.Value, path string, fields map[string]bool) {
	ours := func(t reflect.Type) bool {
		return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[trainingjob.Definition]().PkgPath()
	}
	switch t := v.Type(); {
	case ours(t):
		for i := range t.NumField() {
			below := strings.TrimPrefix(path+"."+t.Field(i).Name, ".")
			if t.Field(i).Anonymous {
				below = path
			}
			recordFields(v.Field(i), below, fields)
		}
	case t.Kind() == reflect.Pointer && ours(t.Elem()):
		if v.IsNil() {
			v = reflect.New(t.Elem())
		}
		recordFields(v.Elem(), path, fields)
	case t.Kind() == reflect.Slice && ours(t.Elem()):
		recordFields(reflect.Zero(t.Elem()), path, fields)
		for i := range v.Len() {
			recordFields(v.Index(i), path, fields)
		}
	default:
		fields[path] = fields[path] || !v.IsZero()
	}
}

func TestEveryPhaseIsDescribed(t *testing.T) {
	description := observedAttributes()["phase"].GetMarkdownDescription()
	for _, phase := range trainingjob.Phases() {
		if !strings.Contains(description, "`"+string(phase)+"`") {
			t.Errorf("%q does not explain %s", description, phase)
		}
	}
}
