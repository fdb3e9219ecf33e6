package provider

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"
)

// spelling is the ways to write the value of one attribute. Values are as in JSON; nil is an omitted attribute, and
// list, set and tuple differ only in the dynamic type.
type spelling struct {
	// same are groups of values, those of one group with the same meaning.
	same [][]any
	// only is the reason why there is no other way to write a value; it replaces same.
	only string
	// other is a value of another meaning than the first one of same, or than the base configuration.
	other any
	// with are attributes, by their paths, that the base configuration needs besides.
	with map[string]any
	// unseen is the reason why Terraform cannot see a difference.
	unseen string
}

// set is a value of toset.
type set []any

// listOf is a list, which from brackets is a tuple.
type listOf []any

// baseline is a configuration in which every attribute of a resource has a place.
type baseline struct {
	config    map[string]any
	spellings map[string]spelling
}

func TestOtherSpellingsPlanNothing(t *testing.T) {
	p := newPlanner(t)
	for _, resourceType := range slices.Sorted(maps.Keys(p.schemas)) {
		t.Run(resourceType, func(t *testing.T) {
			t.Parallel()
			base, ok := baselines()[resourceType]
			if !ok {
				t.Fatal("this resource has no spellings; add them to baselines")
			}
			var covered []string
			attributes := configurable(p.schemas[resourceType], "")
			for _, path := range attributes {
				s, ok := base.spellings[path]
				switch {
				case !ok:
					t.Errorf("%s.%s has no spellings: add other ways to write a value of it, its default among them, or the reason why there are none", resourceType, path)
					continue
				case (len(s.same) == 0) == (s.only == ""):
					t.Errorf("%s.%s needs either other spellings or the reason why there are none", resourceType, path)
				case s.other == nil && s.unseen == "":
					t.Errorf("%s.%s needs a value that means something else", resourceType, path)
				}
				covered = append(covered, fmt.Sprintf("  %-60s %s", path, described(s)))
				t.Run(path, func(t *testing.T) { p.check(t, resourceType, base, path, s) })
			}
			for path := range base.spellings {
				if !slices.Contains(attributes, path) {
					t.Errorf("%s has no attribute %s", resourceType, path)
				}
			}
			t.Logf("%d attributes of %s:\n%s", len(covered), resourceType, strings.Join(covered, "\n"))
		})
	}
}

func described(s spelling) string {
	if s.only != "" {
		return "one spelling: " + s.only
	}
	var groups []string
	for _, group := range s.same {
		var texts []string
		for _, value := range group {
			texts = append(texts, fmt.Sprintf("%.40q", fmt.Sprint(value)))
		}
		groups = append(groups, strings.Join(texts, " = "))
	}
	return strings.Join(groups, "; ")
}

// check plans every spelling after another one of the same, and then a value that means something else.
func (p *planner) check(t *testing.T, resourceType string, base baseline, path string, s spelling) {
	config := base.config
	for _, at := range slices.Sorted(maps.Keys(s.with)) {
		config = changed(t, config, at, s.with[at])
	}
	for _, group := range s.same {
		for i, first := range group {
			state := p.applied(t, resourceType, changed(t, config, path, first))
			second := group[(i+1)%len(group)]
			planned, replaced := p.planned(t, resourceType, state, changed(t, config, path, second))
			if !planned.Equal(state) || len(replaced) > 0 {
				t.Errorf("%v, and then %v, is a change: %s, which replaces by %v", first, second, differences(state, planned), replaced)
			}
		}
	}
	if s.unseen != "" {
		return
	}
	before := config
	if len(s.same) > 0 {
		before = changed(t, config, path, s.same[0][0])
	}
	state := p.applied(t, resourceType, before)
	planned, _ := p.planned(t, resourceType, state, changed(t, config, path, s.other))
	if planned.Equal(state) {
		t.Errorf("%v means something else, and is no change", s.other)
	}
}

// TestManyOtherSpellingsPlanNothing draws spellings of all attributes together.
func TestManyOtherSpellingsPlanNothing(t *testing.T) {
	p := newPlanner(t)
	for _, resourceType := range slices.Sorted(maps.Keys(p.schemas)) {
		t.Run(resourceType, func(t *testing.T) {
			t.Parallel()
			base := baselines()[resourceType]
			rapid.Check(t, func(r *rapid.T) {
				first, second, drawn := base.config, base.config, []string{}
				for _, path := range slices.Sorted(maps.Keys(base.spellings)) {
					s := base.spellings[path]
					isInside := slices.ContainsFunc(drawn, func(above string) bool {
						return strings.HasPrefix(path, above+".") || strings.HasPrefix(path, above+"[]")
					})
					if len(s.same) == 0 || len(s.with) > 0 || isInside || !rapid.Bool().Draw(r, path) {
						continue
					}
					drawn = append(drawn, path)
					group := rapid.SampledFrom(s.same).Draw(r, path+": value")
					first = changed(r, first, path, rapid.SampledFrom(group).Draw(r, path+": first"))
					second = changed(r, second, path, rapid.SampledFrom(group).Draw(r, path+": second"))
				}
				state := p.applied(r, resourceType, first)
				if planned, replaced := p.planned(r, resourceType, state, second); !planned.Equal(state) || len(replaced) > 0 {
					r.Fatalf("a change: %s, which replaces by %v", differences(state, planned), replaced)
				}
			})
		})
	}
}

