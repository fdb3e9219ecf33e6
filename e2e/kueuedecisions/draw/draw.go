// Package draw makes scenarios for Kueue from seeds, in families by subject: what is there, and the steps to take. They
// have the form of package conformance, without outcomes. A family and a seed give the same scenario on every machine.
package draw

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

// Families are the names of all families.
func Families() []string { return slices.Sorted(maps.Keys(families)) }

// Text is the scenario of a family and a seed as JSON.
func Text(family string, seed uint64) ([]byte, error) {
	with, known := families[family]
	if !known {
		return nil, fmt.Errorf("there is no family %q; there are %v", family, Families())
	}
	stream := uint64(len(family))<<32 + uint64(family[0])<<8 + uint64(family[len(family)-1])
	d := &drawing{
		Rand: rand.New(rand.NewPCG(seed, stream)), //nolint:gosec // it draws test cases
		with: with, made: map[string]object{},
	}
	s := d.cluster()
	s["format"], s["name"], s["seed"] = conformance.Format, fmt.Sprintf("v-%s-%d", family, seed), seed
	s["steps"] = d.steps()
	return json.Marshal(s)
}

// Scenario is the scenario of a family and a seed.
func Scenario(family string, seed uint64) (*conformance.Scenario, error) {
	text, err := Text(family, seed)
	if err != nil {
		return nil, err
	}
	return conformance.Parse(text)
}

// Large is a scenario for timing, with that many queues.
func Large(queues int) ([]byte, error) { return json.Marshal(large(queues)) }
