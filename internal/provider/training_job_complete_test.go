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
	said := map[string]bool{}
	for seed := range 300 {
		say(reflect.ValueOf(rapid.Custom(drawDefinition).Example(seed)), "", said)
	}
	for _, field := range slices.Sorted(maps.Keys(said)) {
		if !said[field] && elsewhere[field] == "" {
			t.Errorf("drawDefinition never sets %s", field)
		}
	}
	for field, why := range elsewhere {
		if drawn, known := said[field]; drawn || !known {
			t.Errorf("%s, which %s, is drawn or is no field", field, why)
		}
	}
}

// say notes for every field of package trainingjob's types whether a value sets it; an absent value sets none.
func say(v reflect.Value, path string, said map[string]bool) {
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
			say(v.Field(i), below, said)
		}
	case t.Kind() == reflect.Pointer && ours(t.Elem()):
		if v.IsNil() {
			v = reflect.New(t.Elem())
		}
		say(v.Elem(), path, said)
	case t.Kind() == reflect.Slice && ours(t.Elem()):
		say(reflect.Zero(t.Elem()), path, said)
		for i := range v.Len() {
			say(v.Index(i), path, said)
		}
	default:
		said[path] = said[path] || !v.IsZero()
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
