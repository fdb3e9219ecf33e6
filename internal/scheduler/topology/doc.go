// Package topology decides on which domains of a topology (blocks, racks, hosts) the pods of a workload go:
// topology-aware scheduling as Kueue v0.19 does it by default, as a pure engine.
//
// A Tree is the static part: the levels of a Topology and the nodes of a flavor. A Capacity adds what is free and what
// is used, and Place finds domains for the pod sets of a workload:
//
//	tree := topology.NewTree(levels, nodes)
//	capacity := topology.NewCapacity("default", tree, flavorTolerations)
//	capacity.Occupy(node, requests)             // a pod that Kueue does not place
//	capacity.Add(values, perPod, count)         // pods of an admitted workload
//	placement, failure := capacity.Place(requests, options)
//
// The decisions are those of a real Kueue with default feature gates: best fit for required and preferred levels, least
// free capacity without a constraint, slices in up to three layers, leaders and workers, replacement of failed nodes.
// Recordings of the real thing are replayed against it (package conformance). Of Kueue's it does not have what is off by
// default: balanced placement, preferred node affinity, and workload slices with topology.
//
// Sources: Kueue's pkg/cache/scheduler/tas_flavor_snapshot.go and tas_topology_tree.go; KEP-2724.
package topology
