package elastictrainer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// call runs a command line and returns what it printed and its error.
func call(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := NewRoot("test")
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}

func TestBadCommandLinesAreRefusedWithASentence(t *testing.T) {
	model := filepath.Join("..", "..", "..", "examples", "models", "mnist_functional_api.py")
	train := func(args ...string) []string {
		return append([]string{"train", "--model-file", model, "--train-data-dir", "synthetic://digits?records=20&seed=1", "--output", t.TempDir()}, args...)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a job name that is no DNS label":      {train("--job_name=Low_Prio"), "Low_Prio"},
		"no minibatch":                         {train("--minibatch_size=0"), "--minibatch-size"},
		"a codec that there is not":            {train("--codec_type=json"), "codec"},
		"a minimum that is no multiple":        {train("--worker-step=2"), "multiple of --worker-step=2"},
		"a restart without a command":          {train("--elastic=restart"), "--worker-command"},
		"a restart interval of nothing":        {train("--restart-interval=0s"), "at least 1s"},
		"no process":                           {train("--processes=0"), "--processes"},
		"fewer workers than the minimum":       {train("--num_worker=1", "--min-worker=2"), "--min-worker=2"},
		"an unknown flag":                      {train("--num-workers=2"), "num-workers"},
		"a model file that is not there":       {[]string{"train", "--model-file", "nowhere.py", "--train-data-dir", "x", "--output", "y"}, "nowhere.py"},
		"a built-in model that there is not":   {[]string{"train", "--model", "minst", "--train-data-dir", "x", "--output", "y"}, "\"mnist\""},
		"a file and a built-in model":          {train("--model=mnist"), "model-file"},
		"neither a file nor a built-in model":  {[]string{"train", "--train-data-dir", "x", "--output", "y"}, "model-file"},
		"a model to show that there is not":    {[]string{"model", "minst"}, "cifar10"},
		"a kernel that there is not":           {train("--kernel=sse"), "sse"},
		"a command with letters swapped":       {[]string{"trian"}, "did you mean train?"},
		"data without its flag":                {[]string{"train", "--model-file", model, "--output", "y"}, "train-data-dir"},
		"synthetic data with an unknown knob":  {[]string{"train", "--model-file", model, "--output", t.TempDir(), "--train-data-dir", "synthetic://digits?colour=1"}, "colour"},
		"a synthetic set that there is not":    {[]string{"data", "synth", "letters", "--output", t.TempDir()}, "frappe"},
		"a compressor that there is not":       {[]string{"data", "synth", "--output", t.TempDir(), "--compressor", "zip"}, "zip"},
		"a range of records that is no range":  {[]string{"data", "convert", "x", "--output", "y", "--part", "5-9"}, "--part"},
		"a master outside of a pod":            {[]string{"master", "--job", "nowhere.json"}, "nowhere.json"},
		"a log level that there is not":        {train("--log-level=loud"), "loud"},
		"a worker without its job's secrets":   {[]string{"worker", "--master", "127.0.0.1:1", "--id", "0", "--credentials", "nowhere"}, "credentials"},
		"a data set that is not there":         {[]string{"data", "inspect", "nowhere"}, "nowhere"},
		"a model file with an unsupported use": {[]string{"model", unsupported(t)}, "line"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) && !strings.Contains(err.Error(), ":3:") {
				t.Errorf("%v does not name %q", err, test.want)
			}
		})
	}
}

