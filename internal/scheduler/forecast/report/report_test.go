package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/report"
)

func sample() report.Report {
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	return report.Report{
		Entries: []report.Entry{
			{Address: `kubernetes_job_v1.a["x|y"]`, Action: "create", Answer: forecast.Answer{Namespace: "ml", Name: "a", AsOf: at, Outcome: forecast.Fits}},
			{Address: "elastic_task.b", Action: "replace", Answer: forecast.Answer{
				Namespace: "default", Name: "b", AsOf: at, Outcome: forecast.Preempts,
				Evicts: []forecast.Eviction{{Namespace: "default", Name: "web-<1>", Owner: "Deployment web", Certain: true, Outcome: "it is gone @all"}},
			}},
			{Address: "elastic_task.c", Action: "create", Unknown: "its name is not known until apply"},
		},
		Skipped: []string{"helm_release.d: its manifest is not known until apply"},
	}
}

func TestMarkdownIsATableWithTheWorstOutcomeFirst(t *testing.T) {
	var out strings.Builder
	if err := sample().Markdown(&out); err != nil {
		t.Fatal(err)
	}
	want := report.Marker + `
### Forecast: 3 jobs, others are evicted; 2 not known

| outcome | job | change | evicts |
|---|---|---|---|
| fits | ml/a | create kubernetes&#95;job&#95;v1.a&#91;"x&#124;y"&#93; |  |
| preempts | b | replace elastic&#95;task.b | default/web-&#60;1&#62; of Deployment web |
| not known: its name is not known until apply |  | create elastic&#95;task.c |  |

- not forecast: helm&#95;release.d: its manifest is not known until apply
`
	if got := out.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if strings.Contains(out.String(), "@all") || strings.Count(out.String(), "<details>") != 2 {
		t.Errorf("the details are:\n%s", out.String())
	}
}

func TestMarkdownFitsIntoAComment(t *testing.T) {
	r := sample()
	for range 12 {
		r.Entries = append(r.Entries, r.Entries...)[:min(2*len(r.Entries), 5000)]
	}
	var out strings.Builder
	if err := r.Markdown(&out); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 65_536 || !strings.Contains(out.String(), "do not fit here") {
		t.Errorf("%d characters", out.Len())
	}
}

func TestTextAndJSONNameWhatIsNotKnown(t *testing.T) {
	var text, lines strings.Builder
	if err := sample().Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := sample().JSON(&lines); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"b will preempt (replace elastic_task.b)", "a job without a name yet (create elastic_task.c) cannot be forecast: its name is not known until apply.", "not forecast: helm_release.d"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("%q is missing in the text:\n%s", part, text.String())
		}
	}
	for _, part := range []string{`{"address":"elastic_task.b","action":"replace","namespace":"default"`, `"unknown":"its name is not known until apply"`, `{"skipped":"helm_release.d`} {
		if !strings.Contains(lines.String(), part) {
			t.Errorf("%q is missing in the JSON:\n%s", part, lines.String())
		}
	}
	if worst := sample().Worst(); worst != forecast.Preempts {
		t.Errorf("the worst is %s", worst)
	}
}
