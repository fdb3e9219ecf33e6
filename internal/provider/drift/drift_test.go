package drift_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/drift"
)

type attributes = map[string]tftypes.Value

func text(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

func number(n int64) tftypes.Value {
	return tftypes.NewValue(tftypes.Number, new(big.Float).SetInt64(n))
}

var (
	noText   = tftypes.NewValue(tftypes.String, nil)
	mapType  = tftypes.Map{ElementType: tftypes.String}
	noMap    = tftypes.NewValue(mapType, nil)
	queue    = tftypes.Object{AttributeTypes: map[string]tftypes.Type{"policy": tftypes.String, "labels": mapType}}
	noQueue  = tftypes.NewValue(queue, nil)
	listType = tftypes.List{ElementType: queue}
)

func mapOf(pairs ...string) tftypes.Value {
	entries := map[string]tftypes.Value{}
	for i := 0; i < len(pairs); i += 2 {
		entries[pairs[i]] = text(pairs[i+1])
	}
	return tftypes.NewValue(mapType, entries)
}

func queueOf(policy tftypes.Value, labels tftypes.Value) tftypes.Value {
	return tftypes.NewValue(queue, attributes{"policy": policy, "labels": labels})
}

func listOf(items ...tftypes.Value) tftypes.Value { return tftypes.NewValue(listType, items) }

func all(string) bool { return true }

func paths(changes []drift.Change) []string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Path.String())
	}
	return names
}

