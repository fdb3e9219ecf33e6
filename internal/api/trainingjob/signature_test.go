package trainingjob

import (
	"errors"
	"maps"
	"testing"
)

func TestAConfigMapThatSomebodyElseHasChangedIsNotVerified(t *testing.T) {
	o, err := Render(tutorial(), credentials())
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(o.ConfigMap, credentials()); err != nil {
		t.Errorf("as it was made: %v", err)
	}
	changed := func(key, value string) func(map[string]string) {
		return func(data map[string]string) { data[key] = value }
	}
	for name, change := range map[string]func(map[string]string){
		"the workers":                     changed(WorkersKey, o.ConfigMap.Data[WorkersKey]+" "),
		"the job":                         changed(JobKey, "{}"),
		"the model":                       changed(ModelKey, "import os"),
		"the settings":                    changed(DefinitionKey, "{}"),
		"the signature":                   changed(SignatureKey, "00"),
		"the signature, with another key": func(data map[string]string) { data[SignatureKey] = Sign(data, Credentials{}) },
		"where one text ends": func(data map[string]string) {
			data[ModelKey], data[WorkersKey] = data[WorkersKey]+data[ModelKey], ""
		},
		"that there is a signature": func(data map[string]string) { delete(data, SignatureKey) },
	} {
		forged := o.ConfigMap.DeepCopy()
		forged.Data = maps.Clone(forged.Data)
		change(forged.Data)
		if is := (*ForgedError)(nil); !errors.As(Verify(forged, credentials()), &is) {
			t.Errorf("somebody changed %s, and it was not noticed", name)
		}
	}
}
