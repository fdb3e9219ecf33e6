package validation_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/crd"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation/validationtest"
)

func TestWhatIsWrongIsFoundWhereItIs(t *testing.T) {
	for _, c := range validationtest.Cases() {
		t.Run(c.Behaviour, func(t *testing.T) {
			errs := validationtest.Validate(c.Object, c.Existing)
			var got []string
			for _, err := range errs {
				got = append(got, strings.TrimSpace(err.Field+" "+err.Origin))
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(c.Wrong))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s\n%v", diff, errs.ToAggregate())
			}
			for _, err := range errs {
				t.Log(err)
			}
		})
	}
}

func TestTheCasesChangeEachImmutableFieldAndNoOtherIsImmutable(t *testing.T) {
	fields, err := crd.ImmutableFields()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, field := range fields {
		want = append(want, field.Kind+" "+field.Path)
	}
	var got []string
	for _, c := range validationtest.Cases() {
		if c.Existing == nil {
			continue
		}
		for _, err := range validationtest.Validate(c.Object, c.Existing) {
			if strings.HasPrefix(err.Detail, "is immutable") {
				got = append(got, reflect.TypeOf(c.Object).Elem().Name()+" "+err.Field)
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("immutable by the CRDs and by the validation (-CRDs +validation):\n%s", diff)
	}
}