func TestChangesAreNamedAsDeepAsTheShapesAreEqual(t *testing.T) {
	unknown := tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	for behaviour, c := range map[string]struct {
		from, to tftypes.Value
		want     []string
	}{
		"equal":                        {text("x"), text("x"), nil},
		"another text":                 {text("x"), text("y"), []string{"a"}},
		"null":                         {noText, text("y"), []string{"a"}},
		"not known yet":                {text("x"), unknown, []string{"a"}},
		"keys of a map":                {mapOf("same", "1", "b.c/d", "1", "gone", "1"), mapOf("same", "1", "b.c/d", "2", "new", "1"), []string{`a["b.c/d"]`, `a["gone"]`, `a["new"]`}},
		"a map that was not there":     {noMap, mapOf("k", "1"), []string{`a["k"]`}},
		"an empty map is none":         {noMap, mapOf(), nil},
		"an attribute of an object":    {queueOf(text("x"), mapOf("k", "1")), queueOf(text("y"), mapOf("k", "2")), []string{`a.labels["k"]`, "a.policy"}},
		"an object that is not there":  {queueOf(text("x"), noMap), noQueue, []string{"a"}},
		"items of lists":               {listOf(queueOf(text("x"), noMap), queueOf(text("x"), noMap)), listOf(queueOf(text("x"), noMap), queueOf(text("y"), noMap)), []string{"a[1].policy"}},
		"lists of different lengths":   {listOf(queueOf(text("x"), noMap)), listOf(), []string{"a"}},
		"a list that was not there":    {tftypes.NewValue(listType, nil), listOf(), []string{"a"}},
		"an object that is not known":  {queueOf(text("x"), noMap), tftypes.NewValue(queue, tftypes.UnknownValue), []string{"a"}},
		"a number that is not another": {number(7), number(7), nil},
	} {
		t.Run(behaviour, func(t *testing.T) {
			got := drift.Changes(attributes{"a": c.from, "b": text("x")}, attributes{"a": c.to, "b": text("y")}, func(name string) bool { return name == "a" })
			if diff := cmp.Diff(c.want, paths(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIgnorePathIsWhatTheConfigurationSets(t *testing.T) {
	for behaviour, c := range map[string]struct {
		config, from, to tftypes.Value
		want             string
	}{
		"an attribute that is set":             {text("x"), text("x"), text("y"), "a"},
		"an attribute that is not set":         {noText, text("x"), text("y"), "a"},
		"a part of an object":                  {queueOf(text("x"), noMap), queueOf(text("x"), noMap), queueOf(text("y"), noMap), "a.policy"},
		"an object that is not set":            {noQueue, queueOf(text("x"), noMap), queueOf(text("y"), noMap), "a"},
		"a key of a map that is not set":       {noMap, mapOf("k", "1"), noMap, `a["k"]`},
		"a key of a map in an object":          {queueOf(noText, noMap), queueOf(noText, mapOf("k", "1")), queueOf(noText, mapOf("k", "2")), `a.labels["k"]`},
		"a key of a map in an object, not set": {noQueue, queueOf(noText, mapOf("k", "1")), queueOf(noText, mapOf("k", "2")), `a`},
		"an item": {
			listOf(queueOf(text("x"), noMap)), listOf(queueOf(text("x"), noMap)), listOf(queueOf(text("y"), noMap)), "a[0].policy",
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			changes := drift.Changes(attributes{"a": c.from}, attributes{"a": c.to}, all)
			if got := drift.IgnorePath(attributes{"a": c.config}, changes[0].Path).String(); got != c.want {
				t.Errorf("%s is ignored by %s, want %s", changes[0].Path, got, c.want)
			}
		})
	}
}

var (
	atNoon  = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	edited  = drift.Writer{Attribute: `labels["team"]`, Manager: "kubectl-label", Time: atNoon}
	stopped = drift.Writer{Attribute: "stop_policy", Manager: "kubectl-patch", Time: atNoon}
)

func TestWarningNamesWhatOthersWroteAndNothingElse(t *testing.T) {
	state := attributes{"labels": mapOf("team", "ops"), "stop_policy": text("Hold"), "cohort_name": text("mine"), "description": noText}
	plan := attributes{"labels": mapOf("team", "ml"), "stop_policy": text("None"), "cohort_name": text("changed by its user"), "description": text("lost")}
	config := attributes{"labels": mapOf("team", "ml"), "stop_policy": noText, "cohort_name": text("changed by its user"), "description": text("lost")}
	releases := func(c drift.Change) string {
		if c.Path.String() == "stop_policy" {
			return "That releases the queue."
		}
		return ""
	}
	o := drift.Observation{Writers: []drift.Writer{edited, stopped, {Attribute: "preemption", Manager: "x"}}, Lost: []string{"description"}}
	summary, detail, ok := drift.Warning("ClusterQueue team", drift.Changes(state, plan, all), o, config, releases)
	want := `These fields have values that were not written by this resource:

  - description: unset, changed by a client that managedFields do not name
  - labels["team"]: "ops", written by "kubectl-label" at 2026-01-02T12:00:00Z
  - stop_policy: "Hold", written by "kubectl-patch" at 2026-01-02T12:00:00Z

Applying this plan sets them to the values that it shows. That releases the queue. To leave them to others instead, have the resource ignore them:

  lifecycle {
    ignore_changes = [description, labels["team"], stop_policy]
  }
`
	if diff := cmp.Diff(want, detail); diff != "" || !ok || summary != "ClusterQueue team was changed outside of this configuration" {
		t.Errorf("%s\n%s", summary, diff)
	}
	if summary, detail, ok = drift.Warning("ClusterQueue team", drift.Changes(state, plan, all), drift.Observation{}, config, releases); ok {
		t.Errorf("a plan that its user has changed warns: %s\n%s", summary, detail)
	}
}

func TestANewlyConfiguredLabelIsNamedIfOthersHaveSetIt(t *testing.T) {
	o := drift.Observation{Writers: []drift.Writer{edited}, Others: map[string]string{`labels["team"]`: drift.Digest("ops")}}
	changes := drift.Changes(attributes{"labels": noMap}, attributes{"labels": mapOf("team", "ml")}, all)
	if _, detail, ok := drift.Warning("x", changes, o, attributes{"labels": mapOf("team", "ml")}, func(drift.Change) string { return "" }); !ok ||
		!strings.Contains(detail, `labels["team"]: another value, written by "kubectl-label"`) {
		t.Errorf("got %s", detail)
	}
}

func TestRemovedAttributesStayKnownUntilAnotherManagerWritesThem(t *testing.T) {
	changes := drift.Changes(attributes{"a": text("x"), "stop_policy": text("None")}, attributes{"a": noText, "stop_policy": text("Hold")}, all)
	first := drift.Observation{Writers: []drift.Writer{stopped}}.Observed(changes, drift.Observation{})
	if diff := cmp.Diff([]string{"a"}, first.Lost); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a"}, drift.Observation{}.Observed(nil, first).Lost); diff != "" {
		t.Error(diff)
	}
	if got := (drift.Observation{Writers: []drift.Writer{{Attribute: "a", Manager: "m"}}}).Observed(nil, first).Lost; len(got) > 0 {
		t.Errorf("lost %v", got)
	}
}

func TestConflictsAreWhatThePlanHasNotSeen(t *testing.T) {
	value := func(stop, team tftypes.Value) attributes { return attributes{"stop_policy": stop, "labels": team} }
	pristine := value(text("None"), mapOf("team", "ml"))
	for behaviour, c := range map[string]struct {
		planned, live, desired attributes
		before, now            drift.Observation
		want                   []string
	}{
		"nothing has changed":                    {planned: pristine, live: pristine, desired: pristine},
		"drift that the plan shows":              {planned: value(text("Hold"), mapOf("team", "ops")), live: value(text("Hold"), mapOf("team", "ops")), desired: pristine},
		"a change after the plan":                {planned: pristine, live: value(text("Hold"), mapOf("team", "ml")), desired: pristine, want: []string{"stop_policy"}},
		"all of them":                            {planned: pristine, live: value(text("Hold"), mapOf("team", "ops")), desired: pristine, want: []string{`labels["team"]`, "stop_policy"}},
		"a second change of what the plan shows": {planned: value(text("Hold"), noMap), live: value(text("HoldAndDrain"), noMap), desired: value(text("None"), noMap), want: []string{"stop_policy"}},
		"a change to what the plan sets":         {planned: value(text("Hold"), noMap), live: value(text("None"), noMap), desired: value(text("None"), noMap)},
		"a removal":                              {planned: pristine, live: value(text("None"), mapOf()), desired: pristine, want: []string{`labels["team"]`}},
		"a removal of what the plan removes":     {planned: pristine, live: value(text("None"), mapOf()), desired: value(text("None"), noMap)},
		"a label that was others' when it was planned": {
			planned: value(text("None"), noMap), live: value(text("None"), noMap), desired: pristine,
			before: drift.Observation{Others: map[string]string{`labels["team"]`: drift.Digest("ops")}},
			now:    drift.Observation{Others: map[string]string{`labels["team"]`: drift.Digest("ops")}},
		},
		"a label that others have set since": {
			planned: value(text("None"), noMap), live: value(text("None"), noMap), desired: pristine,
			now: drift.Observation{Others: map[string]string{`labels["team"]`: drift.Digest("ops")}}, want: []string{`labels["team"]`},
		},
		"a label that others have set to the same": {
			planned: value(text("None"), noMap), live: value(text("None"), noMap), desired: pristine,
			now: drift.Observation{Others: map[string]string{`labels["team"]`: drift.Digest("ml")}},
		},
	} {
		t.Run(behaviour, func(t *testing.T) {
			var got []string
			for _, conflict := range drift.Conflicts(drift.Comparison{
				Planned: c.planned, Live: c.live, LiveAsDesired: c.live, Desired: c.desired, Config: c.desired, Before: c.before, Now: c.now, Compared: all,
			}) {
				got = append(got, conflict.Path.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAConflictNamesTheLiveValuesAndTheRemedies(t *testing.T) {
	planned := attributes{"stop_policy": text("Hold"), "description": text("d")}
	live := attributes{"stop_policy": text("HoldAndDrain"), "description": noText}
	desired := attributes{"stop_policy": text("None"), "description": text("d")}
	err := &drift.ConflictError{Ref: cluster.Ref{Kind: "ClusterQueue", Name: "team"}, Conflicts: drift.Conflicts(drift.Comparison{
		Planned: planned, Live: live, LiveAsDesired: live, Desired: desired, Compared: all, Now: drift.Observation{Writers: []drift.Writer{stopped}},
		Config: attributes{"stop_policy": noText, "description": text("d")},
	})}
	summary, detail := err.Explain()
	want := `Others have changed these fields since the plan was made:

  - description: unset, removed, or written by another run of this provider; the plan was made for "d" and sets "d"
  - stop_policy: "HoldAndDrain", written by "kubectl-patch" at 2026-01-02T12:00:00Z; the plan was made for "Hold" and sets "None"

They were left as they are. There are three ways out:

  1. Run terraform plan again: it shows the values of now, and applying that plan overwrites them.

  2. Leave the fields to the other manager, in the resource block:

       lifecycle {
         ignore_changes = [description, stop_policy]
       }

  3. Set force_conflicts = true in the provider's configuration: applies then overwrite such changes, too.`
	if diff := cmp.Diff(want, detail); diff != "" || summary != "Cannot update ClusterQueue team" {
		t.Errorf("%s\n%s", summary, diff)
	}
	if !strings.HasSuffix(err.Error(), "description, stop_policy") {
		t.Error(err)
	}
}

func TestTextIsAValueAsItIsConfigured(t *testing.T) {
	for want, value := range map[string]tftypes.Value{
		`"a\"b"`:                            text(`a"b`),
		"unset":                             noText,
		"7":                                 number(7),
		"true":                              tftypes.NewValue(tftypes.Bool, true),
		`{ "a/b" = "c" }`:                   mapOf("a/b", "c"),
		`[{ policy = "x" }]`:                listOf(queueOf(text("x"), noMap)),
		`"` + strings.Repeat("é", 79) + "…": text(strings.Repeat("é", 200)),
	} {
		if got := drift.Text(value); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
