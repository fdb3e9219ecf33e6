package simulator_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/timeline"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
)

// whereabouts lists the pods of a log that got nodes, in the order of their names, by node.
func whereabouts(t *testing.T, s *scenariofile.Scenario) string {
	t.Helper()
	log, _ := run(t, s, simulator.Options{})
	events, err := eventlog.Read(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range eventlog.Replay(events).Pods {
		if p.Node != "" {
			all = append(all, p.Name+"="+p.Node)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestPodsRunWhereTheTopologyPlacesThem(t *testing.T) {
	const want = "elastic-master-0=gpu-2 elastic-min-0=gpu-2 elastic-min-1=gpu-2 elastic-min-2=gpu-3 " +
		"near-0=gpu-0 near-1=gpu-0 near-2=gpu-0 near-3=gpu-0 near-4=gpu-1 near-5=gpu-1 near-6=gpu-1 near-7=gpu-1 " +
		"pairs-0=nvl-0 pairs-1=nvl-1 pairs-2=nvl-2 pairs-3=nvl-3 slices-0=gpu-4 slices-1=gpu-5 slices-2=gpu-6 slices-3=gpu-7 " +
		"waits-0=gpu-4 waits-1=gpu-5"
	if diff := cmp.Diff(want, whereabouts(t, read(t, filepath.Join(examples, "racks-and-blocks.yaml")))); diff != "" {
		t.Error(diff)
	}
}

// The guide "Racks and blocks" shows the images.
func TestTheGuideShowsThePlacement(t *testing.T) {
	log, _ := run(t, read(t, filepath.Join(examples, "racks-and-blocks.yaml")), simulator.Options{})
	events, err := eventlog.Read(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []timeline.Scheme{timeline.Light, timeline.Dark} {
		var image bytes.Buffer
		if err := timeline.RenderImage(&image, events, scheme); err != nil {
			t.Fatal(err)
		}
		rest := image.String()
		for _, title := range []string{">block b1<", ">rack r1<", ">gpu-0 ", ">gpu-1 ", ">rack r2<", ">gpu-3 ", ">block b2<", ">rack r4<", ">gpu-7 ", ">block b3<", ">gpu.clique c1<", ">nvl-1 ", ">gpu.clique c2<"} {
			_, after, there := strings.Cut(rest, title)
			if !there {
				t.Fatalf("%s is missing, or not in its place", title)
			}
			rest = after
		}
		golden(t, filepath.Join("..", "..", "..", "..", "docs", "images", "racks-and-blocks-"+string(scheme)+".svg"), image.Bytes())
	}
}

// racked is a cluster of two racks with two nodes each, and one job whose pods take a node each.
const racked = `
nodes: [{name: n, count: 4, allocatable: {cpu: "4"}, labels: {group: n}, domains: {rack: [r1, r2]}}]
topologies: [{name: t, levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}]
resourceFlavors: [{name: f, nodeLabels: {group: n}, topologyName: t}]
clusterQueues: [{name: q, resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: "16"}]}]}]}]
localQueues: [{name: q, clusterQueue: q}]
jobs:
`

func TestFailedNodesAreReplacedOrTheWorkloadIsEvicted(t *testing.T) {
	for name, c := range map[string]struct {
		jobs, want string
		evicted    bool
	}{
		"another node of the rack": {`
  - {name: j, gang: {requests: {cpu: "4"}, queue: q, runs: 1m, topology: {required: rack}}}
faults: [{at: 10s, node: n-0}]`, "j-0=n-0 j-1=n-1", false},
		"no other node of the rack": {`
  - {name: j, gang: {pods: 2, requests: {cpu: "4"}, queue: q, runs: 1m, topology: {required: rack}}}
faults: [{at: 10s, node: n-0}]`, "j-0=n-0 j-1=n-1 j-3=n-2 j-4=n-3", true},
		"two nodes at once": {`
  - {name: j, gang: {pods: 2, requests: {cpu: "4"}, queue: q, runs: 1m, topology: {unconstrained: true}}}
faults: [{at: 10s, node: n-0}, {at: 10s, node: n-1}]`, "j-0=n-0 j-1=n-1 j-4=n-2 j-5=n-3", true},
		"a pod that Kueue does not place takes room": {`
  - {name: a, gang: {requests: {cpu: "1"}, nodeSelector: {kubernetes.io/hostname: n-0}, runs: 1h}}
  - {name: j, submit: 1s, gang: {pods: 2, requests: {cpu: "4"}, queue: q, runs: 1m, topology: {required: rack}}}`, "a-0=n-0 j-0=n-2 j-1=n-3", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := scenariofile.Parse("s.yaml", []byte(racked+c.jobs))
			if err != nil {
				t.Fatal(err)
			}
			if got := whereabouts(t, s); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			log, summary := run(t, s, simulator.Options{})
			if evicted := bytes.Contains(log, []byte(`"evicted":"NodeFailures"`)); evicted != c.evicted || len(summary.Unfinished) > 0 {
				t.Errorf("evicted: %t; not ended: %v", evicted, summary.Unfinished)
			}
		})
	}
}
