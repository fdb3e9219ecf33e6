package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// event is a line of `go test -json` (go doc cmd/test2json).
type event struct {
	Action  string
	Package string
	Test    string  // empty: the event is the package's
	Elapsed float64 // seconds
}

// packageTime is the time of a package's tests, of all of their repetitions.
type packageTime struct {
	Package string  `json:"package"`
	Seconds float64 `json:"seconds"`
}

// flake is a test that failed and passed.
type flake struct {
	Package  string `json:"package"`
	Test     string `json:"test"`
	Runs     int    `json:"runs"`
	Failures int    `json:"failures"`
}

type test struct{ pkg, name string }

type results struct{ passes, failures int }

// runs are the results of all tests.
type runs struct {
	seconds map[string]float64
	tests   map[test]results
}

func newRuns() runs { return runs{seconds: map[string]float64{}, tests: map[test]results{}} }

// readFile adds the events of a file.
func (r runs) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := r.read(file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// read adds events.
func (r runs) read(from io.Reader) error {
	for decoder := json.NewDecoder(from); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if e.Action != "pass" && e.Action != "fail" {
			continue
		}
		if e.Test == "" {
			r.seconds[e.Package] += e.Elapsed
			continue
		}
		was := r.tests[test{e.Package, e.Test}]
		if e.Action == "pass" {
			was.passes++
		} else {
			was.failures++
		}
		r.tests[test{e.Package, e.Test}] = was
	}
}

// packages are the longest first.
func (r runs) packages() []packageTime {
	all := []packageTime{}
	for name, seconds := range r.seconds {
		all = append(all, packageTime{name, seconds})
	}
	slices.SortFunc(all, func(a, b packageTime) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Package, b.Package))
	})
	return all
}

// flakes are in the order of their names.
func (r runs) flakes() []flake {
	found := []flake{}
	for t, of := range r.tests {
		if of.passes > 0 && of.failures > 0 {
			found = append(found, flake{t.pkg, t.name, of.passes + of.failures, of.failures})
		}
	}
	slices.SortFunc(found, func(a, b flake) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test))
	})
	return found
}
