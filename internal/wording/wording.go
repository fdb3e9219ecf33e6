// Package wording formats numbers, durations and names of pods for readers, in the same way on terminals and in
// pictures.
package wording

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Duration is a duration in the units that suit it: 40 ms, 3.2 s, 12 s, 1 min 12 s, 3 h 05 min, 4 d 02 h.
func Duration(d time.Duration) string {
	switch seconds := d.Seconds(); {
	case seconds < 0.9995:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case seconds < 9.95:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 59.5:
		return fmt.Sprintf("%.0f s", seconds)
	}
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		d = d.Round(time.Hour)
		return fmt.Sprintf("%d d %02d h", d/day, d%day/time.Hour)
	case d >= 2*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
}

// Remaining is how long so much work still takes at a speed per second; known is false where nobody can say, or will
// live to see it.
func Remaining(todo, perSecond float64) (left time.Duration, known bool) {
	seconds := todo / perSecond
	if !(perSecond > 0 && seconds >= 0 && seconds <= math.MaxInt32) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// Count is a number with its digits in groups of three: 24,000.
func Count(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Number is a count of things: 1 epoch, 2 epochs.
func Number(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Percent is a share of one in percent, with one decimal.
func Percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// Loss is a loss with three significant digits.
func Loss(loss float64) string { return fmt.Sprintf("%.3g", loss) }

// Metric is a model's metric with four significant digits.
func Metric(value float64) string { return fmt.Sprintf("%.4g", value) }

// Hash is the beginning of a SHA-256, long enough to tell two apart by eye.
func Hash(sum string) string { return sum[:min(12, len(sum))] }

// Pod is a pod's name where its job is known already: "worker 1", or "master" without the suffix that a Job gives it;
// "pod x2k9p" for one of a queued task, which has no other name.
func Pod(job, role, name string) string {
	switch role {
	case "master":
		return role
	case "task":
		return "pod " + strings.TrimPrefix(name, job+"-")
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, job+"-"), "-", " ")
}

// terminalSequences are what a terminal takes for a command, from ECMA-48: CSI, OSC and two-character sequences.
var terminalSequences = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|\x1b[@-Z\\\\-_]")

// Printable is a text from elsewhere, such as a pod's log, without what could do something to the terminal or the page
// that shows it: no command sequence, no control character but the ends of lines and tabs, and nothing that changes the
// direction of writing or cannot be seen.
func Printable(text string) string {
	text = terminalSequences.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, text)
}
