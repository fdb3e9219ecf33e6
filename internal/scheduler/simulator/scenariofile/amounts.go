package scenariofile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time in milliseconds, the simulator's unit, written as Go writes durations: 90s, 1h30m, 250ms. It is
// not negative.
type Duration int64

// MaxDuration is the longest time that a scenario may name, a hundred years.
const MaxDuration = Duration(100 * 365 * 24 * time.Hour / time.Millisecond)

// Std is the duration as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) * time.Millisecond }

func (d Duration) String() string { return d.Std().String() }

// UnmarshalText reads a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	if string(text) == "0" {
		*d = 0
		return nil
	}
	parsed, err := time.ParseDuration(string(text))
	switch {
	case err != nil:
		return errors.New("write a duration with its unit, as 250ms, 90s or 1h30m")
	case parsed < 0:
		return errors.New("a time cannot be negative")
	case parsed%time.Millisecond != 0:
		return errors.New("the simulator counts whole milliseconds")
	case parsed > MaxDuration.Std():
		return errors.New("longer than a hundred years")
	}
	*d = Duration(parsed / time.Millisecond)
	return nil
}

// Rate is a number per second in millionths, written as a decimal number: 60, 118.5. Whole numbers make equal results
// on every machine.
type Rate int64

// perUnit is how many millionths make one.
const perUnit = 1_000_000

// MaxRate is the fastest that a scenario may name, a million per second.
const MaxRate = Rate(perUnit * perUnit)

func (r Rate) String() string {
	text := fmt.Sprintf("%d.%06d", r/perUnit, r%perUnit)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// UnmarshalText reads a rate.
func (r *Rate) UnmarshalText(text []byte) error {
	whole, fraction, _ := strings.Cut(string(text), ".")
	wrong := errors.New("write a positive decimal number of at most six decimals, as 60 or 118.5")
	if len(fraction) > 6 || whole == "" || strings.ContainsAny(string(text), "+-eE_") {
		return wrong
	}
	n, err := strconv.ParseInt(whole+(fraction + "000000")[:6], 10, 64)
	if err != nil || n <= 0 {
		return wrong
	}
	if Rate(n) > MaxRate {
		return errors.New("more than a million per second")
	}
	*r = Rate(n)
	return nil
}

// At is how many steps per second there are, in millionths, with a number of workers that is at least 1.
func (s Speed) At(workers int) Rate {
	if s.GradsToWait > 0 {
		longest := Duration((s.GradsToWait + workers - 1) / workers)
		return perUnit * Rate(Duration(time.Second/time.Millisecond)) / Rate(longest*s.Gradient+s.Overhead)
	}
	below, above := 0, 0 // the measured numbers of workers around this one
	for n := range s.StepsPerSecond {
		if n <= workers && n > below {
			below = n
		}
		if n >= workers && (above == 0 || n < above) {
			above = n
		}
	}
	switch {
	case above == 0 || below == above:
		return s.StepsPerSecond[below]
	case below == 0: // fewer than ever measured: in proportion
		return max(1, s.StepsPerSecond[above]*Rate(workers)/Rate(above))
	}
	low, high := s.StepsPerSecond[below], s.StepsPerSecond[above]
	return low + (high-low)*Rate(workers-below)/Rate(above-below)
}
