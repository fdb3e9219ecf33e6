package status

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/elastic-training/terraform-provider-elastic/e2e/program"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history/historytest"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web/webtest"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// text is what a page shows in an element now.
func text(ctx context.Context, t *testing.T, selector string) string {
	t.Helper()
	var got string
	if err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q).textContent", selector), &got)); err != nil {
		t.Fatal(err)
	}
	return got
}

// awaitText waits until an element shows something.
func awaitText(ctx context.Context, t *testing.T, selector, what string) {
	t.Helper()
	limited, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	err := await.Until(limited, fmt.Sprintf("%s shows %q", selector, what), 100*time.Millisecond, func(context.Context) error {
		if got := text(ctx, t, selector); !strings.Contains(got, what) {
			return fmt.Errorf("it shows %q", got)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestALivePageOf16WorkersChangesInPlaceUntilItsEnd(t *testing.T) {
	ctx := browse(t)
	recorder := history.NewRecorder(historytest.Begin("many-workers", 16).History.Job)
	report := func(step int64, message string) {
		s := trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: step, StepsTotal: 1000, Generation: 2, Message: message}
		for id := range 16 {
			s.Workers = append(s.Workers, trainingjob.WorkerStatus{ID: id, State: "ready", Gradients: step})
		}
		s.WorkersRunning = 16
		recorder.OnStatus(s)
		recorder.OnStep(history.Step{Records: 160, LossSum: 160 / float64(step+1)})
	}
	report(1, "")
	server, err := web.Start(t.Context(), "127.0.0.1:0", recorder, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	look(ctx, t, server.URL(), "live-16-workers", "#head")
	awaitText(ctx, t, "#connection", "live")
	if err := chromedp.Run(ctx, chromedp.Evaluate(`document.getElementById("curves").open = true; document.getElementById("about").dataset.mine = "kept"`, nil)); err != nil {
		t.Fatal(err)
	}
	report(234, `<b onclick="alert(1)">a hostile message</b>`)
	awaitText(ctx, t, "#head", "step 234 of 1,000")
	awaitText(ctx, t, "#head .said", `<b onclick="alert(1)">a hostile message</b>`)
	var open bool
	if err := chromedp.Run(ctx, chromedp.Evaluate(`document.getElementById("curves").open`, &open)); err != nil || !open {
		t.Errorf("what a reader has opened is closed (%v)", err)
	}
	recorder.OnStatus(trainingjob.Status{Phase: trainingjob.PhaseSucceeded, StepsDone: 1000, StepsTotal: 1000})
	recorder.OnFinish("")
	server.Close()
	awaitText(ctx, t, "#connection", "has ended")
	awaitText(ctx, t, "#head", "succeeded")
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
	trainer, err := program.Trainer(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	output := t.TempDir()
	printed := &lines{url: make(chan string, 1)}
	c := exec.CommandContext(t.Context(), trainer, "train", "--model-file", "../../examples/models/mnist_functional_api.py",
		"--train-data-dir", "synthetic://digits?records=10000&seed=1", "--output", output, "--num-worker", "2", "--pace", "20ms", "--num-epoch", "50", "--grads-to-wait", "2", "--status-address", "127.0.0.1:0")
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
	case <-time.After(patience.Medium):
		t.Fatal("the trainer never said where its page is")
	}
	if err := chromedp.Run(ctx, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	awaitText(ctx, t, "#workers", "computing")
	killChild(t, c.Process.Pid)
	awaitText(ctx, t, "#workers", "lost")
	awaitText(ctx, t, "#notices", "worker 2 joined")
	look(ctx, t, url, "live-2-workers", "#workers table")
	metrics := webtest.Get(t, url+"metrics")
	for _, want := range []string{"elastic_trainer_worker_losses_total 1", `elastic_trainer_workers{state="ready"} 2`, "elastic_trainer_step_duration_seconds_count"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%q is not in\n%s", want, metrics)
		}
	}
	if got := webtest.Get(t, url+"healthz"); got != "ok\n" {
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
	if got := text(ctx, t, "#head"); !strings.Contains(got, "interrupted") || !strings.Contains(got, "continues when it is started again") {
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
