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
// memory where nobody looks at them: each is refused by the name of the flag or of the job's field, or the command does
// its work.
func TestAnyNumberOfAFlagIsTakenOrRefusedByName(t *testing.T) {
	t.Setenv(asTrainer, "1")
	const digits = "synthetic://digits?records=40&seed=1"
	output, _ := finished(t)
	bases := map[string][]string{
		"train":        {"--model-file", smallModel, "--train-data-dir", digits, "--validation-data-dir", digits, "--log-level=error"},
		"evaluate":     {"--model-file", smallModel, "--validation-data-dir", digits, "--model-dir", output},
		"predict":      {"--model-file", smallModel, "--prediction-data-dir", digits, "--labels", "--model-dir", output},
		"data synth":   {"--records=20"},
		"data convert": {digits},
		"data inspect": {digits},
		"master":       {"--job", filepath.Join(output, "none.json")},
		"worker":       {"--master", "127.0.0.1:1", "--id=1", "--master-timeout=1ms", "--credentials", t.TempDir()},
	}
	fields := map[string]string{
		"num-epoch": "training.epochs", "minibatch-size": "training.minibatch_size", "grads-to-wait": "training.grads_to_wait",
		"record-per-task": "data.records_per_task", "evaluation-steps": "evaluation.interval_steps", "evaluation-epochs": "evaluation.interval_epochs",
		"checkpoint-steps": "checkpoint.interval_steps", "keep-checkpoint-max": "checkpoint.max_to_keep", "learning-rate": "training.learning_rate",
	}
	allowed := []string{"training diverged", "read the job"} // what may end a command whose numbers were taken
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
				if c.Flags().Lookup("output") != nil {
					args = append(args, "--output", filepath.Join(t.TempDir(), "out"))
				}
				out, err := call(t, append(args, fmt.Sprintf("--%s=%s", f.Name, value))...)
				tried++
				if err == nil {
					continue
				}
				text := err.Error()
				named := strings.Contains(text, "--"+f.Name) || fields[f.Name] != "" && strings.Contains(text, fields[f.Name])
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
