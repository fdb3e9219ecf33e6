package status

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/history/historytesting"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/web"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// patience is how long something awaited may take.
const patience = 30 * time.Second

// text is what a page shows in an element now.
func text(ctx context.Context, t *testing.T, selector string) string {
	t.Helper()
	var got string
	if err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q).textContent", selector), &got)); err != nil {
		t.Fatal(err)
	}
	return got
}

func await(ctx context.Context, t *testing.T, selector, what string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for got := ""; time.Now().Before(deadline); {
		if got = text(ctx, t, selector); strings.Contains(got, what) {
			return
		}
		wait := time.NewTimer(100 * time.Millisecond)
		<-wait.C
	}
	t.Fatalf("%s never showed %q; it shows %q", selector, what, text(ctx, t, selector))
}

func TestALivePageOf16WorkersChangesInPlaceUntilItsEnd(t *testing.T) {
	ctx := browse(t)
	recorder := history.NewRecorder(historytesting.Begin("many-workers", 16).History.Job)
	report := func(step int64, message string) {
		s := trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: step, StepsTotal: 1000, Generation: 2, Message: message}
		for id := range 16 {
			s.Workers = append(s.Workers, trainingjob.WorkerStatus{ID: id, State: "ready", Gradients: step})
		}
		s.WorkersRunning = 16
		recorder.Reported(s)
		recorder.Stepped(history.Step{Records: 160, LossSum: 160 / float64(step+1)})
	}
	report(1, "")
	server, err := web.Start(t.Context(), "127.0.0.1:0", recorder, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	look(ctx, t, server.URL(), "live-16-workers", "#head")
	await(ctx, t, "#connection", "live")
	if err := chromedp.Run(ctx, chromedp.Evaluate(`document.getElementById("curves").open = true; document.getElementById("about").dataset.mine = "kept"`, nil)); err != nil {
		t.Fatal(err)
	}
	report(234, `<b onclick="alert(1)">a hostile message</b>`)
	await(ctx, t, "#head", "step 234 of 1,000")
	await(ctx, t, "#head .said", `<b onclick="alert(1)">a hostile message</b>`)
	var open bool
	if err := chromedp.Run(ctx, chromedp.Evaluate(`document.getElementById("curves").open`, &open)); err != nil || !open {
		t.Errorf("what a reader has opened is closed (%v)", err)
	}
	recorder.Reported(trainingjob.Status{Phase: trainingjob.PhaseSucceeded, StepsDone: 1000, StepsTotal: 1000})
	recorder.Finished("")
	server.Close()
	await(ctx, t, "#connection", "has ended")
	await(ctx, t, "#head", "succeeded")
}

var served = regexp.MustCompile(`page\s+(http://\S+/)`)

// lines collects what a program prints.
type lines struct {
	url  chan string
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.text.Write(b)
	if found := served.FindStringSubmatch(l.text.String()); found != nil {
		select {
		case l.url <- found[1]:
		default:
		}
	}
	return len(b), nil
}

func TestTheRealTrainersPageShowsALostWorkerAndItsReportStays(t *testing.T) {
	ctx := browse(t)
	trainer := os.Getenv("ELASTIC_TRAINER_BIN")
	if trainer == "" {
		t.Fatal("ELASTIC_TRAINER_BIN is not set; `make test` builds the trainer and sets it")
	}
	output := t.TempDir()
	printed := &lines{url: make(chan string, 1)}
	c := exec.CommandContext(t.Context(), trainer, "train", "--model-file", "../../examples/models/mnist_functional_api.py",
		"--train-data-dir", "synthetic://digits?records=10000&seed=1", "--output", output, "--num-worker", "2", "--pace", "20ms", "--num-epoch", "50", "--status-address", "127.0.0.1:0")
	c.Stdout, c.Stderr = printed, printed
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var url string
	select {
	case url = <-printed.url:
	case err := <-ended:
		t.Fatalf("%v\n%s", err, printed.text.String())
	case <-time.After(patience):
		t.Fatal("the trainer never said where its page is")
	}
	if err := chromedp.Run(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "#workers", "computing")
	killChild(t, c.Process.Pid)
	await(ctx, t, "#workers", "lost")
	await(ctx, t, "#notices", "worker 2 joined")
	look(ctx, t, url, "live-2-workers", "#workers table")
	metrics := get(t, url+"metrics")
	for _, want := range []string{"elastic_trainer_worker_losses_total 1", `elastic_trainer_workers{state="ready"} 2`, "elastic_trainer_step_duration_seconds_count"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%q is not in\n%s", want, metrics)
		}
	}
	if got := get(t, url+"healthz"); got != "ok\n" {
		t.Errorf("healthz: %q", got)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ended
	reports, err := filepath.Glob(filepath.Join(output, "*", "report.html"))
	if err != nil || len(reports) != 1 {
		t.Fatalf("%d reports (%v)\n%s", len(reports), err, printed.text.String())
	}
	look(ctx, t, "file://"+reports[0], "interrupted", "#workers table")
	if got := text(ctx, t, "#head"); !strings.Contains(got, "interrupted") || !strings.Contains(got, "goes on when it is started again") {
		t.Errorf("the report's head is %q", got)
	}
}

// killChild kills one of a trainer's workers.
func killChild(t *testing.T, parent int) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		var pid int
		if _, err := fmt.Sscan(string(children), &pid); err != nil {
			continue // it has none
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("the trainer has no workers")
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, response.Status, err)
	}
	return string(body)
}
