package validation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/kueue/validation/validationtesting"
)

func TestWhatIsWrongIsFoundWhereItIs(t *testing.T) {
	for _, c := range validationtesting.Cases() {
		t.Run(c.Behaviour, func(t *testing.T) {
			errs := validationtesting.Validate(c.Object, c.Existing)
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
