// Package patience says how long tests wait for what must happen.
//
// Such a wait ends as soon as the condition holds, so it costs nothing to wait long: each bound is far above what a busy
// machine needs, and only a test that is about to fail uses it up. No test has a bound of its own
// (TestNoTestHasADeadlineOfItsOwn). What must not happen, and how long something takes, is tested in virtual time
// (testing/synctest) or by an event that proves the end, never by waiting.
package patience

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Variable multiplies every bound, for machines that are slower still: ELASTIC_TEST_PATIENCE=3 go test ./...
const Variable = "ELASTIC_TEST_PATIENCE"

var (
	// Short is for one answer of a server on this machine, and for cleaning up after a test.
	Short = Scaled(time.Minute)
	// Medium is for a condition that must come: a pod runs, a process ends, a line is logged. It is the default.
	Medium = Scaled(2 * time.Minute)
	// Long is for work of many steps: a job trains to its end, a cluster starts, a program is built.
	Long = Scaled(10 * time.Minute)
)

// factor is the value of Variable, and 1 without one.
var factor = parse(os.Getenv(Variable))

// Scaled is how long something lasts that a test needs to go on meanwhile, such as a job: where the test is slow, it
// must last longer.
func Scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * factor) }

func parse(text string) float64 {
	if text == "" {
		return 1
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || factor <= 0 {
		panic(fmt.Sprintf("%s=%s: not a positive number, such as 3 for three times as long", Variable, text))
	}
	return factor
}
