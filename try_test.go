package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tried is the tag with which `make try` builds elastic-sim.
const tried = "-tags=grpcnotrace,offline"

func TestMakeTryForecastsThreeJobsAndSimulatesTheFirstTutorial(t *testing.T) {
	printed, err := exec.CommandContext(t.Context(), "make", "try").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	rest := string(printed)
	for _, want := range []string{"will start without evicting any pods", "will preempt", "will wait", "Elastic scheduling", "The first forecast was there after"} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing, or out of order, in\n%s", want, printed)
		}
		rest = after
	}
	if _, err := os.Stat("e2e/out/simulated/elastic-scheduling.html"); err != nil {
		t.Error(err)
	}
}

// A client of clusters or the provider would double the time until the first forecast.
func TestWhatMakeTryCompilesHasNoClientAndNoProvider(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", tried, "./cmd/elastic-sim").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(list), "\n"); n > 400 {
		t.Errorf("it compiles %d packages", n)
	}
	for _, part := range []string{"k8s.io/client-go", "terraform-plugin", "internal/provider", "kube-openapi/pkg/util/proto", "kube-openapi/pkg/validation"} {
		if strings.Contains(string(list), part) {
			t.Errorf("it compiles %s", part)
		}
	}
}

func TestWhatMakeTryBuildsForecastsAsElasticSimAndSaysWhatItCannot(t *testing.T) {
	program := filepath.Join(t.TempDir(), "elastic-sim")
	if out, err := exec.CommandContext(t.Context(), "go", "build", tried, "-o", program, "./cmd/elastic-sim").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	snapshot := []string{"--snapshot", "examples/snapshots/gpu-cluster.json.gz"}
	for job, want := range map[string]int{"fits": 0, "evicts": 10, "waits": 11} {
		out, code := exits(t, program, append([]string{"forecast", "-f", "examples/snapshots/" + job + ".yaml"}, snapshot...)...)
		if code != want {
			t.Errorf("%s: exit code %d instead of %d\n%s", job, code, want, out)
		}
	}
	for _, arguments := range [][]string{{"forecast", "-f", "examples/snapshots/fits.yaml"}, {"audit"}} {
		if out, code := exits(t, program, arguments...); code != 1 || !strings.Contains(out, "`make elastic-sim`") {
			t.Errorf("%v: exit code %d\n%s", arguments, code, out)
		}
	}
}

// exits runs a program and returns what it printed and its exit code.
func exits(t *testing.T, program string, arguments ...string) (printed string, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}
