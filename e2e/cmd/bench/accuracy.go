package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
)

const (
	accuracyGoal  = 0.96
	accuracySeeds = 5
)

// measureAccuracy trains on real images with several seeds: on the first 8,000 of MNIST's 10,000 test images, tested on the
// last 2,000, for 3 epochs with minibatches of 10, `--grads-to-wait` 2 and SGD 0.1, with the project's own model file.
func measureAccuracy(ctx context.Context, o options) ([]figure, error) {
	if o.mnist == "" {
		return nil, errSkipped{"no MNIST: name a directory of its IDX files by MNIST_DIR"}
	}
	dir, err := os.MkdirTemp("", "bench-accuracy-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for part, records := range map[string]string{"train": "0:8000", "test": "8000:10000"} {
		if err := command(ctx, o.trainer(), "data", "convert", o.mnist, "--part", records, "--output", filepath.Join(dir, part)); err != nil {
			return nil, err
		}
	}
	var figures []figure
	var samples []float64
	for seed := 1; seed <= accuracySeeds; seed++ {
		accuracy, err := train(ctx, o, o.model(), dir, "bytes", seed)
		if err != nil {
			return nil, err
		}
		samples = append(samples, accuracy)
	}
	figures = append(figures,
		ratios("accuracy on held-out MNIST, seed 1", fmt.Sprintf("≥ %.2f", accuracyGoal), "8,000 images, 3 epochs", samples[:1]),
		ratios(fmt.Sprintf("accuracy, seeds 1–%d (mean %.4f)", accuracySeeds, mean(samples)), "", "8,000 images, 3 epochs", samples))
	mayFile := filepath.Join(o.root, "internal/trainer/ml/modelfile/testdata/may_2019.py") // written anew, with the same input_fn
	if originals := os.Getenv("ELASTICDL_MODELS"); originals != "" {
		mayFile = filepath.Join(originals, "257948e4.py") // the tutorial's own
	}
	accuracy, err := train(ctx, o, mayFile, dir, "bytes", 1)
	if err != nil {
		return nil, err
	}
	warnings, err := warningsOf(mayFile)
	if err != nil {
		return nil, err
	}
	figures = append(figures, ratios("accuracy of a model file of May 2019, seed 1", "", "warning: "+warnings, []float64{accuracy}))
	return figures, nil
}

// warningsOf joins the warnings that loading a model file gives.
func warningsOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	_, report, err := modelfile.Load(filepath.Base(path), text, modelfile.Options{})
	if err != nil {
		return "", err
	}
	var warnings []string
	for _, w := range report.Warnings {
		warnings = append(warnings, w.String())
	}
	return strings.Join(warnings, "; "), nil
}

func mean(samples []float64) float64 {
	sum := 0.0
	for _, s := range samples {
		sum += s
	}
	return sum / float64(len(samples))
}

func train(ctx context.Context, o options, model, dir, codec string, seed int) (float64, error) {
	output := filepath.Join(dir, "output-"+filepath.Base(model)+strconv.Itoa(seed))
	err := command(ctx, o.trainer(), "train", "--model-file", model, "--train-data-dir", filepath.Join(dir, "train"), "--validation-data-dir", filepath.Join(dir, "test"),
		"--codec-type", codec, "--num-epoch", "3", "--minibatch-size", "10", "--grads-to-wait", "2", "--learning-rate", "0.1", "--seed", strconv.Itoa(seed), "--num-worker", "2", "--output", output)
	if err != nil {
		return 0, err
	}
	descriptions, err := filepath.Glob(filepath.Join(output, "*", "model.json"))
	if err != nil || len(descriptions) != 1 {
		return 0, fmt.Errorf("%d models below %s", len(descriptions), output)
	}
	text, err := os.ReadFile(descriptions[0])
	if err != nil {
		return 0, err
	}
	var info struct {
		Accuracy float64 `json:"accuracy"`
	}
	return info.Accuracy, json.Unmarshal(text, &info)
}

func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, out)
	}
	return nil
}
