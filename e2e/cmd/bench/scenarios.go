package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
)

// latency is one of the things that scenarios measure.
type latency struct {
	name string
	of   func(scenario.Measurements) []scenario.Measurement
}

func latencies() []latency {
	return []latency{
		{"pod created to Running", func(m scenario.Measurements) []scenario.Measurement { return m.Start }},
		{"pod created to first gradient", func(m scenario.Measurements) []scenario.Measurement { return m.FirstGradient }},
		{"preemption: high worker created to Running", func(m scenario.Measurements) []scenario.Measurement { return m.Preemption }},
		{"preemption: victim terminated to replacement created", func(m scenario.Measurements) []scenario.Measurement { return m.Replacement }},
		{"preemption by a queue: workload created to Running", func(m scenario.Measurements) []scenario.Measurement { return m.QueuePreemption }},
	}
}

// measureScenarios sets what the scenarios measured on kind beside what they measured on the embedded cluster. It
// reports none itself: it reads what `make demo`, `make test` and `make e2e-kind` left in e2e/out.
func measureScenarios(_ context.Context, o options) ([]figure, error) {
	embedded, err := readMeasurements(filepath.Join(scenario.OutDir(o.root, "*"), scenario.MeasurementsFile))
	if err != nil {
		return nil, err
	}
	onKind, err := readMeasurements(filepath.Join(scenario.OutDir(o.root, "kind"), "*", scenario.MeasurementsFile))
	if err != nil {
		return nil, err
	}
	return compareLatencies(embedded, onKind), nil
}

// compareLatencies makes a line of each latency: kind's in units of the embedded cluster's median.
func compareLatencies(embedded, onKind []scenario.Measurements) []figure {
	var figures []figure
	for _, l := range latencies() {
		name := l.name + ", kind to embedded"
		here, there := secondsOf(l, embedded), secondsOf(l, onKind)
		switch {
		case len(there) == 0:
			figures = append(figures, figure{Name: name, Skipped: "no run on kind measured it; make e2e-kind runs the scenarios"})
		case len(here) == 0:
			figures = append(figures, figure{Name: name, Skipped: fmt.Sprintf(
				"median on kind %.2f s of %d; no run on the embedded cluster measured it; make demo runs the scenarios", medianOf(there), len(there))})
		default:
			unit := medianOf(here)
			samples := make([]float64, len(there))
			for i := range there {
				samples[i] = there[i] / unit
			}
			figures = append(figures, ratios(name, "", fmt.Sprintf("embedded: median %.2f s of %d; kind: %.2f s", unit, len(here), medianOf(there)), samples))
		}
	}
	return figures
}

func secondsOf(l latency, all []scenario.Measurements) []float64 {
	var seconds []float64
	for _, m := range all {
		for _, measurement := range l.of(m) {
			seconds = append(seconds, measurement.Seconds)
		}
	}
	return seconds
}

// readMeasurements reads the files that match a pattern.
func readMeasurements(pattern string) ([]scenario.Measurements, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []scenario.Measurements
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var m scenario.Measurements
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("%s: %w; delete it, or run the scenario again", file, err)
		}
		all = append(all, m)
	}
	return all, nil
}