// unsupported is a model file whose third line cannot be run.
func unsupported(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.py")
	text := "import tensorflow as tf\n\nmodel = tf.keras.applications.ResNet50()\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsageErrorsExitWithTwoAndPointToHelp(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		help string
	}{
		"an unknown flag":                  {[]string{"train", "--no-such-flag"}, "elastic-trainer train --help"},
		"an unknown command":               {[]string{"trian"}, "elastic-trainer --help"},
		"an unknown command below another": {[]string{"gang", "instal"}, "elastic-trainer gang --help"},
		"an argument that is missing":      {[]string{"gang", "install"}, "elastic-trainer gang install --help"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(t, c.args...)
			var exit *cli.ExitError
			if !errors.As(err, &exit) || exit.Code != cli.Usage || !strings.Contains(err.Error(), c.help) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAJobThatCannotBeLoadedEndsWithTheExitCodeOfAJobThatFailed(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.sh")
	if err := os.WriteFile(script, []byte("echo the licence has expired >&2\nexit 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args     []string
		wantText []string
	}{
		"a script that dies before it connects": {[]string{"--model-file", script, "--worker-command", "sh", "--train-data-dir", "indices://numbers?records=10"}, []string{"ended with exit code 3", "the licence has expired"}},
		"a script that cannot be started":       {[]string{"--model-file", script, "--worker-command", "no-such-program", "--train-data-dir", "indices://numbers?records=10"}, []string{"no-such-program"}},
		"data that are not there":               {[]string{"--model", "mnist", "--train-data-dir", filepath.Join(t.TempDir(), "nowhere")}, []string{"nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := call(t, append([]string{"train", "--output", t.TempDir()}, c.args...)...)
			var exit *cli.ExitError
			if !errors.As(err, &exit) || exit.Code != coordinator.ExitJobFailed {
				t.Errorf("%v", err)
			}
			for _, words := range c.wantText {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("%q is not in: %v", words, err)
				}
			}
		})
	}
}

func TestTheModelCommandCountsTheTutorialsParameters(t *testing.T) {
	out, err := call(t, "model", filepath.Join("..", "..", "..", "examples", "models", "mnist_functional_api.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"111114 trainable", "conv2d_1", "(24, 24, 64)", "sparse_softmax_cross_entropy", "image: float32 (28, 28)"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestAModelOfTablesIsShownWithThem(t *testing.T) {
	out, err := call(t, "model", "wide_deep")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"occupation_embedding", "(1, 8)", "occupation, as indices", "age, as float32, subtract by 38", "capital-gain: float32 (1)"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestADataSetIsMadeConvertedInspectedAndVerified(t *testing.T) {
	dir := t.TempDir()
	digits, copied := filepath.Join(dir, "digits"), filepath.Join(dir, "copied")
	for _, args := range [][]string{
		{"data", "synth", "--output", digits, "--records", "40"},
		{"data", "convert", digits, "--output", copied, "--part", "10:30", "--compressor", "gzip"},
		{"data", "verify", copied},
	} {
		if out, err := call(t, args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	sheet := filepath.Join(dir, "sheet.png")
	out, err := call(t, "data", "inspect", copied)
	if err != nil || !strings.Contains(out, "20") || !strings.Contains(out, "gzip") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := call(t, "data", "inspect", "synthetic://digits?records=40&seed=1", "--sheet", sheet); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(sheet); err != nil || info.Size() == 0 {
		t.Errorf("no sheet: %v", err)
	}
}

func TestHelpOfEveryCommandHasASentence(t *testing.T) {
	for _, args := range [][]string{{}, {"train"}, {"master"}, {"worker"}, {"model"}, {"data"}, {"data", "synth"}, {"data", "convert"}, {"data", "inspect"}, {"data", "verify"}} {
		out, err := call(t, append(args, "--help")...)
		if err != nil || len(out) < 80 {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

func TestBuiltInModelsAreListedShownAndPrinted(t *testing.T) {
	list, err := call(t, "model")
	if err != nil || !strings.Contains(list, "mnist") || !strings.Contains(list, "28 x 28 grey images") {
		t.Errorf("%v: %s", err, list)
	}
	shown, err := call(t, "model", "mnist")
	if err != nil || !strings.Contains(shown, "111114 trainable, 128 non-trainable") {
		t.Errorf("%v: %s", err, shown)
	}
	source, err := call(t, "model", "mnist", "--source")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mnist") // called like the built-in one, and meant by its path
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if copied, err := call(t, "model", path); err != nil || copied != shown {
		t.Errorf("the printed file is another model (%v):\n%s", err, copied)
	}
}

func TestAMasterEndsWithTheExitCodesThatItsJobKnows(t *testing.T) {
	for ends, knows := range map[int]int{coordinator.ExitJobFailed: trainingjob.ExitJobFailed, coordinator.ExitInterrupted: trainingjob.ExitStopped} {
		if ends != knows {
			t.Errorf("the coordinator says %d, and the rules of the master's Job %d", ends, knows)
		}
	}
}