// configurable are the paths of the attributes that a configuration can set, those in lists and maps after "[]".
func configurable(attributes map[string]schema.Attribute, above string) []string {
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		attribute := attributes[name]
		if !attribute.IsOptional() && !attribute.IsRequired() {
			continue
		}
		path := above + name
		paths = append(paths, path)
		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			paths = append(paths, configurable(a.Attributes, path+".")...)
		case schema.ListNestedAttribute:
			paths = append(paths, configurable(a.NestedObject.Attributes, path+"[].")...)
		case schema.MapNestedAttribute:
			paths = append(paths, configurable(a.NestedObject.Attributes, path+"[].")...)
		case schema.StringAttribute, schema.BoolAttribute, schema.Int64Attribute, schema.Float64Attribute, schema.MapAttribute,
			schema.ListAttribute, schema.SetAttribute, schema.DynamicAttribute:
		default:
			panic(fmt.Sprintf("%s is a %T, in which nobody looks for attributes", path, attribute))
		}
	}
	return paths
}

// differences are the attributes in which two values differ.
func differences(before, after tftypes.Value) string {
	diffs, err := before.Diff(after)
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, d := range diffs {
		texts = append(texts, d.String())
	}
	return strings.Join(texts, ", ")
}

// changed is a configuration with another value at a path.
func changed(t tester, config map[string]any, path string, to any) map[string]any {
	t.Helper()
	with, ok := change(config, path, to)
	if !ok {
		t.Fatalf("there is no place for %s in %v", path, config)
	}
	return with
}

// change is changed; it fails where the configuration has nothing at the path around the attribute. What is a list of
// objects, or a map of them, has the first one changed.
func change(config map[string]any, path string, to any) (map[string]any, bool) {
	name, rest, isInside := strings.Cut(path, ".")
	config = maps.Clone(config)
	if !isInside {
		config[name] = to
		return config, true
	}
	switch inside := config[strings.TrimSuffix(name, "[]")].(type) {
	case map[string]any:
		if !strings.HasSuffix(name, "[]") {
			with, ok := change(inside, rest, to)
			config[name] = with
			return config, ok
		}
		for _, key := range slices.Sorted(maps.Keys(inside)) {
			object, _ := inside[key].(map[string]any)
			with, ok := change(object, rest, to)
			entries := maps.Clone(inside)
			entries[key] = with
			config[strings.TrimSuffix(name, "[]")] = entries
			return config, ok
		}
	case []any:
		if len(inside) == 0 {
			return config, false
		}
		object, _ := inside[0].(map[string]any)
		with, ok := change(object, rest, to)
		items := slices.Clone(inside)
		items[0] = with
		config[strings.TrimSuffix(name, "[]")] = items
		return config, ok
	}
	return config, false
}

// value is a value of a type, from what JSON would have.
func value(t tester, kind tftypes.Type, of any) tftypes.Value {
	t.Helper()
	if of == nil {
		return tftypes.NewValue(kind, nil)
	}
	if kind.Is(tftypes.DynamicPseudoType) {
		switch of := of.(type) {
		case string:
			return str(of)
		case set:
			return tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, itemsOf(t, tftypes.String, of))
		case listOf:
			return tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, itemsOf(t, tftypes.String, of))
		case []any:
			kinds := make([]tftypes.Type, len(of))
			for i := range of {
				kinds[i] = tftypes.String
			}
			return tftypes.NewValue(tftypes.Tuple{ElementTypes: kinds}, itemsOf(t, tftypes.String, of))
		}
	}
	switch k := kind.(type) {
	case tftypes.Object:
		given, ok := of.(map[string]any)
		if !ok {
			t.Fatalf("%v is no object", of)
		}
		attributes := map[string]tftypes.Value{}
		for name, kind := range k.AttributeTypes {
			attributes[name] = value(t, kind, given[name])
		}
		for name := range given {
			if _, ok := attributes[name]; !ok {
				t.Fatalf("there is no attribute %s", name)
			}
		}
		return tftypes.NewValue(kind, attributes)
	case tftypes.Map:
		given, ok := of.(map[string]any)
		if !ok {
			t.Fatalf("%v is no map", of)
		}
		entries := map[string]tftypes.Value{}
		for key, entry := range given {
			entries[key] = value(t, k.ElementType, entry)
		}
		return tftypes.NewValue(kind, entries)
	case tftypes.Set:
		items, ok := of.([]any)
		if !ok {
			t.Fatalf("%v is no list", of)
		}
		return tftypes.NewValue(kind, itemsOf(t, k.ElementType, items))
	case tftypes.List:
		items, ok := of.([]any)
		if !ok {
			t.Fatalf("%v is no list", of)
		}
		return tftypes.NewValue(kind, itemsOf(t, k.ElementType, items))
	}
	if whole, ok := of.(int); ok {
		return tftypes.NewValue(kind, new(big.Float).SetInt64(int64(whole)))
	}
	return tftypes.NewValue(kind, of)
}

func itemsOf(t tester, kind tftypes.Type, of []any) []tftypes.Value {
	t.Helper()
	items := make([]tftypes.Value, len(of))
	for i, item := range of {
		items[i] = value(t, kind, item)
	}
	return items
}
