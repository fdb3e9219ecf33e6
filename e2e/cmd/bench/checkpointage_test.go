package main

import (
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/simulator"
)

func TestTheWorkOfADrawnTraceIsCountedByTheAcceleratorThatItUses(t *testing.T) {
	s, err := recordingOf("").scenario(80, 0)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := simulator.Run(t.Context(), s, simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if summary.Counted != "nvidia.com/gpu" || summary.Lost == 0 {
		t.Errorf("%v of %s is lost", summary.Lost, summary.Counted)
	}
}
