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

// features are what the scenarios of a family may have.
type features struct {
	topology   bool // flavors have a topology
	layers     bool // slices in several layers
	groups     bool // pod sets in a group: leader and workers
	overlaps   bool // two flavors may have nodes in common
	tree       bool // cohorts in a tree
	limits     bool // borrowing and lending limits
	fair       bool // fair sharing
	flavors    int  // at most so many
	selectors  bool // pods choose flavors by labels and tolerations
	partial    bool // partial admission
	boost      bool // priorities are boosted
	slices     bool // jobs grow and shrink by workload slices
	late       bool // pods are not ready in time
	limited    bool // of those, some are late too often, and admission waits for pods
	changes    bool // nodes, other pods, quotas and queues change
	cohortless bool // queues may be on their own
	usage      bool // admission fair sharing: what LocalQueues have used orders workloads
}

var families = map[string]features{
	"hierarchy":   {tree: true, limits: true, flavors: 2},
	"reclaim":     {limits: true, flavors: 3, selectors: true},
	"fairtrees":   {tree: true, limits: true, fair: true, flavors: 2},
	"layers":      {topology: true, layers: true, flavors: 1, cohortless: true},
	"groups":      {topology: true, groups: true, flavors: 2, selectors: true},
	"rackreclaim": {topology: true, limits: true, flavors: 2, tree: true},
	"rackshares":  {topology: true, groups: true, fair: true, tree: true, limits: true, flavors: 2},
	"overlapping": {topology: true, overlaps: true, flavors: 3, limits: true},
	"shrink":      {partial: true, limits: true, flavors: 2, tree: true},
	"rackshrink":  {topology: true, partial: true, flavors: 2, groups: true},
	"boost":       {boost: true, limits: true, flavors: 2, tree: true},
	"elastic":     {slices: true, limits: true, flavors: 2, tree: true},
	"late":        {late: true, limits: true, flavors: 2, tree: true},
	"impatient":   {late: true, limited: true, limits: true, flavors: 2, tree: true},
	"changes":     {topology: true, changes: true, flavors: 2, limits: true, tree: true},
	"usage":       {usage: true, flavors: 2, limits: true, tree: true, cohortless: true},
	"quotas":      {changes: true, flavors: 2, limits: true, tree: true, partial: true},
}
