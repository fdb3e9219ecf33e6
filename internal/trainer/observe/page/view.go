package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// view is a history at a moment.
type view struct {
	*history.History
	now time.Duration // since it began
	at  time.Time
}

// newView is of a run that is under way at a moment; a finished one stays as it was at its end.
func newView(h *history.History, at time.Time) view {
	v := view{History: h, now: h.Now, at: at}
	if !h.Over {
		v.now = max(v.now, at.Sub(h.Began))
	}
	return v
}

func title(h *history.History) string {
	return fmt.Sprintf("%s · %s", h.Job.Name, phaseText(h))
}

// phaseText is the phase for a reader.
func phaseText(h *history.History) string {
	switch h.Status.Phase {
	case "":
		return "starting"
	case trainingjob.PhaseCannotSave:
		return "cannot save its model"
	case trainingjob.PhaseWaiting:
		if h.Over {
			return "interrupted"
		}
		return "waiting for workers"
	default:
		return strings.ToLower(string(h.Status.Phase))
	}
}

// colour is the class of the phase's colour.
func colour(h *history.History) string {
	switch h.Status.Phase {
	case trainingjob.PhaseRunning, trainingjob.PhaseEvaluating:
		return "running"
	case trainingjob.PhaseSucceeded:
		return "succeeded"
	case trainingjob.PhaseFailed, trainingjob.PhaseCannotSave:
		return "failed"
	case trainingjob.PhaseWaiting, trainingjob.PhaseQueued:
		return "waits"
	default:
		return "other"
	}
}

func (v view) head(m *picture.Markup) {
	s := v.Status
	m.Put(`<section id="head" class="%s">
<div class="head"><h1>%s</h1><span class="badge %s"><svg viewBox="0 0 10 10" aria-hidden="true"><circle class="dot" cx="5" cy="5" r="5"/></svg>%s</span></div>`,
		colour(v.History), v.Job.Name, colour(v.History), phaseText(v.History))
	each := ""
	if s.Processes > 1 {
		each = fmt.Sprintf(" · %d processes on each worker", s.Processes)
	}
	if v.Job.Epochs == 0 { // a command: how far it has come is not known
		m.Put(`<p class="soft what">%s%s</p>`, v.Job.Model, each)
		if message := cmp.Or(s.Message, ended(v.History)); message != "" {
			m.Put(`<p class="said">%s</p>`, message)
		}
		m.Put(`<p class="steps"><span>start %s</span><span>%s</span></p>
</section>`, wording.Count(s.Starts), wording.Duration(v.now))
		return
	}
	m.Put(`<p class="soft what">%s · %s of %s records · %s × %s records a step%s</p>`,
		v.Job.Model, wording.Number(v.Job.Epochs, "epoch"), wording.Count(int64(v.Job.Records)), wording.Count(int64(v.Job.GradsToWait)), wording.Count(int64(v.Job.Minibatch)), each)
	if message := cmp.Or(s.Message, ended(v.History)); message != "" {
		m.Put(`<p class="said">%s</p>`, message)
	}
	share := 0.0
	if s.StepsTotal > 0 {
		share = float64(s.StepsDone) / float64(s.StepsTotal)
	}
	m.Put(`<div class="bar" role="progressbar" aria-label="steps done" aria-valuemin="0" aria-valuemax="100" aria-valuenow="%.0f"><span style="width:%.2f%%"></span></div>
<p class="steps"><span>step %s of %s · epoch %d of %d</span><span>%s</span></p>
</section>`, 100*share, 100*share, wording.Count(s.StepsDone), wording.Count(s.StepsTotal), min(s.Epoch+1, v.Job.Epochs), v.Job.Epochs, v.timing(share))
}

// ended is how a run ended where its status does not say it.
func ended(h *history.History) string {
	if h.Status.Phase == trainingjob.PhaseSucceeded {
		return ""
	}
	return h.Ended
}

// timing is how long it has taken, and will.
func (v view) timing(share float64) string {
	text := wording.Percent(share)
	if left, known := v.Left(); known && !v.Over && v.Status.Phase == trainingjob.PhaseRunning {
		return text + " · about " + wording.Duration(left.Round(time.Second)) + " left"
	}
	return text + " · " + wording.Duration(v.now)
}

