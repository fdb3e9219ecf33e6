package trace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/trace"
)

// Made by hand in the published formats: column names, order and the ways of writing are those of the real files.
const (
	pods2023  = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
	nodes2023 = "sn,cpu_milli,memory_mib,gpu,model\nopenb-node-0,96000,786432,8,V100M32\nopenb-node-1,32000,262144,0,\n"
	jobs2026  = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
	nodes2026 = "node_name,gpu_model,gpu_capacity_num,cpu_num\n0,A100-SXM4-80GB,8,128\n1,A10,1,128\n"
	helios    = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
	gpuNumber = "date,vchbv,vcpDC,total\n2020-09-01,8,8,16\n2020-09-02,16,8,24\n"
	machines  = "machineId,number of GPUs, single GPU mem\nm1,8, 24GB\nm2,2, 12GB\n"
)

// files writes the two files of a trace and returns a scenario that names them.
func files(t testing.TB, format scenariofile.TraceFormat, jobs, nodes string) *scenariofile.Scenario {
	t.Helper()
	dir := t.TempDir()
	tr := &scenariofile.Trace{Format: format, Jobs: filepath.Join(dir, "jobs"), Nodes: filepath.Join(dir, "nodes"), High: "high", Low: "low"}
	for path, text := range map[string]string{tr.Jobs: jobs, tr.Nodes: nodes} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &scenariofile.Scenario{Trace: tr}
}

