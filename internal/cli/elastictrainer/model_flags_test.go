package elastictrainer

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// asTrainer makes this test binary behave as elastic-trainer: train starts it again for its workers, and so do
// examples.
const asTrainer = "ELASTIC_TRAINER_UNDER_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asTrainer) != "" {
		os.Exit(Main("test", os.Args[1:]))
	}
	os.Exit(m.Run())
}

const (
	smallModel = "../../trainer/runtime/local/testdata/reference_model.py"
	validation = "synthetic://digits?records=230&seed=2"
)

// finished trains a small model, and keeps a checkpoint of every tenth step.
func finished(t *testing.T) (output string, info master.ModelInfo) {
	t.Helper()
	t.Setenv(asTrainer, "1")
	output = t.TempDir()
	out, err := call(t, "train", "--model-file", smallModel, "--grads-to-wait=2", "--train-data-dir", "synthetic://digits?records=400&seed=1", "--validation-data-dir", validation,
		"--output", output, "--record-per-task=40", "--evaluation-steps=10", "--checkpoint-steps=10", "--keep-checkpoint-max=0", "--log-level=error")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	paths, err := filepath.Glob(filepath.Join(output, "*", "model.json"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	text, err := os.ReadFile(paths[0])
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	if err != nil {
		t.Fatal(err)
	}
	return output, info
}

func TestARunOfOneEpochAndOneWorkerIsDescribedInTheSingular(t *testing.T) {
	t.Setenv(asTrainer, "1")
	out, err := call(t, "train", "--model-file", smallModel, "--train-data-dir", "synthetic://digits?records=40&seed=1", "--output", t.TempDir(), "--num-epoch=1", "--num-worker=1", "--log-level=error")
	if err != nil || !strings.Contains(out, ": 40 records, 1 epoch, ") || !strings.Contains(out, ", 1 worker, kernel") {
		t.Errorf("%v\n%s", err, out)
	}
}

func measured(t *testing.T, args ...string) (m trainingjob.Measurement) {
	t.Helper()
	out, err := call(t, append([]string{"evaluate", "--json", "--model-file", smallModel, "--validation-data-dir", validation}, args...)...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &m)
	}
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return m
}

func TestEvaluationAndInferenceOfATrainedModelAreBitIdentical(t *testing.T) {
	output, info := finished(t)
	variants := [][]string{{}, {"--minibatch-size=1"}, {"--minibatch-size=7", "--threads=3"}}
	for _, set := range kernel.Available() {
		variants = append(variants, []string{"--kernel=" + set.Name, "--threads=2"})
	}
	t.Run("evaluate gives model.json's loss and metrics", func(t *testing.T) {
		want := trainingjob.Measurement{Step: info.Steps, Loss: info.Loss, Metrics: info.Metrics, Records: int64(info.Records)}
		for _, args := range variants {
			if got := measured(t, append(args, "--model-dir", output)...); !reflect.DeepEqual(got, want) {
				t.Errorf("%v: %+v, and model.json says %+v", args, got, want)
			}
		}
	})
	t.Run("evaluate of the checkpoints gives model.json's history", func(t *testing.T) {
		if len(info.Evaluations) != 2 {
			t.Fatalf("%+v", info.Evaluations)
		}
		for _, want := range info.Evaluations {
			paths, err := filepath.Glob(filepath.Join(output, "checkpoints", "*", fmt.Sprintf("step-%012d.safetensors", want.Step)))
			if err != nil || len(paths) != 1 {
				t.Fatal(paths, err)
			}
			if got := measured(t, "--checkpoint", paths[0], "--record-per-task=40"); !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, and model.json says %+v", got, want)
			}
		}
	})
	predict := func(t *testing.T, args ...string) string {
		t.Helper()
		out, err := call(t, append([]string{"predict", "--model-file", smallModel, "--model-dir", output, "--prediction-data-dir", validation, "--labels"}, args...)...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return out
	}
	t.Run("predict answers as evaluate counts", func(t *testing.T) {
		lines, err := csv.NewReader(strings.NewReader(predict(t))).ReadAll()
		if err != nil || len(lines) != 231 {
			t.Fatalf("%d lines: %v", len(lines), err)
		}
		if got := strings.Join(lines[0], ","); !strings.HasPrefix(got, "record,label,class,probability_0,probability_1,") || len(lines[0]) != 13 {
			t.Errorf("the header is %s", got)
		}
		right := 0
		for i, line := range lines[1:] {
			sum, best := 0.0, 0
			for c, field := range line[3:] {
				p, err := strconv.ParseFloat(field, 64)
				if err != nil {
					t.Fatal(err)
				}
				if q, _ := strconv.ParseFloat(line[3+best], 64); p > q {
					best = c
				}
				sum += p
			}
			if line[0] != strconv.Itoa(i) || line[2] != strconv.Itoa(best) || math.Abs(sum-1) > 1e-6 {
				t.Fatalf("line %d: %v", i, line)
			}
			if line[1] == line[2] {
				right++
			}
		}
		if got := float64(right) / 230; got != info.Accuracy {
			t.Errorf("%v of the answers are right, and model.json says %v", got, info.Accuracy)
		}
	})
	t.Run("predict writes the same bytes whoever computes, to standard output and to a file", func(t *testing.T) {
		for _, format := range []string{"csv", "jsonl"} {
			want := predict(t, "--format", format)
			for _, args := range variants {
				if got := predict(t, append(args, "--format", format)...); got != want {
					t.Errorf("%s, %v: other lines", format, args)
				}
			}
			path := filepath.Join(t.TempDir(), "answers")
			if got := predict(t, "--format", format, "--output", path); got != "wrote the predictions to "+path+"\n" {
				t.Errorf("it says %q", got)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("%s: the file has %d bytes, and %d were printed: %v", format, len(got), len(want), err)
			}
		}
	})
	t.Run("a line of JSON is an object with the logits", func(t *testing.T) {
		first, _, _ := strings.Cut(predict(t, "--format=jsonl", "--logits"), "\n")
		var line struct {
			Record, Label, Class *int
			Logits               []float32
		}
		d := json.NewDecoder(strings.NewReader(first))
		d.DisallowUnknownFields()
		if err := d.Decode(&line); err != nil || line.Record == nil || line.Label == nil || line.Class == nil || len(line.Logits) != 10 {
			t.Errorf("%s: %v", first, err)
		}
	})
	t.Run("data that are not there get no hint about labels", func(t *testing.T) {
		_, err := call(t, "predict", "--model-file", smallModel, "--model-dir", output, "--prediction-data-dir", filepath.Join(t.TempDir(), "nowhere"))
		if err == nil || !strings.Contains(err.Error(), "nowhere") || strings.Contains(err.Error(), "--labels") {
			t.Errorf("%v", err)
		}
	})
	t.Run("what does not fit is refused by name", func(t *testing.T) { refusals(t, output, info) })
}

func refusals(t *testing.T, output string, info master.ModelInfo) {
	job := filepath.Join(output, info.Job[:8])
	copied := func(t *testing.T, change func(model []byte) []byte) string {
		dir := t.TempDir()
		for _, name := range []string{"model.json", "model.safetensors"} {
			content, err := os.ReadFile(filepath.Join(job, name))
			if err != nil {
				t.Fatal(err)
			}
			if name == "model.safetensors" {
				content = change(content)
			}
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	damaged := copied(t, func(model []byte) []byte { model[len(model)-1] ^= 1; return model })
	more := copied(t, func(model []byte) []byte { return withTensor(t, model, "dense_9/kernel") })
	paths, err := filepath.Glob(filepath.Join(output, "checkpoints", "*", "step-000000000010.safetensors"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	torn, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	torn[len(torn)-1] ^= 1
	tornPath := filepath.Join(t.TempDir(), "torn.safetensors")
	if err := os.WriteFile(tornPath, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	two := t.TempDir()
	for _, name := range []string{"aaaaaaaa", "bbbbbbbb"} {
		if err := os.CopyFS(filepath.Join(two, name), os.DirFS(job)); err != nil {
			t.Fatal(err)
		}
	}
	data := []string{"--validation-data-dir", validation}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"another model's weights":             {append([]string{"evaluate", "--model=mnist", "--model-dir", output}, data...), `tensor "conv2d/kernel"`},
		"a tensor too many":                   {append([]string{"evaluate", "--model-file", smallModel, "--checkpoint", filepath.Join(more, "model.safetensors")}, data...), `"dense_9/kernel"`},
		"a model that is not what was saved":  {append([]string{"evaluate", "--model-file", smallModel, "--model-dir", damaged}, data...), "damaged"},
		"a damaged checkpoint":                {append([]string{"evaluate", "--model-file", smallModel, "--checkpoint", tornPath}, data...), "damaged"},
		"a directory of two jobs":             {append([]string{"evaluate", "--model-file", smallModel, "--model-dir", two}, data...), "bbbbbbbb"},
		"a directory of none":                 {append([]string{"evaluate", "--model-file", smallModel, "--model-dir", t.TempDir()}, data...), "no model.json"},
		"neither a model nor a checkpoint":    {append([]string{"evaluate", "--model-file", smallModel}, data...), "model-dir"},
		"a format of lines that there is not": {[]string{"predict", "--model-file", smallModel, "--model-dir", output, "--prediction-data-dir", validation, "--format=xml"}, "csv or jsonl"},
		"a minibatch of nothing":              {[]string{"predict", "--model-file", smallModel, "--model-dir", output, "--prediction-data-dir", validation, "--minibatch-size=0"}, `"--minibatch-size" flag: must be a number from 1 to 1,000,000`},
		"a place where no file can be":        {[]string{"predict", "--model-file", smallModel, "--model-dir", output, "--prediction-data-dir", validation, "--output", "/nowhere/answers"}, "/nowhere/answers"},
		"labels that are not expected":        {[]string{"predict", "--model=mnist", "--checkpoint", mnistWeights(t), "--prediction-data-dir", validation}, "--labels"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := call(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v does not name %q\n%s", err, c.want, out)
			}
		})
	}
}

// withTensor is a model's file with one tensor more.
func withTensor(t *testing.T, model []byte, name string) []byte {
	t.Helper()
	tensors, metadata, err := safetensors.Read(bytes.NewReader(model), int64(len(model)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := safetensors.Write(&out, append(tensors, safetensors.Float32(name, []int{1}, []float32{0})), metadata); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// mnistWeights are of the tutorial's network, as it begins.
func mnistWeights(t *testing.T) string {
	t.Helper()
	output := t.TempDir()
	if out, err := call(t, "train", "--model=mnist", "--train-data-dir", "synthetic://digits?records=2", "--output", output, "--log-level=error"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	paths, err := filepath.Glob(filepath.Join(output, "*", "model.safetensors"))
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	return paths[0]
}

func TestTheExamplesInTheHelpRun(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err == nil {
		err = os.Symlink(program, filepath.Join(bin, "elastic-trainer"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range []string{newEvaluate().Example, newPredict().Example} {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", example)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), asTrainer+"=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v\n%s", example, err, out)
		}
	}
	answers, err := os.ReadFile(filepath.Join(dir, "predictions.jsonl"))
	if err != nil || bytes.Count(answers, []byte("\n")) != 100 {
		t.Errorf("%d lines: %v", bytes.Count(answers, []byte("\n")), err)
	}
}
