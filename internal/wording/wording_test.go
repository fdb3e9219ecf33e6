package wording_test

import (
	"math"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

func TestDurationsAreWrittenInASuitableUnit(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                         "0 ms",
		41 * time.Millisecond:     "41 ms",
		999600 * time.Microsecond: "1.0 s",
		3210 * time.Millisecond:   "3.2 s",
		9960 * time.Millisecond:   "10 s",
		59600 * time.Millisecond:  "1 min 00 s",
		72 * time.Second:          "1 min 12 s",
		3725 * time.Second:        "62 min 05 s",
		11100 * time.Second:       "3 h 05 min",
		98 * time.Hour:            "4 d 02 h",
	} {
		if got := wording.Duration(d); got != want {
			t.Errorf("%s is said as %q, want %q", d, got, want)
		}
	}
}

func TestDigitsAreGroupedByThree(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 24300: "24,300", -123: "-123", -1234567: "-1,234,567"} {
		if got := wording.Count(n); got != want {
			t.Errorf("%d is said as %q, want %q", n, got, want)
		}
	}
}

func TestAPodIsNamedWithoutItsJob(t *testing.T) {
	if got := wording.Pod("low-prio-job", "worker", "low-prio-job-worker-12"); got != "worker 12" {
		t.Errorf("the worker is %q", got)
	}
	if got := wording.Pod("low-prio-job", "master", "low-prio-job-x2k9p"); got != "master" {
		t.Errorf("the master is %q", got)
	}
}

func TestRemainingIsUnknownWhereItWouldOverflow(t *testing.T) {
	if left, known := wording.Remaining(90, 2); !known || left != 45*time.Second {
		t.Errorf("90 at 2 a second: %v, %v", left, known)
	}
	for _, at := range [][2]float64{{1 << 62, 3}, {1, 0}, {1, -1}, {math.NaN(), 1}, {1, math.Inf(-1)}} {
		if left, known := wording.Remaining(at[0], at[1]); known {
			t.Errorf("%v at %v a second: %v; nobody knows", at[0], at[1], left)
		}
	}
}

func TestPrintableTextDoesNothingToATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"loss 0.5\n\tacc 1\n":                   "loss 0.5\n\tacc 1\n",
		"\x1b[31mred\x1b[0m":                    "red",
		"\x1b]0;Apply complete!\x07title":       "title",
		"\x1b]8;;http://evil.example\x1b\\link": "link",
		"\x1b]52;c;ZXZpbA==":                    "",
		"a\x1b[2J\x1b[1;1HApply complete!":      "aApply complete!",
		"\x1bcreset":                            "creset",
		"10 %\r100 %\r\n":                       "10 % 100 % \n",
		"a\x00b\x08c\x7fd\u009b31me":            "abcd31me",
		"\u202egnp.exe":                         "gnp.exe",
		"zero\u200bwidth":                       "zerowidth",
		"b\xffytes":                             "b\ufffdytes",
		"größer, 訓練, \U0001F600":                "größer, 訓練, \U0001F600",
	} {
		if got := wording.Printable(text); got != want {
			t.Errorf("%q is printed as %q, expected %q", text, got, want)
		}
	}
}
