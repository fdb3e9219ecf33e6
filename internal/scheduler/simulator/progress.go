package simulator

import "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator/scenariofile"

// Work is counted in whole numbers: millionths of a step per second, times milliseconds.
const (
	rateUnit    = 1_000_000
	workPerStep = rateUnit * 1000
)

// progress is how much of an elastic job is done, and how fast it continues.
type progress struct {
	total, done int64 // of work
	counted     Time  // up to when done is counted
	rate        scenariofile.Rate
	workers     int
	version     int // of the time at which it will be done

	// worked is the time that workers have computed, added up, and unsaved the part of it since the last checkpoint.
	worked, unsaved Time
	saved           int64 // the work in the last checkpoint
	written         Time  // when that was, or when computing began after an interruption
}

func (p *progress) steps() int64 { return p.done / workPerStep }

// settle adds the work up to a time.
func (p *progress) settle(now, checkpointEvery Time) {
	if p.rate > 0 {
		worked := Time(p.workers) * (now - p.counted)
		p.worked += worked
		p.unsaved += worked
		if checkpointEvery > 0 {
			if written := now - (now-p.written)%checkpointEvery; written > p.written {
				p.checkpoint(written, p.after(written), Time(p.workers)*(now-written))
			}
		}
		p.done = p.after(now)
	}
	p.counted = now
}

// checkpoint records a checkpoint that was written at a time, and the work since then.
func (p *progress) checkpoint(written Time, work int64, since Time) {
	p.written, p.saved, p.unsaved = written, work, since
}

// after is the work at a later time, at the current speed.
func (p *progress) after(at Time) int64 {
	if left := Time((p.total - p.done) / int64(p.rate)); at-p.counted > left {
		return p.total
	}
	return p.done + int64(p.rate)*int64(at-p.counted)
}

// setSpeed sets the speed from now on, and reports whether it has changed.
func (p *progress) setSpeed(now Time, rate scenariofile.Rate, workers int) bool {
	p.workers = workers
	if p.rate == rate {
		return false
	}
	if p.rate == 0 {
		p.written = now
	}
	p.rate = rate
	p.version++
	return true
}

// endsAt is when all work is done, at the current speed.
func (p *progress) endsAt() (at Time, ends bool) {
	if p.rate == 0 {
		return 0, false
	}
	left := p.total - p.done
	return p.counted + Time((left+int64(p.rate)-1)/int64(p.rate)), true
}

// fallBack discards the work since the last checkpoint, and returns how much workers' time that was.
func (p *progress) fallBack() (lost Time) {
	lost = p.unsaved
	p.worked -= lost
	p.done, p.unsaved = p.saved, 0
	return lost
}
