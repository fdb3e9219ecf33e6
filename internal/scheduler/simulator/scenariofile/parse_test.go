package scenariofile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// minimal is the smallest scenario; lines are added after it.
const minimal = `nodes: [{name: n, allocatable: {cpu: "4"}}]
jobs: [{name: j, gang: {runs: 1m}}]
`

func TestWhatIsLeftOutHasKubernetesDefaults(t *testing.T) {
	s, err := Parse("s.yaml", []byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	g := s.Jobs[0].Gang
	if pods := s.Nodes[0].Allocatable["pods"]; pods.Value() != 110 || g.Pods != 1 || g.TerminationGracePeriod.String() != "30s" || g.Stops.String() != "30s" {
		t.Errorf("%v pods a node; the gang is %+v", pods, g)
	}
}

func TestTheExamplesAreScenarios(t *testing.T) {
	files, err := filepath.Glob("../../../../examples/scenarios/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	for _, file := range files {
		if _, err := ReadFile(file); err != nil {
			t.Error(err)
		}
	}
}

// queued has a queue with a topology, and no jobs.
const queued = `nodes: [{name: n, count: 2, allocatable: {cpu: "1"}, domains: {block: [b1, b2]}}]
topologies: [{name: t, levels: [{nodeLabel: block}]}]
clusterQueues: [{name: q}]
localQueues: [{name: q, clusterQueue: q}]
`

// refusals are files with the expected error.
var refusals = map[string]struct{ text, want string }{
	"an empty file":                        {"", "s.yaml:1:1: is empty"},
	"no YAML":                              {"nodes: [\n", "s.yaml:1:1: is not YAML"},
	"a tab":                                {"nodes:\n\t- a\n", "s.yaml:2:2: is not YAML"},
	"a byte that is not UTF-8":             {"name: a\nx: \xff\n", "s.yaml:2:4: is not UTF-8"},
	"a control character":                  {"name: \x01\n", "s.yaml:1:7: has a control character (0x01)"},
	"a second document":                    {minimal + "---\nname: b\n", "s.yaml:3:1: has a second document"},
	"a list":                               {"- a\n", `s.yaml:1:1: is a list where a mapping is wanted`},
	"an alias":                             {"name: &a x\ndescription: *a\n" + minimal, "s.yaml:1:7: name uses a YAML anchor or alias"},
	"an unknown field":                     {minimal + "node: 3\n", "s.yaml:3:1: node is not known here; known are"},
	"an unknown field deep down":           {"nodes: [{name: n, allocatable: {cpu: \"1\"}, taints: [{key: a, efect: b}]}]\njobs: [{name: j, gang: {runs: 1m}}]\n", "s.yaml:1:62: nodes[0].taints[0].efect is not known here"},
	"a field twice":                        {"name: a\nname: b\n" + minimal, "s.yaml:2:1: name is here twice"},
	"a text for a number":                  {minimal + "seed: many\n", "s.yaml:3:7: seed is many where a whole number that is not negative is wanted"},
	"a number for a text":                  {"name: 3\n" + minimal, "s.yaml:1:7: name is 3 where a text (put it in quotes) is wanted"},
	"a negative time":                      {minimal + "until: -1h\n", `s.yaml:3:8: until is "-1h": a time cannot be negative`},
	"a time without a unit":                {minimal + "until: 15\n", `s.yaml:3:8: until is "15": write a duration with its unit`},
	"a time beyond all":                    {minimal + "until: 1000000h\n", `s.yaml:3:8: until is "1000000h": longer than a hundred years`},
	"a quantity that is none":              {"nodes: [{name: n, allocatable: {cpu: lots}}]\njobs: [{name: j, gang: {runs: 1m}}]\n", `s.yaml:1:38: nodes[0].allocatable.cpu is "lots"`},
	"a negative quantity":                  {"nodes: [{name: n, allocatable: {cpu: \"-1\"}}]\njobs: [{name: j, gang: {runs: 1m}}]\n", `s.yaml:1:38: nodes[0].allocatable.cpu is -1; an amount cannot be negative`},
	"a billion nodes":                      {"nodes: [{name: n, count: 1000000000, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, gang: {runs: 1m}}]\n", "s.yaml:1:26: nodes[0].count is 1000000000; a scenario has at most 20000 nodes"},
	"more nodes than that, group by group": {"nodes: [" + strings.Repeat(`{name: n, count: 20000, allocatable: {cpu: "1"}},`, 3) + "]\njobs: [{name: j, gang: {runs: 1m}}]\n", "makes more than 20000 nodes"},
	"an autoscaler without bounds":         {"nodes: [{name: n, allocatable: {cpu: \"1\"}, autoscale: {max: 9000000000}}]\njobs: [{name: j, gang: {runs: 1m}}]\n", "nodes[0].autoscale.max is 9000000000"},
	"a billion jobs":                       {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, repeat: {count: 1000000000, every: 1s}, gang: {runs: 1m}}]\n", "s.yaml:2:34: jobs[0].repeat.count is 1000000000"},
	"a billion pods":                       {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, repeat: {count: 1000000, every: 1s}, gang: {pods: 1000, runs: 1m}}]\n", "s.yaml:2:8: jobs[0] makes more than 2000000 pods"},
	"a stream of a thousand years":         {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, repeat: {count: 1000, every: 87600h}, gang: {runs: 1m}}]\n", "s.yaml:2:47: jobs[0].repeat.every makes a stream"},
	"a name that no object has":            {"nodes: [{name: N_1, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, gang: {runs: 1m}}]\n", `s.yaml:1:16: nodes[0].name is "N_1", which cannot be an object's name`},
	"two jobs of one name":                 {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, gang: {runs: 1m}}, {name: j, gang: {runs: 1m}}]\n", `s.yaml:2:44: jobs[1].name is "j", as another one's`},
	"a job with a repeated one's name":     {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, repeat: {count: 3, every: 1s}, gang: {runs: 1m}}, {name: j-2, gang: {runs: 1m}}]\n", `jobs[1].name is "j-2", as one of the jobs that jobs[0] makes`},
	"checkpoint ages without a queue":      {minimal + "checkpointAge: {}\n", "s.yaml:3:16: checkpointAge is about workloads in queues"},
	"boosts beyond the next class": {
		"workloadPriorityClasses: [{name: a, value: 100}, {name: b, value: 110}]\ncheckpointAge: {max: 10}\n" + minimal,
		"s.yaml:2:16: checkpointAge cannot be used: the maximum of 10 is not below the distance between priorities 100 and 110",
	},
	"a job that is nothing":                   {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j}]\n", "s.yaml:2:8: jobs[0] must be either elastic or a gang"},
	"a priority class that there is not":      {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, gang: {runs: 1m, priorityClass: high}}]\n", `s.yaml:2:50: jobs[0].gang.priorityClass is "high"; there is no priority class of that name`},
	"a queue that there is not":               {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, gang: {runs: 1m, queue: q}}]\n", `s.yaml:2:42: jobs[0].gang.queue is "q"; there is no local queue of that name`},
	"cohorts above each other":                {minimal + "cohorts: [{name: a, parentName: b}, {name: b, parentName: c}, {name: c, parentName: a}]\n", "s.yaml:3:33: cohorts[0].parentName leads back to itself: a → b → c → a"},
	"usage that is never looked at":           {minimal + "admissionFairSharing: {usageHalfLifeTime: 1h}\n", "admissionFairSharing.usageSamplingInterval is less than a second"},
	"a negative weight of a resource":         {minimal + "admissionFairSharing: {usageSamplingInterval: 5m, resourceWeights: {cpu: -1}}\n", "admissionFairSharing.resourceWeights.cpu is -1; an amount cannot be negative"},
	"a quota that Kueue refuses":              {minimal + "resourceFlavors: [{name: f}]\nclusterQueues: [{name: q, resourceGroups: [{coveredResources: [cpu], flavors: [{name: f, resources: [{name: cpu, nominalQuota: \"1\", borrowingLimit: \"1\"}]}]}]}]\n", "s.yaml:4:149: clusterQueues[0].resourceGroups[0].flavors[0].resources[0].borrowingLimit"},
	"no workers at all":                       {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, elastic: {workers: {min: -1}, steps: 1, speed: {gradsToWait: 1, gradient: 1s}}}]\n", "s.yaml:2:37: jobs[0].elastic.workers must have 1 ≤ min ≤ max"},
	"a speed of nothing":                      {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, elastic: {steps: 1, speed: {stepsPerSecond: {1: 0}}}}]\n", `s.yaml:2:66: jobs[0].elastic.speed.stepsPerSecond.1 is "0": write a positive decimal number`},
	"a speed for no number of workers":        {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, elastic: {steps: 1, speed: {stepsPerSecond: {0: 1}}}}]\n", "stepsPerSecond is for 0 workers"},
	"a level of no topology":                  {queued + "jobs: [{name: j, gang: {runs: 1m, queue: q, topology: {required: rack}}}]\n", `s.yaml:5:66: jobs[0].gang.topology.required is "rack", which is no level of any topology`},
	"a topology without a queue":              {queued + "jobs: [{name: j, gang: {runs: 1m, topology: {unconstrained: true}}}]\n", "s.yaml:5:45: jobs[0].gang.topology counts only in a queue"},
	"a part of a slice":                       {queued + "jobs: [{name: j, gang: {pods: 3, runs: 1m, queue: q, topology: {slice_size: 2, slice_required: block}}}]\n", "jobs[0].gang.topology.slice_size is 2, and pods is 3"},
	"two requests at once":                    {queued + "jobs: [{name: j, gang: {runs: 1m, queue: q, topology: {required: block, preferred: block}}}]\n", "jobs[0].gang.topology sets 2 of required, preferred and unconstrained"},
	"a topology that there is not":            {minimal + "resourceFlavors: [{name: f, nodeLabels: {a: b}, topologyName: t}]\n", `resourceFlavors[0].topologyName is "t"; there is no topology of that name`},
	"a topology without levels":               {minimal + "topologies: [{name: t, levels: []}]\n", "topologies[0].levels"},
	"more domains than nodes":                 {"nodes: [{name: n, allocatable: {cpu: \"1\"}, domains: {rack: [a, b]}}]\njobs: [{name: j, gang: {runs: 1m}}]\n", "nodes[0].domains.rack has 2 values for 1 nodes"},
	"hosts as domains of their own":           {"nodes: [{name: n, allocatable: {cpu: \"1\"}, domains: {kubernetes.io/hostname: [a]}}]\njobs: [{name: j, gang: {runs: 1m}}]\n", "is a label that the nodes have already"},
	"a fault of a node that there is not":     {minimal + "faults: [{at: 1s, node: m}]\n", `s.yaml:3:25: faults[0].node is "m"; there is no node of that name`},
	"a fault of nothing":                      {minimal + "faults: [{at: 1s}]\n", "faults[0] names no node and no job, and apiServer is not true"},
	"a fault of a node and of a job":          {minimal + "faults: [{at: 1s, node: n, job: j}]\n", "faults[0] sets more than one of node, job and apiServer"},
	"a fault of a job that there is not":      {minimal + "faults: [{at: 1s, job: k}]\n", "faults[0].job \"k\" is no job of this file that is submitted once"},
	"a fault of the master of a gang":         {minimal + "faults: [{at: 1s, job: j, master: true}]\n", "faults[0].master \"j\" has no master: it is a gang"},
	"a pod that returns":                      {minimal + "faults: [{at: 1s, job: j, returns: 1s}]\n", "faults[0].returns belongs to a node"},
	"a node that is killed":                   {minimal + "faults: [{at: 1s, node: n, kill: true}]\n", "faults[0] master and kill belong to a job"},
	"an interval above one that is not there": {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\ntrace: {format: synthetic, checkpointUpTo: 1h}\n", `s.yaml:2:44: trace.checkpointUpTo is 1h0m0s; it is left out, or at least checkpointEvery`},
	"a trace of no format":                    {"trace: {format: lsf, jobs: a, nodes: b}\n", `s.yaml:1:17: trace.format is "lsf"`},
	"a pod that stops after it was stopped":   {"nodes: [{name: n, allocatable: {cpu: \"1\"}}]\njobs: [{name: j, gang: {runs: 1m, terminationGracePeriod: 1s, stops: 2s}}]\n", "s.yaml:2:70: jobs[0].gang.stops is longer than the termination grace period of 1s"},
}

