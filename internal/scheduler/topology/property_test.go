package topology

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler"
)

// placedIn draws a situation and places its workload; the test ends where there is no place.
func placedIn(t *rapid.T) (situation, map[string]*Assignment) {
	s := newDrawer(rapid.Uint64().Draw(t, "seed")).situation()
	s.Empty, s.Broken, s.Admitted = false, "", nil
	placed, failure := s.capacity().Place(s.requests(), s.options())
	if failure != nil {
		t.Skip(failure.Reason)
	}
	return s, placed
}

func TestEveryPodGetsADomainAndNoDomainGetsMoreThanFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, placed := placedIn(t)
		c := s.capacity()
		for _, r := range s.Requests {
			var pods int32
			for _, d := range placed[r.PodSet].Domains {
				pods += d.Count
				// Kueue's check finds no room for pods that request nothing.
				if len(r.Requests) > 0 && !c.Fits(d.Values, scheduler.Units(r.Requests), d.Count) {
					t.Fatalf("%d pods of %s do not fit into %v", d.Count, r.PodSet, d.Values)
				}
				c.Add(d.Values, scheduler.Units(r.Requests), d.Count)
			}
			// What is no whole number of slices of workers is left out; Kueue's webhooks do not let it come to that.
			size, _ := sliceSize(r.Topology)
			if pods != r.Count && pods != r.Count/size*size {
				t.Fatalf("%d of %d pods of %s have a domain", pods, r.Count, r.PodSet)
			}
		}
	})
}

func TestARequiredLevelHoldsAllPodsInOneDomainAndEverySliceToo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, placed := placedIn(t)
		tree := s.capacity().tree
		in := func(level string, values []string) int {
			return tree.ancestor(tree.leafOf[ID(values)], tree.index(level))
		}
		for _, r := range s.Requests {
			if r.Group != "" || r.Topology == nil {
				continue
			}
			for _, layer := range layers(r.Topology) {
				pods := map[int]int32{}
				for _, d := range placed[r.PodSet].Domains {
					pods[in(layer.Topology, d.Values)] += d.Count
				}
				for domain, count := range pods {
					if count%layer.Size != 0 {
						t.Fatalf("%d pods of %s are in %v: no whole number of slices of %d", count, r.PodSet, tree.domains[domain].values, layer.Size)
					}
				}
			}
			if r.Topology.Required == nil {
				continue
			}
			domains := map[int]bool{}
			for _, d := range placed[r.PodSet].Domains {
				domains[in(*r.Topology.Required, d.Values)] = true
			}
			if len(domains) > 1 {
				t.Fatalf("%s requires one domain of %s and got %d", r.PodSet, *r.Topology.Required, len(domains))
			}
		}
	})
}

func TestWhatIsRemovedIsFreeAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, placed := placedIn(t)
		c := s.capacity()
		for _, r := range s.Requests {
			for _, d := range placed[r.PodSet].Domains {
				c.Add(d.Values, scheduler.Units(r.Requests), d.Count)
			}
		}
		for _, r := range s.Requests {
			for _, d := range placed[r.PodSet].Domains {
				c.Remove(d.Values, scheduler.Units(r.Requests), d.Count)
			}
		}
		again, failure := c.Place(s.requests(), s.options())
		if failure != nil {
			t.Fatal(failure.Reason)
		}
		for name := range placed {
			if len(again[name].Domains) != len(placed[name].Domains) {
				t.Fatalf("%s is placed on %v, and on %v once it was there and left", name, placed[name], again[name])
			}
		}
	})
}
