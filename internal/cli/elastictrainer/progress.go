package elastictrainer

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/terminal"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// progress prints how a local run goes: in place on a terminal, plain lines elsewhere.
type progress struct {
	out io.Writer
	job *job.Job

	mu       sync.Mutex
	view     *terminal.View // nil: plain lines
	lastStep int64          // the step of the last line
	first    struct {
		at   time.Time
		step int64
	}
}

func newProgress(out io.Writer, j *job.Job) *progress { return &progress{out: out, job: j} }

// watch goes over to a view in place where the output suits it.
func (p *progress) watch(h *history.Recorder) {
	if f, isFile := p.out.(*os.File); isFile && terminal.IsSupported(f) {
		p.view = terminal.Start(f, h)
	}
}

// log is where workers may write: through the view where both would be on one terminal.
func (p *progress) log(w io.Writer) io.Writer {
	if f, isFile := w.(*os.File); p.view != nil && isFile && terminal.IsSupported(f) {
		return p.view
	}
	return w
}

// close ends the view, if there is one.
func (p *progress) close() {
	if p.view != nil {
		p.view.Close()
		p.view = nil
	}
}

// begin reports what will be trained, and what should be known of it before.
func (p *progress) begin(workers int) {
	j := p.job
	each := ""
	if n := j.Spec.Processes(); n > 1 {
		each = fmt.Sprintf(" of %d processes each", n)
	}
	if j.Spec.Restarts() {
		fmt.Fprintf(p.out, "running %s on up to %s%s, job %s\n", j.Graph.Name, wording.Number(workers, "worker"), each, j.Identity.Job[:8])
		return
	}
	records := j.Training.Records()
	fmt.Fprintf(p.out, "training %s: %s, %s, %s of up to %d × %s, %s%s, kernel %s, job %s\n",
		j.Graph.Name, wording.Number(int(records), "record"), wording.Number(j.Spec.Training.Epochs, "epoch"), wording.Number(int(j.Schedule.Steps()), "step"),
		j.Spec.Training.GradsToWait, wording.Number(j.Spec.Training.MinibatchSize, "record"), wording.Number(workers, "worker"), each, j.Kernel.Name, j.Identity.Job[:8])
	warnings := j.Warnings()
	if k, ranks, who := j.Spec.Training.GradsToWait, workers*j.Spec.Processes(), "workers"; ranks > k {
		if each != "" {
			who = "processes"
		}
		warnings = append(warnings, fmt.Sprintf("%d %s, but grads_to_wait is %d: at most %d %s can compute at the same time", ranks, who, k, k, who))
	}
	for _, w := range warnings {
		fmt.Fprintf(p.out, "warning: %s\n", w)
	}
	for _, n := range j.Notices() {
		fmt.Fprintf(p.out, "note: %s\n", n)
	}
}

// served reports where the page is.
func (p *progress) served(url string) { fmt.Fprintf(p.out, "page      %s\n", url) }

// Status implements master.Reporter.
func (p *progress) Status(s trainingjob.Status) {
	if p.view != nil {
		return // it sees more than that
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch s.Phase {
	case trainingjob.PhaseRunning, trainingjob.PhaseEvaluating:
		if p.job.Spec.Restarts() {
			p.first.at = time.Now()
			return // notices say when it starts and stops
		}
		if p.first.at.IsZero() {
			p.first.at, p.first.step = time.Now(), s.StepsDone
			return
		}
		if s.StepsDone == p.lastStep {
			return // an evaluation began or ended
		}
		p.lastStep = s.StepsDone
		fmt.Fprintln(p.out, p.line(s))
	case trainingjob.PhaseWaiting, trainingjob.PhaseCannotSave:
		if !p.first.at.IsZero() || s.Phase == trainingjob.PhaseCannotSave { // starting up is no news
			fmt.Fprintf(p.out, "%s: %s\n", strings.ToLower(string(s.Phase)), s.Message)
		}
	}
}

// line is one status: where, how well, how fast, how long still.
func (p *progress) line(s trainingjob.Status) string {
	done := s.StepsDone
	var b strings.Builder
	fmt.Fprintf(&b, "epoch %d/%d  step %d/%d  %3.0f %%", s.Epoch+1, p.job.Spec.Training.Epochs, done, s.StepsTotal, 100*float64(done)/float64(s.StepsTotal))
	if s.Loss != nil {
		fmt.Fprintf(&b, "  loss %.4f", *s.Loss)
	}
	if elapsed := time.Since(p.first.at).Seconds(); elapsed > 0 && done > p.first.step {
		perSecond := float64(done-p.first.step) / elapsed
		perStep := float64(p.job.Training.Records()) / float64(p.job.Schedule.StepsPerEpoch())
		fmt.Fprintf(&b, "  %.0f records/s", perSecond*perStep)
		if left, known := wording.Remaining(float64(s.StepsTotal-done), perSecond); known && left >= time.Second {
			fmt.Fprintf(&b, "  %s left", left.Round(time.Second))
		}
	}
	fmt.Fprintf(&b, "  %s", wording.Number(s.WorkersRunning, "worker"))
	return b.String()
}

// Notice implements master.Reporter: who comes and goes by force is worth a line.
func (p *progress) Notice(n coordinator.Notice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.Reason == coordinator.ReasonModelSaved || n.Reason == coordinator.ReasonCheckpointed {
		return // the summary has it, and there are too many of them
	}
	if n.Reason == "WorkerJoined" || (n.Reason == "WorkerLeft" && !n.Warning && p.first.at.IsZero()) {
		return
	}
	if p.view != nil {
		p.view.Print(n.Message)
		return
	}
	fmt.Fprintln(p.out, n.Message)
}

// end prints the result, or returns why there is none.
func (p *progress) end(r master.Result) error {
	p.close()
	if r.Report != "" {
		defer func() { fmt.Fprintf(p.out, "report    %s\n", r.Report) }()
	}
	if err := failed(r); err != nil {
		return err
	}
	if p.job.Spec.Restarts() {
		fmt.Fprintf(p.out, "the command has ended with exit code 0 on all workers\njob       %s\n", p.job.Identity.Job)
		return nil
	}
	if r.Model == nil { // of a script that keeps its model itself
		fmt.Fprintf(p.out, "steps     %d\ncheckpoint %s\njob       %s\n", p.job.Schedule.Steps(), filepath.Join(p.job.Spec.CheckpointRoot(), p.job.Identity.Lineage[:8]), p.job.Identity.Job)
		return nil
	}
	m := r.Model
	fmt.Fprintf(p.out, "model     %s\nsha256    %s\nsteps     %d\nloss      %.6g\naccuracy  %.4f  (%d records of %s)\n",
		m.Files[0], m.SHA256, m.Steps, m.Loss, m.Accuracy, m.Records, m.Measured)
	for _, name := range slices.Sorted(maps.Keys(m.Metrics)) {
		if value := m.Metrics[name]; value != m.Accuracy && value != m.Loss { // printed above
			fmt.Fprintf(p.out, "%-8s  %.4f\n", name, value)
		}
	}
	fmt.Fprintf(p.out, "job       %s\n", m.Job)
	return nil
}

// quiet keeps what progress prints out of the log of a local run.
func quiet(log *slog.Logger, level string) *slog.Logger {
	if level == "debug" {
		return log
	}
	return slog.New(slog.DiscardHandler)
}
