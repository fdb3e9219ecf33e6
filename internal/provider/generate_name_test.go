package provider

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

func TestANameOfAPrefixIsKeptWhileItBeginsWithThePrefix(t *testing.T) {
	p := newPlanner(t)
	for resourceType, base := range baselines() {
		t.Run(resourceType, func(t *testing.T) {
			named := func(attributes map[string]any) map[string]any {
				config := maps.Clone(base.config)
				delete(config, "name")
				maps.Copy(config, attributes)
				return config
			}
			prefixed := named(map[string]any{"generate_name": "low-"})
			planned, _ := p.planned(t, resourceType, tftypes.NewValue(p.kinds[resourceType], nil), prefixed)
			if attributesIn(planned)["name"].IsKnown() {
				t.Errorf("a new object's name is planned: %s", attributesIn(planned)["name"])
			}
			state := p.applied(t, resourceType, prefixed)
			for name, c := range map[string]struct {
				attributes map[string]any
				replaces   string
				prefix     tftypes.Value // that is planned
			}{
				"the same prefix":                {map[string]any{"generate_name": "low-"}, "", str("low-")},
				"another one that fits":          {map[string]any{"generate_name": "lo"}, "", str("lo")},
				"one that does not":              {map[string]any{"generate_name": "high-"}, "generate_name", str("high-")},
				"the present name itself":        {map[string]any{"name": "low-bcdfg"}, "", str("low-")},
				"another name":                   {map[string]any{"name": "low"}, "name", tftypes.NewValue(tftypes.String, nil)},
				"a name, and another annotation": {map[string]any{"name": "low-bcdfg", "annotations": map[string]any{"a": "b"}}, "", str("low-")},
				"a prefix, and an annotation":    {map[string]any{"generate_name": "low-", "annotations": map[string]any{"a": "b"}}, "", str("low-")},
			} {
				planned, replaces := p.planned(t, resourceType, state, named(c.attributes))
				replaced := slices.ContainsFunc(replaces, func(at *tftypes.AttributePath) bool {
					return at.Equal(tftypes.NewAttributePath().WithAttributeName(c.replaces))
				})
				if c.replaces != "" && !replaced || c.replaces == "" && len(replaces) > 0 {
					t.Errorf("%s replaces by %v, want %q", name, replaces, c.replaces)
				}
				got := attributesIn(planned)
				if !got["generate_name"].Equal(c.prefix) {
					t.Errorf("%s plans the prefix %s", name, got["generate_name"])
				}
				if c.replaces == "" && !got["name"].Equal(str("low-bcdfg")) {
					t.Errorf("%s plans the name %s", name, got["name"])
				}
				if len(c.attributes) == 1 && c.prefix.Equal(str("low-")) && !planned.Equal(state) {
					t.Errorf("%s is a change: %s", name, differences(state, planned))
				}
			}
		})
	}
}

func TestExactlyOneOfNameAndPrefixIsConfigured(t *testing.T) {
	p := newPlanner(t)
	for resourceType, base := range baselines() {
		for what, attributes := range map[string]map[string]any{
			"neither":          {"name": nil},
			"both":             {"generate_name": "low-"},
			"an empty prefix":  {"name": nil, "generate_name": ""},
			"no prefix at all": {"name": nil, "generate_name": "Low-"},
			"one too long":     {"name": nil, "generate_name": strings.Repeat("a", 249)},
		} {
			config := maps.Clone(base.config)
			maps.Copy(config, attributes)
			validated, err := p.server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
				TypeName: resourceType, Config: encoded(t, value(t, p.kinds[resourceType], config)),
			})
			if err != nil {
				t.Fatal(err)
			}
			wrong := slices.DeleteFunc(validated.Diagnostics, func(d *tfprotov6.Diagnostic) bool { return d.Severity != tfprotov6.DiagnosticSeverityError })
			if len(wrong) != 1 || !regexp.MustCompile("^(generate_)?name$").MatchString(where(wrong[0])) {
				t.Errorf("%s: %s is refused by\n%s", resourceType, what, textOf(wrong))
			}
		}
	}
}

func textOf(diagnostics []*tfprotov6.Diagnostic) string {
	var b strings.Builder
	for _, d := range diagnostics {
		fmt.Fprintf(&b, "at %q: %s: %s\n", where(d), d.Summary, d.Detail)
	}
	return b.String()
}

func TestANameThatIsTakenIsTriedWithOtherLetters(t *testing.T) {
	taken, other := &cluster.AlreadyExistsError{}, errors.New("forbidden")
	for name, c := range map[string]struct {
		answers []error // to one creation after the other; nil from then on
		given   string
		want    int // creations
		err     error
	}{
		"at once":                             {nil, "", 1, nil},
		"after two that are taken":            {[]error{taken, taken}, "", 3, nil},
		"in vain, where all are":              {slices.Repeat([]error{taken}, 99), "", generatedAttempts, taken},
		"not where the error is another":      {[]error{other}, "", 1, other},
		"not where the whole name is given":   {[]error{taken}, "low", 1, taken},
		"not where the given name is not one": {nil, "low", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			got, err := createNamed(c.given, "low-", func(name string) (string, error) {
				names = append(names, name)
				if len(names) <= len(c.answers) {
					return "", fmt.Errorf("create: %w", c.answers[len(names)-1])
				}
				return name, nil
			})
			if len(names) != c.want || !errors.Is(err, c.err) {
				t.Fatalf("tried %q, %v", names, err)
			}
			if err == nil && got != names[len(names)-1] {
				t.Errorf("got %q of %q", got, names)
			}
			form := regexp.MustCompile(`^low-[a-z0-9]{5}$`)
			for i, tried := range names {
				if c.given == "" && !form.MatchString(tried) || c.given != "" && tried != c.given || slices.Contains(names[:i], tried) {
					t.Errorf("tried %q", names)
				}
			}
		})
	}
}

func TestPlannedJobsOfOnePrefixHaveDistinctNames(t *testing.T) {
	var names plannedNames
	first, second := names.next("low-"), names.next("low-")
	if first == second || !strings.HasPrefix(first, "low-") || len(first) != len("low-")+generatedLetters {
		t.Errorf("%q and %q", first, second)
	}
}
