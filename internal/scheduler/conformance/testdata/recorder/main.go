// The recorder plays scenarios to Kueue's own queue manager, cache, scheduler and Workload controller, in one process on
// a fake client and a fake clock, and writes what came of them. tools/record-kueue.sh builds it inside a checkout of
// Kueue. It reads scenarios from standard input, one a line, and writes recordings (see package conformance).
//
// Each scenario is played three times: the order of Go maps differs between the first two, and the third tries a head
// that fails again and again once more before it is left alone. Steps from the first difference on are not asserted.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	ctrl "sigs.k8s.io/controller-runtime"
)

// patience is how many cycles without any event a head is tried before it is left alone.
const patience = 5

func main() {
	cycles := flag.Int("cycles", 0, "measure the time of so many scheduling cycles with all workloads submitted, instead of recording")
	flag.Parse()
	if err := record(os.Stdin, os.Stdout, *cycles); err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		os.Exit(1)
	}
}

func record(in io.Reader, out io.Writer, cycles int) error {
	ctrl.SetLogger(logr.Discard())
	// The fake client cannot remove fields by server-side apply.
	if err := utilfeature.DefaultMutableFeatureGate.Set("WorkloadRequestUseMergePatch=true"); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 256<<20)
	for lines.Scan() {
		work := play
		if cycles > 0 {
			work = func(text []byte) ([]byte, error) { return measure(text, cycles) }
		}
		recording, err := work(lines.Bytes())
		if err != nil {
			fmt.Fprintln(os.Stderr, "recorder: left out:", err)
			continue
		}
		if _, err := fmt.Fprintf(out, "%s\n", recording); err != nil {
			return err
		}
	}
	return lines.Err()
}

// play makes a recording of a scenario.
func play(text []byte) ([]byte, error) {
	var s scenario
	var all map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if err := utilfeature.DefaultMutableFeatureGate.Set(fmt.Sprintf("PriorityBoost=%t", s.PriorityBoost)); err != nil {
		return nil, err
	}
	first, err := outcomes(&s, patience)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	asserted := len(first)
	again := "equal"
	for i, cycles := range []int{patience, patience + 1} {
		other, err := outcomes(&s, cycles)
		if err != nil {
			return nil, fmt.Errorf("%s, again: %w", s.Name, err)
		}
		if n := firstDifference(first, other); n < asserted {
			asserted = n
			if i == 0 {
				again = fmt.Sprintf("differs from step %d on", n)
			}
		}
	}
	all["format"], all["kueue"], all["recorded"] = 1, "v0.19.2", "in-process scheduler"
	all["outcomes"] = first
	all["checks"] = map[string]any{"assertedSteps": asserted, "inProcessAgain": again}
	return json.Marshal(all)
}

func firstDifference(a, b []outcome) int {
	for i := range a {
		if a[i].compared() != b[i].compared() {
			return i
		}
	}
	return len(a)
}

func outcomes(s *scenario, patience int) ([]outcome, error) {
	r, err := newRun(s, patience)
	if err != nil {
		return nil, err
	}
	all := []outcome{}
	for i := range s.Steps {
		o, err := r.step(&s.Steps[i])
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		all = append(all, o)
	}
	return all, nil
}
