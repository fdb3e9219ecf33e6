package elasticsim

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// A run of a second needs no progress; on something else than a terminal a line now and then suffices.
const (
	quietFor      = time.Second
	betweenLines  = 10 * time.Second
	betweenFrames = 100 * time.Millisecond
)

// progress shows how far a run is: a bar on a terminal, plain lines elsewhere.
type progress struct {
	out      io.Writer
	name     string
	terminal bool
	bar      *progressbar.ProgressBar
	began    time.Time
	shown    time.Time
}

func newProgress(out io.Writer, name string) *progress {
	f, isFile := out.(*os.File)
	now := time.Now()
	return &progress{out: out, name: name, terminal: isFile && term.IsTerminal(int(f.Fd())), began: now, shown: now}
}

// show is simulator.Options.Progress.
func (p *progress) show(ended, jobs int, at time.Duration) {
	now := time.Now()
	between := betweenLines
	if p.terminal {
		between = betweenFrames
	}
	if now.Sub(p.began) < quietFor || now.Sub(p.shown) < between {
		return
	}
	p.shown = now
	if !p.terminal {
		fmt.Fprintf(p.out, "%s: %s of %s jobs completed, after %s of simulated time\n",
			p.name, wording.Count(int64(ended)), wording.Count(int64(jobs)), span(scenariofile.Duration(at.Milliseconds())))
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions(jobs, progressbar.OptionSetWriter(p.out), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionSetWidth(30))
	}
	p.bar.Describe(fmt.Sprintf("%s, %s", p.name, span(scenariofile.Duration(at.Milliseconds()))))
	_ = p.bar.Set(ended) // a progress bar that cannot be drawn is no reason to stop
}

// end clears the bar.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
