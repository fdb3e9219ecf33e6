package openmetrics_test

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history/historytest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/openmetrics"
)

func scrape(t *testing.T, h *history.History) string {
	t.Helper()
	var text bytes.Buffer
	if err := openmetrics.Write(&text, h); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func histories() map[string]*history.History {
	h := historytest.NewRun(4, 5*time.Minute).Succeed()
	h.Received, h.Sent = 1000, 2000
	return map[string]*history.History{
		"a run that has ended":      h,
		"a run that continues":      historytest.NewRun(2, time.Minute).History,
		"one that has just begun":   historytest.Begin("job", 1).History,
		"one with a name of quotes": historytest.Begin("a\"b\\c\nd", 1).History,
	}
}

func TestNamesAndUnitsAreAsPrometheusAsksFor(t *testing.T) {
	for name, h := range histories() {
		problems, err := promlint.New(strings.NewReader(scrape(t, h))).Lint()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s: %s", name, p.Metric, p.Text)
		}
	}
}

func parse(t *testing.T, h *history.History) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrape(t, h)))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func TestAScrapeIsReadBackAsItWasMeant(t *testing.T) {
	h := histories()["a run that has ended"]
	families := parse(t, h)
	for name, want := range map[string]float64{
		"elastic_trainer_step": 6000, "elastic_trainer_steps_planned": 6000, "elastic_trainer_steps_total": float64(h.Steps), "elastic_trainer_records_total": float64(h.Records),
		"elastic_trainer_preemptions_total": float64(h.Preemptions), "elastic_trainer_worker_losses_total": float64(h.Losses), "elastic_trainer_generation": 1, "elastic_trainer_master_restarts_total": 0,
		"elastic_trainer_received_bytes_total": 1000, "elastic_trainer_sent_bytes_total": 2000, "elastic_trainer_loss": *h.Status.Loss, "elastic_trainer_goodput_ratio": *h.Goodput(),
		"elastic_trainer_checkpoint_step": 800, "elastic_trainer_epochs_planned": 3, "elastic_trainer_info": 1,
		"elastic_trainer_disruptions_total": float64(h.Status.Disruptions.Count), "elastic_trainer_lost_steps_total": float64(h.Status.Disruptions.LostSteps),
		"elastic_trainer_lost_seconds_total": h.Status.Disruptions.LostSeconds, "elastic_trainer_recovery_seconds": *h.Status.Disruptions.Newest[len(h.Status.Disruptions.Newest)-1].Recovered,
	} {
		f := families[name]
		if f == nil || len(f.Metric) != 1 {
			t.Errorf("%s is not there once", name)
			continue
		}
		m := f.Metric[0]
		if got := m.GetGauge().GetValue() + m.GetCounter().GetValue(); got != want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	steps := families["elastic_trainer_step_duration_seconds"].Metric[0].Histogram
	if steps.GetSampleCount() != uint64(h.Times.Count) || steps.GetSampleSum() != h.Times.Sum.Seconds() {
		t.Errorf("%d steps took %g s", steps.GetSampleCount(), steps.GetSampleSum())
	}
	var before uint64
	for _, b := range steps.Bucket {
		if b.GetCumulativeCount() < before {
			t.Errorf("fewer steps took at most %g s than less", b.GetUpperBound())
		}
		before = b.GetCumulativeCount()
	}
	if before != steps.GetSampleCount() {
		t.Errorf("the last class has %d of %d steps", before, steps.GetSampleCount())
	}
}

func TestOnePhaseIsOneAndWorkersAreCountedByState(t *testing.T) {
	h := histories()["a run that continues"]
	families := parse(t, h)
	byLabel := func(name string) map[string]float64 {
		values := map[string]float64{}
		for _, m := range families[name].GetMetric() {
			values[m.Label[0].GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
		return values
	}
	if got := byLabel("elastic_trainer_phase"); got["Running"] != 1 || got["Waiting"] != 0 || len(got) != 7 {
		t.Errorf("phases %v", got)
	}
	if got, want := byLabel("elastic_trainer_workers"), map[string]float64{"pending": 1, "starting": 0, "joining": 0, "ready": 1}; !maps.Equal(got, want) {
		t.Errorf("workers %v", got)
	}
	if got := byLabel("elastic_trainer_goodput_seconds_total"); len(got) != 6 || got["computing"] <= 0 || !maps.Equal(got, byPhase(h.Status.GoodputSplit)) {
		t.Errorf("goodput phases %v", got)
	}
	if got := byLabel("elastic_trainer_gradients_total"); len(got) != 2 || got["1"] == 0 {
		t.Errorf("gradients %v: of those that are there, and of no others", got)
	}
}

func TestDisruptionsOfAllMastersAreCountedAndTheNewestRecoveryIsShown(t *testing.T) {
	h := historytest.Begin("job", 1).History
	first, second := 4.5, 1.25
	h.Status.Disruptions = &trainingjob.Disruptions{
		Count: 7, LostSteps: 12, LostSeconds: 3.5, Newest: []trainingjob.Disruption{{Recovered: &first}, {Recovered: &second}, {}},
	}
	families := parse(t, h)
	for name, want := range map[string]float64{"disruptions_total": 7, "lost_steps_total": 12, "lost_seconds_total": 3.5, "recovery_seconds": 1.25} {
		f := families["elastic_trainer_"+name]
		if f == nil || len(f.Metric) != 1 || f.Metric[0].GetGauge().GetValue()+f.Metric[0].GetCounter().GetValue() != want {
			t.Errorf("%s is %v, want %g", name, f, want)
		}
	}
}

func byPhase(split *trainingjob.GoodputSplit) map[string]float64 {
	values := map[string]float64{}
	for phase, seconds := range split.Seconds {
		values[string(phase)] = seconds
	}
	return values
}

func TestTheGuideNamesEveryMetricAndNoOther(t *testing.T) {
	guide, err := os.ReadFile("../../../../templates/guides/watching-a-job.md")
	if err != nil {
		t.Fatal(err)
	}
	documented, served := map[string]bool{}, map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| .elastic_trainer_.*$`).FindAllString(string(guide), -1) {
		for _, name := range regexp.MustCompile(`elastic_trainer_\w+`).FindAllString(row, -1) {
			documented[name] = true
		}
	}
	for _, h := range histories() {
		for name := range parse(t, h) {
			served[name] = true
		}
	}
	if !maps.Equal(documented, served) {
		t.Errorf("the guide has %v, and served are %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(served)))
	}
}

func TestWhatIsNotKnownIsAbsent(t *testing.T) {
	families := parse(t, histories()["one that has just begun"])
	for _, name := range []string{"loss", "goodput_ratio", "checkpoint_step", "checkpoint_timestamp_seconds", "metric", "gradients_total", "recovery_seconds"} {
		if families["elastic_trainer_"+name] != nil {
			t.Errorf("%s is there before it is known", name)
		}
	}
}
