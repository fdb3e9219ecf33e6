package kueuedecisions

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// smallPatience bounds the search for a small scenario.
const smallPatience = 15 * time.Second

// Minimal is a difference in the smallest part of its scenario that is found to still show one: it leaves steps and objects
// out, and then features of objects, until nothing can be left out or ctx ends.
func (c *Comparison) Minimal(ctx context.Context) *Comparison {
	ctx, cancel := context.WithTimeout(ctx, smallPatience)
	defer cancel()
	return c.minimal(ctx, Compare)
}

func (c *Comparison) minimal(ctx context.Context, compare func(*conformance.Scenario) (*Comparison, error)) *Comparison {
	smallest := c
	s, err := plain(c.Scenario)
	if err != nil {
		return c
	}
	s["steps"] = s["steps"].([]any)[:c.Steps]
	for smaller := true; smaller; {
		smaller = false
		for _, cut := range cuts(s) {
			if ctx.Err() != nil {
				return smallest
			}
			part := cut(s)
			text, err := json.Marshal(part)
			if err != nil {
				continue
			}
			scenario, err := conformance.Parse(text)
			if err != nil {
				continue
			}
			if compared, err := compare(scenario); err == nil && compared.Result == Different {
				part["steps"] = part["steps"].([]any)[:compared.Steps]
				s, smallest, smaller = part, compared, true
				break
			}
		}
	}
	return smallest
}

// plain is a scenario as JSON without outcomes.
func plain(s *conformance.Scenario) (map[string]any, error) {
	without := *s
	without.Outcomes = nil
	text, err := json.Marshal(&without)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	return all, json.Unmarshal(text, &all)
}

// String is the scenario, a line for each object and step, and what differs.
func (c *Comparison) String() string {
	var b strings.Builder
	s, err := plain(c.Scenario)
	if err != nil {
		return err.Error()
	}
	for _, kind := range slices.Sorted(maps.Keys(s)) {
		list, several := s[kind].([]any)
		if !several {
			list = []any{s[kind]}
		}
		for i, one := range list {
			text, _ := json.Marshal(one)
			if kind == "steps" && i == c.Steps-1 {
				fmt.Fprintf(&b, "%s %d: %s <- differs\n", kind, i, text)
				break
			}
			fmt.Fprintf(&b, "%s %d: %s\n", kind, i, text)
		}
	}
	fmt.Fprintf(&b, "Kueue's decision is expected, the engine's was got: %s", c.Difference)
	return b.String()
}
