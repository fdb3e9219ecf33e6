package truth_test

import (
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// outcome is the forecasts for jobs, and what happened.
type outcome struct {
	answers []forecast.Answer
	refusal string
	truth.Happened
}

var j = truth.Owner{Kind: "Job", Namespace: "default", Name: "j"}

// said is a forecast for j.
func said(pods []forecast.PodForecast, evicts ...forecast.Eviction) []forecast.Answer {
	return []forecast.Answer{{Namespace: "default", Name: "j", Pods: pods, Evicts: evicts}}
}

func starts(role string, nodes ...string) forecast.PodForecast {
	return forecast.PodForecast{Role: role, State: forecast.Starts, Nodes: nodes}
}

func waits(role string, nodes ...string) forecast.PodForecast {
	return forecast.PodForecast{Role: role, State: forecast.Waits, Nodes: nodes}
}

func evicts(name string) forecast.Eviction {
	return forecast.Eviction{Namespace: "default", Name: name, Certain: true, OwnerKind: "Deployment", OwnerName: "web"}
}

func perhaps(name string) forecast.Eviction {
	e := evicts(name)
	e.Certain = false
	return e
}

func gone(names ...string) []truth.Evicted {
	var pods []truth.Evicted
	for _, name := range names {
		pods = append(pods, truth.Evicted{Namespace: "default", Name: name, Node: "n", Owner: truth.Owner{Kind: "Deployment", Namespace: "default", Name: "web"}})
	}
	return pods
}

// runs are j's pods on nodes, "" for those that wait; their numbers are their owner's.
func runs(nodes ...string) map[truth.Owner][]truth.Place {
	places := map[truth.Owner][]truth.Place{}
	for i, node := range nodes {
		places[j] = append(places[j], truth.Place{Name: "j-" + node, Node: node, Index: i})
	}
	return places
}

func TestJudge(t *testing.T) {
	two := []forecast.PodForecast{starts("pod 0", "a"), starts("pod 1", "b", "c")}
	alike := said(two)
	alike[0].Alike = [][]string{{"pod 0", "pod 1"}}
	spared := said(nil, perhaps("web-1"))
	spared[0].MaySpareAll = true
	replaced := gone("web-new")
	replaced[0].New = true
	workload := forecast.Eviction{Workload: true, Certain: true, Namespace: "default", Name: "w", Pods: []string{"default/p"}}
	later := forecast.Answer{Namespace: "default", Name: "k", Evicts: []forecast.Eviction{{Planned: true, Certain: true, Name: "pod 1 of j"}}}
	queued := forecast.Answer{Namespace: "default", Name: "k", Evicts: []forecast.Eviction{{
		Planned: true, Certain: true, Workload: true, Namespace: "default", Name: "j (planned)", OwnerKind: "Job", OwnerName: "j",
	}}}
	for sentence, c := range map[string]struct {
		outcome
		verdict truth.Verdict
		why     string
	}{
		"all pods are on forecast nodes":                        {outcome{answers: said(two), Happened: truth.Happened{Planned: runs("a", "c")}}, truth.Right, ""},
		"a pod is on a node that was not named":                 {outcome{answers: said(two), Happened: truth.Happened{Planned: runs("a", "d")}}, truth.Wrong, "j-d runs on d"},
		"numbered pods do not change places":                    {outcome{answers: said(two), Happened: truth.Happened{Planned: runs("b", "a")}}, truth.Wrong, "j-b runs on b"},
		"those that are alike do":                               {outcome{answers: alike, Happened: truth.Happened{Planned: runs("b", "a")}}, truth.Right, ""},
		"but are not both on the node of one":                   {outcome{answers: alike, Happened: truth.Happened{Planned: runs("a", "a")}}, truth.Wrong, "j-a runs on a"},
		"a pod that starts for certain waits":                   {outcome{answers: said(two), Happened: truth.Happened{Planned: runs("a", "")}}, truth.Wrong, "pod 1 starts on b or c, and does not"},
		"a pod that starts for certain is not made":             {outcome{answers: said(two), Happened: truth.Happened{Planned: runs("a")}}, truth.Wrong, "pod 1 starts"},
		"a pod that waits runs":                                 {outcome{answers: said([]forecast.PodForecast{waits("the pod")}), Happened: truth.Happened{Planned: runs("a")}}, truth.Wrong, "nobody was said to start there but no pod at all"},
		"a pod that perhaps waits runs where it may":            {outcome{answers: said([]forecast.PodForecast{waits("the pod", "a")}), Happened: truth.Happened{Planned: runs("a")}}, truth.Right, ""},
		"a pod that perhaps waits waits":                        {outcome{answers: said([]forecast.PodForecast{waits("the pod", "a")}), Happened: truth.Happened{Planned: runs("")}}, truth.Right, ""},
		"another object of the same name is not the job":        {outcome{answers: said(two), Happened: truth.Happened{Planned: map[truth.Owner][]truth.Place{{Kind: "Job", Namespace: "team", Name: "j"}: runs("a", "b")[j]}}}, truth.Wrong, "pod 0 starts"},
		"a forecast victim is evicted":                          {outcome{answers: said(nil, evicts("web-1")), Happened: truth.Happened{Evicted: gone("web-1")}}, truth.Right, ""},
		"a certain victim stays":                                {outcome{answers: said(nil, evicts("web-1"))}, truth.Wrong, "default/web-1 is evicted for certain, and stays"},
		"a possible victim stays, and it may be none":           {outcome{answers: spared}, truth.Right, ""},
		"all of several victims stay":                           {outcome{answers: said(nil, perhaps("web-1"), perhaps("web-2"))}, truth.Wrong, "one of several pods is evicted, and none is"},
		"one of several victims is evicted":                     {outcome{answers: said(nil, perhaps("web-1"), perhaps("web-2")), Happened: truth.Happened{Evicted: gone("web-2")}}, truth.Right, ""},
		"a victim is not forecast":                              {outcome{answers: said(nil, perhaps("web-1")), Happened: truth.Happened{Evicted: gone("web-2")}}, truth.Wrong, "default/web-2 on n is evicted, and is not named"},
		"the replacement of a victim is evicted too":            {outcome{answers: said(nil, perhaps("web-1")), Happened: truth.Happened{Evicted: replaced}}, truth.Right, ""},
		"a new pod of an owner that is not forecast is evicted": {outcome{answers: said(nil), Happened: truth.Happened{Evicted: replaced}}, truth.Wrong, "web-new"},
		"a workload is evicted with its pods":                   {outcome{answers: said(nil, workload), Happened: truth.Happened{Workloads: []string{"default/w"}, Evicted: gone("p")}}, truth.Right, ""},
		"a forecast workload stays":                             {outcome{answers: said(nil, workload)}, truth.Wrong, "workload default/w is evicted for certain, and stays"},
		"a workload is evicted that was not forecast":           {outcome{answers: said(nil), Happened: truth.Happened{Workloads: []string{"default/w"}}}, truth.Wrong, "workload default/w is evicted, and is not named"},
		"a later job evicts an earlier one's pod":               {outcome{answers: append(said(two), later), Happened: truth.Happened{Planned: runs("a", "")}}, truth.Right, ""},
		"a later job evicts an earlier one's workload":          {outcome{answers: append(said(two), queued), Happened: truth.Happened{Planned: runs("", "")}}, truth.Right, ""},
		"a file that cannot be forecast":                        {outcome{refusal: "no"}, truth.Refused, "no"},
	} {
		t.Run(sentence, func(t *testing.T) {
			verdict, why := truth.Judge(c.answers, c.refusal, c.Happened)
			if verdict != c.verdict || !strings.Contains(strings.Join(why, "\n"), c.why) || (len(why) > 0) != (c.why != "") {
				t.Errorf("got %s %q, want %s with %q", verdict, why, c.verdict, c.why)
			}
		})
	}
}

func TestWhatIsNotCertainIsNotClaimed(t *testing.T) {
	answers := said([]forecast.PodForecast{starts("the pod", "a")})
	if verdict, _ := truth.Judge(answers, "", truth.Happened{}); verdict != truth.Wrong {
		t.Fatalf("without a reservation the verdict is %s", verdict)
	}
	answers[0].Approximate = []forecast.Reason{{Code: forecast.TooManyChoices, Claims: forecast.ClaimPlacement}}
	for node, want := range map[string]truth.Verdict{"": truth.Wrong, "a": truth.Right, "b": truth.Right} {
		if verdict, why := truth.Judge(answers, "", truth.Happened{Planned: runs(node)}); verdict != want {
			t.Errorf("it runs on node %q, which alone is uncertain, and the verdict is %s, for %q", node, verdict, why)
		}
	}
	answers[0].Approximate = []forecast.Reason{forecast.NewReason(forecast.NotModelled, "", "")}
	if verdict, why := truth.Judge(answers, "", truth.Happened{}); verdict != truth.Approximate || len(why) == 0 {
		t.Errorf("with one it is %s, for %q", verdict, why)
	}
}
