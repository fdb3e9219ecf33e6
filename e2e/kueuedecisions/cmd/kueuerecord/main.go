// Command kueuerecord plays scenarios to Kueue's own scheduler, in process, and writes what came of them as recordings of
// package conformance. It reads scenarios from standard input, one a line; recordings may be played again, and keep their
// UIDs.
//
// Each scenario is played three times: the order of Go maps differs between the first two, and the third tries heads
// that fail again and again some cycles more before it leaves them alone. Steps from the first difference on are not asserted.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/elastic-training/terraform-provider-elastic/e2e/kueuedecisions/inprocess"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/conformance"
)

func main() {
	var cycles int
	var output string
	flag.IntVar(&cycles, "cycles", 0, "measure the time of so many scheduling cycles with all workloads submitted, instead of recording")
	flag.StringVar(&output, "output", "", "file to write; empty: standard output")
	flag.Parse()
	if err := run(output, cycles); err != nil {
		fmt.Fprintln(os.Stderr, "kueuerecord:", err)
		os.Exit(1)
	}
}

func run(output string, cycles int) error {
	if output == "" {
		return record(os.Stdin, os.Stdout, cycles)
	}
	file, err := os.Create(output)
	if err != nil {
		return err
	}
	return errors.Join(record(os.Stdin, file, cycles), file.Close())
}

func record(in io.Reader, out io.Writer, cycles int) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 256<<20)
	for lines.Scan() {
		work := play
		if cycles > 0 {
			work = func(text []byte) ([]byte, error) { return measure(text, cycles) }
		}
		recording, err := work(lines.Bytes())
		if err != nil {
			fmt.Fprintln(os.Stderr, "kueuerecord: left out:", err)
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
	s, err := conformance.Parse(text)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	first, err := inprocess.Play(s, inprocess.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	asserted := len(first)
	again := "equal"
	for rhythm := range uint64(2) {
		other, err := inprocess.Play(s, inprocess.Options{Rhythm: rhythm})
		if err != nil {
			return nil, fmt.Errorf("%s, again: %w", s.Name, err)
		}
		if n := inprocess.FirstDifference(first, other); n < asserted {
			asserted = n
			if rhythm == 0 {
				again = fmt.Sprintf("differs from step %d on", n)
			}
		}
	}
	all["format"], all["kueue"], all["recorded"] = conformance.Format, inprocess.Release, "in-process scheduler"
	all["outcomes"] = first
	all["checks"] = map[string]any{"assertedSteps": asserted, "inProcessAgain": again}
	return json.Marshal(all)
}

// measure measures cycles on a scenario.
func measure(text []byte, cycles int) ([]byte, error) {
	s, err := conformance.Parse(text)
	if err != nil {
		return nil, err
	}
	timings, err := inprocess.Measure(s, cycles)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"name": s.Name, "cycles": timings})
}
