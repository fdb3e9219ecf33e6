package elastictrainer

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hostileNumbers are what the numeric flags of all commands are tried with, by their type.
var hostileNumbers = map[string][]string{
	"int":      {"-1", "2147483648", "4611686018427387904", "9223372036854775808"},
	"int64":    {"-1", "2147483648", "4611686018427387904", "-9223372036854775809"},
	"uint64":   {"-1", "18446744073709551615", "18446744073709551616"},
	"float64":  {"-1", "0", "1e308", "1e309", "NaN", "Inf", "-Inf"},
	"duration": {"-1ns", "9223372036854775808ns"},
}

// TestAnyNumberOfAFlagIsTakenOrRefusedByName runs every command with numbers that overflow, divide by zero or take all
// memory unless they are checked: the command rejects each by the name of the flag, or does its work.
func TestAnyNumberOfAFlagIsTakenOrRefusedByName(t *testing.T) {
	t.Setenv(asTrainer, "1")
	const digits = "synthetic://digits?records=40&seed=1"
	output, _ := finished(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // no command finds a cluster
	bases := map[string][]string{
		"train":          {"--model-file", smallModel, "--train-data-dir", digits, "--validation-data-dir", digits, "--log-level=error"},
		"evaluate":       {"--model-file", smallModel, "--validation-data-dir", digits, "--model-dir", output},
		"predict":        {"--model-file", smallModel, "--prediction-data-dir", digits, "--labels", "--model-dir", output},
		"data synth":     {"--records=20"},
		"data convert":   {digits},
		"data inspect":   {digits},
		"master":         {"--job", filepath.Join(output, "none.json")},
		"submit":         {"--job-name=digits", "--model=mnist", "--train-data-dir", digits, "--dry-run"},
		"logs":           {"--kubeconfig", filepath.Join(output, "none"), "digits"},
		"delete":         {"--kubeconfig", filepath.Join(output, "none"), "digits"},
		"worker":         {"--master", "127.0.0.1:1", "--id=1", "--master-timeout=1ms", "--credentials", t.TempDir()},
		"checkpoint-age": {"--dry-run"},
	}
	allowed := []string{"training diverged", "read the job", "Cannot connect as configured", "this runs in a pod"} // what may end a command whose numbers were taken
	tried := 0
	var sweep func(c *cobra.Command)
	sweep = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			sweep(sub)
		}
		name := strings.TrimPrefix(c.CommandPath(), "elastic-trainer ")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			values, numeric := hostileNumbers[f.Value.Type()]
			if !numeric {
				return
			}
			base, known := bases[name]
			if !known {
				t.Errorf("flag --%s of %s is not tried: give the test a command line", f.Name, name)
			}
			for _, value := range values {
				if f.Name == "records" && value == "2147483648" {
					continue // so many are written
				}
				args := append(strings.Fields(name), base...)
				if c.Flags().Lookup("output") != nil && name != "submit" {
					args = append(args, "--output", filepath.Join(t.TempDir(), "out"))
				}
				out, err := call(t, append(args, fmt.Sprintf("--%s=%s", f.Name, value))...)
				tried++
				if err == nil {
					continue
				}
				text := err.Error()
				named := strings.Contains(text, "--"+f.Name)
				for _, other := range allowed {
					named = named || strings.Contains(text, other)
				}
				if !named {
					t.Errorf("%s --%s=%s: %v\n%s", name, f.Name, value, err, out)
				}
			}
		})
	}
	sweep(newTestRoot())
	if tried < 100 {
		t.Errorf("%d command lines were tried", tried)
	}
}

// TestEveryFieldThatAJobsProblemsNameHasAFlag: an error with a flag that was renamed would name what nobody can type.
func TestEveryFieldThatAJobsProblemsNameHasAFlag(t *testing.T) {
	train, _, err := newTestRoot().Find([]string{"train"})
	if err != nil {
		t.Fatal(err)
	}
	for field, flag := range flagOf {
		if train.Flags().Lookup(flag) == nil {
			t.Errorf("%s: train has no flag --%s", field, flag)
		}
	}
}