func (v view) facts(m *picture.Markup) {
	s := v.Status
	m.Put(`<section id="facts" aria-label="figures">
<dl class="facts">`)
	fact := func(name, value, note string) {
		if note != "" {
			m.Put(`<div><dt>%s</dt><dd>%s<small>%s</small></dd></div>`, name, value, note)
			return
		}
		m.Put(`<div><dt>%s</dt><dd>%s</dd></div>`, name, value)
	}
	of := "of the last step"
	if s.Phase == trainingjob.PhaseSucceeded {
		of = "at the end"
	}
	if s.Loss != nil {
		fact("loss", wording.Loss(*s.Loss), of)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
		fact(name, wording.Metric(s.Metrics[name]), of)
	}
	if n := len(s.Evaluations); n > 0 && !v.Over {
		newest := s.Evaluations[n-1]
		note := "at step " + wording.Count(newest.Step)
		fact("validation loss", wording.Loss(newest.Loss), note)
		for _, name := range slices.Sorted(maps.Keys(newest.Metrics)) {
			fact("validation "+name, wording.Metric(newest.Metrics[name]), note)
		}
	}
	if steps, records := v.Rate(v.now); steps > 0 && !v.Over {
		fact("records/s", wording.Count(int64(records+0.5)), fmt.Sprintf("%.3g steps/s", steps))
	} else if seconds := v.now.Seconds(); v.Records > 0 && seconds > 0 {
		fact("records/s", wording.Count(int64(float64(v.Records)/seconds+0.5)), "on the average")
	}
	if !v.Over {
		note := ""
		if s.WorkersPending > 0 {
			note = wording.Count(int64(s.WorkersPending)) + " to come"
		}
		fact("workers", wording.Count(int64(s.WorkersRunning)), note)
	} else {
		fact("workers", wording.Count(int64(len(v.Workers)+v.Dropped)), "in all")
	}
	note := ""
	if v.Losses > 0 {
		note = wording.Count(v.Losses) + " lost otherwise"
	}
	fact("preemptions", wording.Count(int64(s.Preemptions)), note)
	if d := s.Disruptions; d != nil {
		fact("disruptions", wording.Count(d.Count), wording.Number(int(d.LostSteps), "step")+" and "+seconds(d.LostSeconds)+" lost")
	}
	if s.Goodput != nil {
		fact("goodput", wording.Percent(*s.Goodput), "of undisturbed work")
	}
	if split := s.GoodputSplit; split != nil {
		life := 0.0
		for _, spent := range split.Seconds {
			life += spent
		}
		for _, phase := range trainingjob.GoodputPhases() {
			if spent := split.Seconds[phase]; spent > 0 {
				fact(strings.ReplaceAll(string(phase), "_", " "), seconds(spent), wording.Percent(spent/life)+" of the whole time")
			}
		}
	}
	if s.CheckpointStep > 0 {
		note = "before this master"
		if !v.Checkpoint.IsZero() {
			note = wording.Duration(v.Checkpoint.Sub(v.Began)) + " in"
			if !v.Over {
				note = wording.Duration(max(0, v.at.Sub(v.Checkpoint)).Round(time.Second)) + " ago"
			}
		}
		fact("checkpoint", "step "+wording.Count(s.CheckpointStep), note)
	}
	if s.Generation > 1 {
		fact("master", "the "+ordinal(s.Generation), wording.Number(int(s.Generation-1), "restart"))
	}
	m.Put(`</dl>
</section>`)
}

func seconds(s float64) string { return wording.Duration(time.Duration(s * float64(time.Second))) }

func ordinal(n int64) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return wording.Count(n) + suffix
}

// about is what else identifies a run.
func (v view) about(m *picture.Markup) {
	m.Put(`<section id="about"><h2>This run</h2>
<dl class="about">
<div><dt>began</dt><dd>%s</dd></div>
<div><dt>job digest</dt><dd><code>%s</code></dd></div>
<div><dt>master’s kernel</dt><dd>%s</dd></div>`, clock(v.Began), v.Job.Digest, v.Job.Kernel)
	if v.Times.Count > 0 {
		m.Put(`<div><dt>mean time of a step</dt><dd>%s</dd></div>`, stepTime(v.Times.Mean()))
	}
	if v.Received+v.Sent > 0 {
		m.Put(`<div><dt>between master and workers</dt><dd>%s received, %s sent</dd></div>`, bytes(v.Received), bytes(v.Sent))
	}
	if sum := v.Status.ModelSHA256; sum != "" {
		m.Put(`<div><dt>model, SHA-256</dt><dd><code>%s</code></dd></div>`, sum)
	}
	for _, file := range v.Status.OutputFiles {
		m.Put(`<div><dt>file</dt><dd><code>%s</code></dd></div>`, file)
	}
	m.Put(`</dl></section>`)
}

func stepTime(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	}
	return wording.Duration(d)
}

func bytes(n int64) string {
	value, units := float64(n), []string{"B", "kB", "MB", "GB", "TB", "PB"}
	i := 0
	for value >= 999.5 && i+1 < len(units) {
		value, i = value/1000, i+1
	}
	return fmt.Sprintf("%.3g %s", value, units[i])
}
