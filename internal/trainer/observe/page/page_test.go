package page_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history/historytest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/page"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

func TestReportHasTheResultOfTheRun(t *testing.T) {
	report := string(page.Report(historytest.NewRun(4, 5*time.Minute).Succeed(), historytest.Began.Add(time.Hour)))
	for _, want := range []string{
		"low-prio-job", "succeeded", "step 6,000 of 6,000", "3 epochs of 60,000 records", "goodput", "computing", "recovering", "of the whole time", "records per second", "loss while training, and of the validation data (dots), logarithmic", "Evaluations",
		"worker 0 was preempted after 40 s: preempted by default/high-prio-job-worker-0 on node node-1", "worker 1 was lost: connection reset by peer at step",
		"OOMKilled, exit code 137", "30fcd152bdb9818f28f73b8692d1a67d0b04c1115d4fb90e7ae3af6f46268ed0", "/output/low-prio-job/15e64d5f/model.safetensors", "The curves as numbers",
		"<h2>Disruptions</h2>", "<td>low-prio-job-worker-0</td><td>preempted</td>", "PreemptionByScheduler</td><td>pod default/high-prio-job-worker-0</td>",
		"0 steps and ",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	for _, unwanted := range []string{"<script", "noscript", "http:", "https:", "@import", "src=", "url(http"} {
		if strings.Contains(report, unwanted) {
			t.Errorf("the report, which is to be opened without a network, holds %q", unwanted)
		}
	}
}

func TestThePageListsDisruptionsWithTheirCostTheNewestFirst(t *testing.T) {
	h := historytest.Begin("job", 1).History
	took := 1.5
	const foreign = `<b onclick="x">`
	h.Status.Disruptions = &trainingjob.Disruptions{Count: 9, LostSteps: 12, LostSeconds: 3.5, Newest: []trainingjob.Disruption{
		{
			At: h.Began.Add(-time.Hour), Role: trainingjob.RoleMaster, Step: 40, LostSteps: 12, LostSeconds: 3.5, Recovered: &took,
			DisruptionCause: trainingjob.DisruptionCause{Kind: trainingjob.DisruptionLost},
		},
		{At: h.Began, DisruptionCause: trainingjob.DisruptionCause{Pod: "job-worker-1", Kind: trainingjob.DisruptionPreempted, Reason: foreign}},
	}}
	body := page.Body(h, h.Began)
	master := `<td>2026-05-04 09:00:00</td><td>the master</td><td>lost</td><td class="reason"></td><td></td>` +
		`<td class="number">40</td><td class="number">12</td><td>3.5 s</td><td>1.5 s</td><td>not yet</td>`
	worker := "<td>job-worker-1</td><td>preempted</td>"
	for _, want := range []string{master, worker, "<td>unknown</td>", "12 steps and 3.5 s lost", "7 disruptions before these"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q:\n%s", want, body)
		}
	}
	if strings.Index(body, worker) > strings.Index(body, master) || strings.Contains(body, foreign) {
		t.Errorf("the order is wrong, or foreign markup is not escaped:\n%s", body)
	}
	if err := wellFormed(body); err != nil {
		t.Error(err)
	}
}

func TestEachWorkerHasALaneOfItsOwnUntilThereAreTooMany(t *testing.T) {
	for workers, lanes := range map[int]int{2: 8, 16: 22, 40: 40} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			h := historytest.NewRun(workers, 4*time.Minute).History
			got := strings.Count(page.Body(h, h.Began.Add(h.Now)), `<rect class="lane"`) / 2 // two pictures
			if got != lanes {
				t.Errorf("%d workers, of which %d at a time, have %d lanes, want %d", len(h.Workers), workers, got, lanes)
			}
		})
	}
}

func TestAPageSaysHowManyProcessesRunOnEachWorker(t *testing.T) {
	for _, epochs := range []int{0, 2} { // a command, and a loop with collectives of its own
		for processes, want := range map[int]bool{0: false, 4: true} {
			h := history.New(history.Job{Name: "job", Epochs: epochs}, historytest.Began)
			h.OnStatus(h.Began, trainingjob.Status{Phase: trainingjob.PhaseRunning, Processes: processes})
			if found := strings.Contains(page.Body(h, h.Began), "4 processes on each worker"); found != want {
				t.Errorf("%d epochs and %d processes: said %v", epochs, processes, found)
			}
		}
	}
}