func TestBrokenFilesAreRefusedWithLineAndColumn(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			s, err := Parse("s.yaml", []byte(test.text))
			var parsed *Error
			if err == nil || s != nil || !errors.As(err, &parsed) {
				t.Fatalf("it is accepted: %v", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got\n%v\nwant\n%s", err, test.want)
			}
		})
	}
}

func TestSeveralMistakesAreReportedInTheOrderOfTheFile(t *testing.T) {
	_, err := Parse("s.yaml", []byte("until: -1s\nnodes: [{name: n, allocatable: {cpu: x}}]\nseed: -1\n"))
	var parsed *Error
	if !errors.As(err, &parsed) || len(parsed.Problems) != 3 || parsed.Problems[0].Line != 1 || parsed.Problems[2].Line != 3 {
		t.Errorf("%v", err)
	}
}

func TestALargeFileIsRefusedBeforeItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.yaml")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Fatal("a sparse file: ", err)
	}
	before := allocated()
	_, err = ReadFile(path)
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
	if grown := allocated() - before; grown > 32<<20 {
		t.Errorf("a file of a tebibyte made memory grow by %d bytes", grown)
	}
}

func TestHostileFilesAreRefusedBeforeMemoryGrows(t *testing.T) {
	for name, test := range refusals {
		before := allocated()
		_, _ = Parse("s.yaml", []byte(test.text))
		if grown := allocated() - before; grown > 32<<20 {
			t.Errorf("%s: %d bytes were allocated", name, grown)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestALongChainOfCohortsIsWalkedOnce(t *testing.T) {
	var text strings.Builder
	text.WriteString(minimal + "cohorts:\n")
	const many = 4_000
	for i := range many {
		fmt.Fprintf(&text, "  - {name: c%d, parentName: c%d}\n", i, i+1)
	}
	if _, err := Parse("s.yaml", []byte(text.String())); err != nil {
		t.Fatal(err)
	}
}

func TestRatesAreWholeMillionthsAndLinearBetweenWhatWasMeasured(t *testing.T) {
	var half Rate
	if err := half.UnmarshalText([]byte("0.5")); err != nil || half != 500_000 || half.String() != "0.5" {
		t.Errorf("%d %s %v", half, half, err)
	}
	measured := Speed{StepsPerSecond: map[int]Rate{2: 10_000_000, 4: 16_000_000}}
	derived := Speed{GradsToWait: 4, Gradient: 50, Overhead: 0}
	for workers, want := range map[int][2]Rate{1: {5_000_000, 5_000_000}, 2: {10_000_000, 10_000_000}, 3: {13_000_000, 10_000_000}, 4: {16_000_000, 20_000_000}, 9: {16_000_000, 20_000_000}} {
		if got := [2]Rate{measured.At(workers), derived.At(workers)}; got != want {
			t.Errorf("%d workers: %v, want %v", workers, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, test := range refusals {
		f.Add([]byte(test.text))
	}
	f.Add([]byte(minimal))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("f.yaml", text)
		var parsed *Error
		switch {
		case err == nil && s == nil:
			t.Fatal("neither a scenario nor an error")
		case err == nil:
			return
		case !errors.As(err, &parsed):
			t.Fatalf("an error without a place: %v", err)
		}
		for _, p := range parsed.Problems {
			if p.Line < 1 || p.Column < 1 || p.Text == "" {
				t.Fatalf("a problem without a place: %+v", p)
			}
		}
	})
}