// outline is a scenario's nodes and jobs, a line each.
func outline(s *scenariofile.Scenario) string {
	var lines []string
	for _, n := range s.Nodes {
		count := 1
		if n.Count != nil {
			count = *n.Count
		}
		lines = append(lines, fmt.Sprintf("%d × %s: %s %v", count, n.Name, amounts(n.Allocatable), n.Labels))
	}
	for _, j := range s.Jobs {
		if e := j.Elastic; e != nil {
			lines = append(lines, fmt.Sprintf("%s at %s: %d to %d × %s, %d steps at %s to %s, %s", j.Name, j.Submit, e.Workers.Min, e.Workers.Max,
				amounts(e.Workers.Requests), e.Steps, e.Speed.At(1), e.Speed.At(e.Workers.Max), e.Workers.PriorityClass))
			continue
		}
		g := j.Gang
		line := fmt.Sprintf("%s at %s: %d × %s for %s, %s %s", j.Name, j.Submit, g.Pods, amounts(g.Requests), g.Runs, g.PriorityClass, g.Queue)
		if g.Affinity != nil {
			line += fmt.Sprint(" on ", g.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values)
		}
		if len(g.NodeSelector) > 0 {
			line += fmt.Sprint(" on ", g.NodeSelector)
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, "\n")
}

func amounts(r scenariofile.Resources) string {
	var parts []string
	for _, name := range []string{"cpu", "memory", "nvidia.com/gpu", "alibabacloud.com/gpu-milli"} {
		for resource, amount := range r {
			if string(resource) == name {
				parts = append(parts, amount.String()+" "+name)
			}
		}
	}
	return strings.Join(parts, "+")
}

func TestAlibabas2023PodsShareGPUs(t *testing.T) {
	s := files(t, scenariofile.AlibabaGPU2023, pods2023+
		"openb-pod-0017,88000,327680,8,1000,,Burstable,Succeeded,9437497,10769854,9437500\n"+
		"openb-pod-0022,4000,15258,1,220,nan,BE,Running,9437400,9973826,9679175\n"+
		"openb-pod-0035,16000,32768,1,1000,V100M16|V100M32,LS,Running,9967058,9968575,9967063\n"+
		"openb-pod-0036,1000,1024,0,0,,LS,Pending,9967058,9968575,\n", nodes2023)
	omitted, err := trace.Into(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `1 × openb-node-0: 96 cpu+768Gi memory+8k alibabacloud.com/gpu-milli map[alibabacloud.com/gpu-model:V100M32]
1 × openb-node-1: 32 cpu+256Gi memory map[]
openb-pod-0017 at 1m37s: 1 × 88 cpu+320Gi memory+8k alibabacloud.com/gpu-milli for 370h5m54s, low
openb-pod-0022 at 0s: 1 × 4 cpu+15258Mi memory+220 alibabacloud.com/gpu-milli for 81h50m51s, low
openb-pod-0035 at 147h7m38s: 1 × 16 cpu+32Gi memory+1k alibabacloud.com/gpu-milli for 25m12s, high  on [V100M16 V100M32]`
	if got := outline(s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(omitted) != 1 || omitted[0].Rows != 1 {
		t.Errorf("left out: %v", omitted)
	}
}

func TestAlibabas2026JobsAreImportantOrSpot(t *testing.T) {
	s := files(t, scenariofile.AlibabaSpot2026, jobs2026+"239255,13,A10,20,1,1,0,2764799,HP\n437260,57,A100-SXM4-80GB,15.5,2,16,9589663,41060,Spot\n", nodes2026)
	if _, err := trace.Into(s); err != nil {
		t.Fatal(err)
	}
	want := `1 × node-0: 128 cpu+8 nvidia.com/gpu map[alibabacloud.com/gpu-model:A100-SXM4-80GB]
1 × node-1: 128 cpu+1 nvidia.com/gpu map[alibabacloud.com/gpu-model:A10]
job-239255 at 0s: 1 × 20 cpu+1 nvidia.com/gpu for 767h59m59s, high  on map[alibabacloud.com/gpu-model:A10]
job-437260 at 2663h47m43s: 16 × 15500m cpu+2 nvidia.com/gpu for 11h24m20s, low  on map[alibabacloud.com/gpu-model:A100-SXM4-80GB]`
	if got := outline(s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHeliosJobsWithGPUsBecomeGangs(t *testing.T) {
	s := files(t, scenariofile.Helios, helios+
		"1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"+
		"1425512,uVMrF,vchbv,12,48,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"+
		"1425513,uzqls,vcpDC,0,4,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:45:36,249,0\n"+
		"1425514,uzqls,vcpDC,1,1,1,CANCELLED,2020-06-09 18:41:28,None,2020-06-17 14:15:21,675233,0\n", gpuNumber)
	omitted, err := trace.Into(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `3 × node: 8 nvidia.com/gpu map[]
job-1425511 at 0s: 1 × 1 nvidia.com/gpu for 10h14m8s, low
job-1425512 at 26s: 2 × 6 nvidia.com/gpu for 4m9s, low`
	if got := outline(s); got != want || len(omitted) != 2 {
		t.Errorf("got\n%s\nwant\n%s\nleft out: %v", got, want, omitted)
	}
}

const phillyJobs = `[
  {"status": "Pass", "vc": "ee9e8c", "jobid": "application_1506638472019_14199", "attempts": [
    {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:23", "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}]},
    {"start_time": "2017-10-07 01:13:30", "end_time": "2017-10-07 02:13:30", "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]}
  ], "submitted_time": "2017-10-07 01:11:39", "user": "ce2f4c"},
  {"status": "Killed", "vc": "ee9e8c", "jobid": "application_1506638472019_14200", "attempts": [], "submitted_time": "2017-10-07 01:11:39", "user": "u"},
  {"status": "Failed", "vc": "11cb48", "jobid": "application_1506638472019_14201", "attempts": [
    {"start_time": "2017-10-07 01:12:09", "end_time": null, "detail": [{"ip": "m47", "gpus": ["gpu0"]}]}], "submitted_time": "2017-10-07 01:11:30", "user": "u"},
  {"status": "Pass", "vc": "11cb48", "jobid": "application_1506638472019_14202", "attempts": [
    {"start_time": "2017-10-07 01:12:00", "end_time": "2017-10-07 01:22:00", "detail": [{"ip": "m47", "gpus": ["gpu0"]}]}], "submitted_time": "2017-10-07 01:11:29", "user": "u"}
]
`

func TestPhillysJobsRunAsLongAsAllTheirAttempts(t *testing.T) {
	s := files(t, scenariofile.Philly, phillyJobs, machines)
	omitted, err := trace.Into(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `1 × m1: 8 nvidia.com/gpu map[]
1 × m2: 2 nvidia.com/gpu map[]
application-1506638472019-14199 at 10s: 2 × 2 nvidia.com/gpu for 1h1m14s, low
application-1506638472019-14202 at 0s: 1 × 1 nvidia.com/gpu for 10m0s, low`
	if got := outline(s); got != want || len(omitted) != 2 {
		t.Errorf("got\n%s\nwant\n%s\nleft out: %v", got, want, omitted)
	}
}

func TestAPolicyMakesElasticJobsAndQueues(t *testing.T) {
	s := files(t, scenariofile.Philly, phillyJobs, machines)
	s.Trace.Elastic, s.Trace.Queue, s.Trace.QueueOf, s.Trace.Limit = true, "vc", "group", 2
	s.LocalQueues = []scenariofile.LocalQueue{{Name: "vc-ee9e8c"}, {Name: "vc-11cb48"}}
	if _, err := trace.Into(s); err != nil {
		t.Fatal(err)
	}
	if e := s.Jobs[0].Elastic; e == nil || e.Queue.Name != "vc-ee9e8c" || len(s.Jobs) != 2 {
		t.Fatalf("%s", outline(s))
	}
	if got, want := strings.Split(outline(s), "\n")[2], "application-1506638472019-14199 at 10s: 1 to 2 × 2 nvidia.com/gpu, 7348 steps at 1 to 2, high"; got != strings.Replace(want, "high", "low", 1) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNodesOfTheScenarioReplaceTheTraces(t *testing.T) {
	s := files(t, scenariofile.Helios, helios+"1,u,vc,4,16,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:45:36,0,0\n", "")
	s.Nodes = []scenariofile.NodeGroup{{Name: "mine", Allocatable: scenariofile.Resources{}}}
	if _, err := trace.Into(s); err != nil {
		t.Fatal(err)
	}
	if got, want := outline(s), "1 × mine:  map[]\njob-1 at 0s: 2 × 8 cpu+2 nvidia.com/gpu for 4m35s, low"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestEachJobOfATraceMaySaveAtAnIntervalOfItsOwn(t *testing.T) {
	const least, most = scenariofile.Duration(600_000), scenariofile.Duration(3_600_000)
	drawn := func(seed uint64) (all []scenariofile.Duration) {
		s := &scenariofile.Scenario{Seed: seed, Trace: &scenariofile.Trace{
			Format: scenariofile.Synthetic, Limit: 100, CheckpointEvery: least, CheckpointUpTo: most,
		}}
		if _, err := trace.Into(s); err != nil {
			t.Fatal(err)
		}
		for _, j := range s.Jobs {
			all = append(all, j.Gang.CheckpointEvery)
		}
		return all
	}
	first := drawn(1)
	if !slices.Equal(first, drawn(1)) || slices.Equal(first, drawn(2)) {
		t.Error("the intervals are not a function of the seed")
	}
	if low, high := slices.Min(first), slices.Max(first); low < least || high > most || high-low < (most-least)/2 {
		t.Errorf("the intervals are from %v to %v", low, high)
	}
}

func TestASyntheticTraceIsTheSameForTheSameSeed(t *testing.T) {
	drawn := func(seed uint64) string {
		s := &scenariofile.Scenario{Seed: seed, Trace: &scenariofile.Trace{Format: scenariofile.Synthetic, Limit: 200}}
		if _, err := trace.Into(s); err != nil {
			t.Fatal(err)
		}
		return outline(s)
	}
	first, again, other := drawn(1), drawn(1), drawn(2)
	if first != again || first == other {
		t.Error("a synthetic trace is not a function of its seed")
	}
}

func TestBrokenTracesAreRefusedWithLineAndColumn(t *testing.T) {
	for name, test := range map[string]struct {
		format      scenariofile.TraceFormat
		jobs, nodes string
		want        string
	}{
		"an empty file":             {scenariofile.AlibabaSpot2026, "", nodes2026, "jobs:1:1: is empty"},
		"a column that is missing":  {scenariofile.AlibabaSpot2026, "job_name,gpu_model\n", nodes2026, `jobs:1:1: there is no column "organization"`},
		"a row that is too short":   {scenariofile.AlibabaSpot2026, jobs2026 + "1,2\n", nodes2026, "jobs:2:1: wrong number of fields"},
		"a quote that does not end": {scenariofile.AlibabaSpot2026, jobs2026 + "\"1,2\n", nodes2026, "jobs:2:6: extraneous or missing"},
		"a text for a number":       {scenariofile.AlibabaSpot2026, jobs2026 + "1,2,A10,x,1,1,0,10,HP\n", nodes2026, `jobs:2:9: cpu_request is "x" where a number`},
		"a negative number":         {scenariofile.AlibabaSpot2026, jobs2026 + "1,2,A10,1,1,1,-5,10,HP\n", nodes2026, `jobs:2:15: submit_time is "-5" where a number`},
		"a number beyond all":       {scenariofile.AlibabaSpot2026, jobs2026 + "1,2,A10,1,1,1,0,99999999999999,HP\n", nodes2026, "jobs:2:17: duration is 99999999999999; more than"},
		"a billion workers":         {scenariofile.AlibabaSpot2026, jobs2026 + "1,2,A10,1,1,1000000000,0,10,HP\n", nodes2026, `jobs:2:1: job "job-1" has 1000000000 pods`},
		"a type of its own":         {scenariofile.AlibabaSpot2026, jobs2026 + "1,2,A10,1,1,1,0,10,Free\n", nodes2026, `jobs:2:20: job_type is "Free"; it is HP or Spot`},
		"a job twice":               {scenariofile.AlibabaSpot2026, jobs2026 + "1,2,A10,1,1,1,0,10,HP\n1,2,A10,1,1,1,0,10,HP\n", nodes2026, `jobs:3:1: job "job-1" is here twice`},
		"a node twice":              {scenariofile.AlibabaGPU2023, pods2023, nodes2023 + "openb-node-0,1,1,0,\n", `nodes:4:1: node "openb-node-0" is here twice`},
		"a date of another kind":    {scenariofile.Helios, helios + "1,u,vc,1,1,1,COMPLETED,09.06.2020,2020-06-09 18:41:01,2020-06-10 04:55:09,1,0\n", gpuNumber, `jobs:2:24: submit_time is "09.06.2020"`},
		"no list of jobs":           {scenariofile.Philly, `{"a": 1}`, machines, "jobs:1:1: is not a JSON list of jobs"},
		"JSON that breaks off":      {scenariofile.Philly, "[\n {\"jobid\": \"a\",\n", machines, "jobs:"},
		"JSON that is wrong":        {scenariofile.Philly, "[\n {\"jobid\": \"a\", x}]\n", machines, "jobs:2:"},
		"a number for a text":       {scenariofile.Philly, "[\n {\"jobid\": 5}]\n", machines, "jobs:2:"},
		"a time that is none":       {scenariofile.Philly, strings.Replace(phillyJobs, "2017-10-07 01:12:09", "yesterday", 1), machines, `attempts[0].start_time is "yesterday"`},
		"no job that can be run":    {scenariofile.Philly, "[]", machines, "no job in it can be simulated"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trace.Into(files(t, test.format, test.jobs, test.nodes))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestARowWithoutEndIsRefusedBeforeMemoryGrows(t *testing.T) {
	s := files(t, scenariofile.AlibabaSpot2026, jobs2026, nodes2026)
	f, err := os.OpenFile(s.Trace.Jobs, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`"`); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 36); err != nil {
		t.Fatal("a sparse file: ", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = trace.Into(s)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "a row is longer than") {
		t.Errorf("%v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("a row of 64 GiB made memory grow by %d bytes", grown)
	}
}

func FuzzInto(f *testing.F) {
	formats := []scenariofile.TraceFormat{scenariofile.AlibabaGPU2023, scenariofile.AlibabaSpot2026, scenariofile.Philly, scenariofile.Helios}
	f.Add(0, pods2023+"p,1,1,1,1,,BE,Running,1,3,2\n", nodes2023)
	f.Add(1, jobs2026+"1,2,A10,1,1,1,0,10,HP\n", nodes2026)
	f.Add(2, phillyJobs, machines)
	f.Add(3, helios+"1,u,vc,4,16,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:45:36,0,0\n", gpuNumber)
	f.Fuzz(func(t *testing.T, format int, jobs, nodes string) {
		s := files(t, formats[uint(format)%uint(len(formats))], jobs, nodes)
		if _, err := trace.Into(s); err != nil {
			return
		}
		for _, j := range s.Jobs {
			if j.Gang == nil || j.Gang.Runs <= 0 || j.Submit < 0 || j.Gang.Pods < 1 {
				t.Fatalf("job %+v cannot be simulated", j)
			}
		}
	})
}