func TestALivePageMayRunItsOwnScriptAndNothingElse(t *testing.T) {
	h := historytest.NewRun(2, time.Minute).History
	live := string(page.Live(h, h.Began.Add(h.Now)))
	if n := strings.Count(live, "<script"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "connect-src 'self'"} {
		if !strings.Contains(page.Policy, want) {
			t.Errorf("the policy %q lacks %q", page.Policy, want)
		}
	}
	if regexp.MustCompile(` on[a-z]+="`).MatchString(live) {
		t.Error("there is an inline handler, which the policy forbids")
	}
}

// wellFormed checks that a document's elements are closed in order. HTML's void elements and its doctype are XML's with
// little help.
func wellFormed(document string) error {
	decoder := xml.NewDecoder(strings.NewReader(document))
	decoder.Strict, decoder.AutoClose, decoder.Entity = true, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestAnyHistoryMakesAWellFormedPageWithoutForeignMarkup(t *testing.T) {
	phases := []trainingjob.Phase{"", trainingjob.PhaseWaiting, trainingjob.PhaseRunning, trainingjob.PhaseEvaluating, trainingjob.PhaseCannotSave, trainingjob.PhaseSucceeded, trainingjob.PhaseFailed}
	states := []string{"pending", "starting", "joining", "ready"}
	losses := []float64{0, -1, 1e-300, 1e300, 2.3, 0.5}
	const hostile = `</title><script>alert("x")</script>'&` + "\r\n"
	rapid.Check(t, func(t *rapid.T) {
		foreign := rapid.SampledFrom([]string{hostile, "", "name"}).Draw(t, "text")
		h := history.New(history.Job{Name: foreign, Model: foreign, Digest: foreign, Kernel: foreign, Epochs: rapid.IntRange(0, 3).Draw(t, "epochs")}, historytest.Began)
		at := h.Began
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			at = at.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "apart")))
			worker := rapid.IntRange(0, 40).Draw(t, "worker")
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1:
				loss := rapid.SampledFrom(losses).Draw(t, "loss")
				s := trainingjob.Status{Phase: rapid.SampledFrom(phases).Draw(t, "phase"), Message: foreign, StepsDone: 3, StepsTotal: int64(rapid.IntRange(0, 9).Draw(t, "steps")), Loss: &loss, Metrics: map[string]float64{foreign: loss}, CheckpointStep: 1, Generation: 12, OutputFiles: []string{foreign}}
				for id := range worker {
					s.Workers = append(s.Workers, trainingjob.WorkerStatus{ID: id, Pod: foreign, State: rapid.SampledFrom(states).Draw(t, "state"), Reason: foreign})
				}
				h.OnStatus(at, s)
			case 2:
				h.OnStep(at, history.Step{Records: rapid.IntRange(0, 100).Draw(t, "records"), LossSum: rapid.SampledFrom(losses).Draw(t, "loss")})
			case 3:
				h.OnEvent(at, coordinator.Lost{Worker: worker, Reason: foreign})
			case 4:
				h.OnNotice(at, coordinator.Notice{Warning: worker%2 == 0, Message: foreign})
			case 5:
				h.OnEvent(at, coordinator.PodChanged{Worker: worker, State: coordinator.PodEnded, Reason: foreign})
			}
		}
		body := page.Body(h, at)
		if err := wellFormed(body); err != nil {
			t.Fatalf("%v in:\n%s", err, body)
		}
		report := page.Report(h, at)
		if bytes.Contains(report, []byte("<script")) || !bytes.Equal(report, page.Report(h, at)) {
			t.Fatalf("foreign markup, or another page the second time:\n%s", report)
		}
		if bytes.Contains(report, []byte("NaN")) || bytes.Contains(report, []byte("Inf")) {
			t.Fatalf("what is no number is shown:\n%s", report)
		}
	})
}

func TestAPageStaysSmallHoweverLongTheRun(t *testing.T) {
	h := history.New(history.Job{Name: "long"}, historytest.Began)
	at := h.Began
	for id := range 3000 {
		at = at.Add(10 * time.Minute)
		h.OnStatus(at, trainingjob.Status{Phase: trainingjob.PhaseRunning, Workers: []trainingjob.WorkerStatus{{ID: id, State: "ready", Reason: "x"}, {ID: id + 1, State: "ready"}}})
		h.OnStep(at, history.Step{Records: 100, LossSum: 50})
		h.OnNotice(at, coordinator.Notice{Message: "worker joined"})
	}
	if size := len(page.Report(h, at)); size > 256<<10 {
		t.Errorf("%d bytes", size)
	}
}
